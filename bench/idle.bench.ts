// What an idle agent takes of memory, and how soon it serves. The program is built as it ships and started with the environment of its systemd unit; once also
// from its sources. Memory is that of a host that runs nothing else of Node: what the processes have alone, and each file that they map once. nginx and a bare
// Node stand beside it. Times depend on what else the host does, so the processor time until the first answer stands beside them.
//
//   npm run bench -- idle [--seconds S] [--starts N]

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { builtTree } from "../test/support/built-tree.ts";
import { CustomerScript, domain } from "../test/support/customer-script.ts";
import { Edge } from "../test/support/edge.ts";
import { node, Program } from "../test/support/process.ts";
import { until } from "../test/support/until.ts";
import { startOrigin } from "../test/support/origin.ts";
import { PeerGround } from "./peers/peer.ts";
import { cpuOf, cpuSince, treeOf } from "./serving/cpu.ts";
import { askInLoop } from "./serving/load.ts";
import { Figures, percentile } from "./support/figures.ts";

const mib = 1_048_576;
const path = "/page/one?x=1"; // CustomerScript has it cached.
const connections = 32;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "10" },
      starts: { type: "string", default: "5" },
    },
  });
  const idleMs = Number(values.seconds) * 1_000;
  using tree = builtTree();
  await using scene = await prepare(tree.main);
  const figures = new Figures(say);

  figures.head(`memory after ${values.seconds} s without a visitor`);
  const taken: number[] = [];
  for (const workers of [1, 2, 4]) {
    await using agent = await scene.start(tree.main, { workers });
    await sleep(idleMs);
    const memory = memoryOf(agent.pid);
    taken.push(memory.whole);
    const limit = workers === 1 ? ({ most: 150 } as const) : undefined;
    figures.add(`built, ${workers} workers`, memory.whole, "MiB", limit, shown(memory));
  }
  const [one = 0, , four = 0] = taken;
  figures.add("built, each further worker", (four - one) / 3, "MiB", { most: 25 });
  for (const [name, main, env] of [
    ["built, one worker, without the unit's environment", tree.main, {}],
    ["from the sources, one worker", undefined, scene.unitEnv],
  ] as const) {
    await using agent = await scene.start(main, { env });
    await sleep(idleMs);
    const memory = memoryOf(agent.pid);
    figures.add(name, memory.whole, "MiB", undefined, shown(memory));
  }
  await peers(figures, idleMs);
  await heaps(scene, tree.main, idleMs, say);

  figures.head("a start with warm state");
  await starts(scene, tree.main, Number(values.starts), figures);
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
}

type StartOptions = { readonly workers?: number; readonly env?: Readonly<Record<string, string>> };
type Scene = AsyncDisposable & {
  readonly port: number;
  readonly unitEnv: Readonly<Record<string, string>>;
  /** Resolves when the page was answered 200. */
  readonly start: (main: string | undefined, options: StartOptions) => Promise<Program>;
};

async function prepare(main: string): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const edge = stack.use(await Edge.prepare());
  const origin = stack.use(await startOrigin());
  await edge.startCentral(main);
  const script = new CustomerScript(edge, origin.url, "idle");
  await script.enrol();
  const port = edge.ports.visitors;
  const listen = `127.0.0.1:${port}`;
  await edge.startAgent(main);
  for (const { name, run: step } of script.steps())
    if (["domain", "activate", "hit"].includes(name)) await step();
  await edge.agent.terminate();
  const owned = stack.move();
  const unitEnv = {
    NODE_OPTIONS: "--max-semi-space-size=16 --expose-gc",
    MALLOC_ARENA_MAX: "2",
    NODE_COMPILE_CACHE: join(edge.dir, "compile-cache"),
  };
  return {
    port,
    unitEnv,
    start: async (program, { workers = 1, env = unitEnv }) => {
      edge.changeAgentSettings({ accelerator: { listen, workers } });
      const args = ["agent", "run", "--config", join(edge.dir, "agent.yaml")];
      const agent = await Program.start(args, undefined, env, undefined, program);
      while (!agent.ended && (await said(port)).status !== 200) await sleep(2);
      return agent;
    },
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

async function peers(figures: Figures, idleMs: number): Promise<void> {
  await using ground = await PeerGround.open(0);
  const config = ground.writeText(
    "worker_processes 1; daemon off; pid nginx.pid; events {} http { server { listen 127.0.0.1:PORT; } }".replace(
      "PORT",
      String(ground.port),
    ),
    "nginx.conf",
  );
  const peer = spawn("nginx", ["-p", ground.dir, "-c", config], { stdio: "ignore" });
  const hasNginx = await once(peer, "spawn").then(
    () => true,
    () => false,
  );
  if (hasNginx) {
    await sleep(idleMs / 10);
    figures.add("nginx, one worker", memoryOf(peer.pid ?? 0).whole, "MiB");
    const ended = once(peer, "exit");
    peer.kill("SIGTERM");
    await ended;
  }
  const bare = spawn(node, ["-e", "require('node:http').createServer().listen(0, '127.0.0.1')"], {
    stdio: "ignore",
  });
  await sleep(idleMs / 10);
  const memory = memoryOf(bare.pid ?? 0);
  figures.add("bare Node with an HTTP server", memory.whole, "MiB", undefined, shown(memory));
  const ended = once(bare, "exit");
  bare.kill("SIGKILL");
  await ended;
}

async function heaps(
  scene: Scene,
  main: string,
  idleMs: number,
  say: (line: string) => void,
): Promise<void> {
  const probe = join(import.meta.dirname, "support/heap-probe.mjs");
  const options = `${scene.unitEnv["NODE_OPTIONS"] ?? ""} --import=${probe}`;
  await using agent = await scene.start(main, {
    env: { ...scene.unitEnv, NODE_OPTIONS: options },
  });
  await sleep(idleMs);
  process.kill(agent.pid, "SIGUSR2");
  await until("the heaps", async () => agent.said.includes("heaps ["));
  type Row = Readonly<Record<"heap" | "used" | "external" | "native", number>> & {
    readonly name: string;
  };
  const rows = JSON.parse(/^heaps (.+)$/m.exec(agent.said)?.[1] ?? "[]") as readonly Row[];
  say("  thread                heap   used  external  native, MiB");
  for (const { name, heap, used, external, native } of rows)
    say(
      `  ${name.padEnd(18)}${[heap, used, external, native].map((bytes) => (bytes / mib).toFixed(1).padStart(8)).join("")}`,
    );
}

async function starts(scene: Scene, main: string, count: number, figures: Figures): Promise<void> {
  const ms: number[] = [];
  const hitMs: number[] = [];
  const cpuMs: number[] = [];
  const share: number[] = [];
  const cost: number[] = [];
  for (let no = 0; no < count; no++) {
    const began = performance.now();
    await using agent = await scene.start(main, {});
    ms.push(performance.now() - began);
    cpuMs.push(cpuSince(new Map(), agent.pid) / 1_000);
    // Before central has said what was cleared meanwhile, what is stored is asked for again.
    await until("a hit", async () => (await said(scene.port)).isHit);
    hitMs.push(performance.now() - began);
    const first = await rate(scene.port, agent.pid, 2);
    await rate(scene.port, agent.pid, 4);
    const settled = await rate(scene.port, agent.pid, 2);
    share.push(first.perSecond / settled.perSecond);
    cost.push(settled.us / first.us);
    await agent.terminate();
  }
  const median = (values: readonly number[]): number => percentile(values, 0.5);
  figures.add("from the command to the first 200", median(ms), "ms", { most: 1_000 });
  figures.add("from the command to the first hit", median(hitMs), "ms");
  figures.add("processor time until the first 200, all threads", median(cpuMs), "ms");
  figures.add("requests a second: first two seconds × settled", median(share), "", { least: 0.8 });
  figures.add("processor time a request: settled × first two seconds", median(cost), "", {
    least: 0.8,
  });
}

async function rate(
  port: number,
  pid: number,
  seconds: number,
): Promise<{ readonly perSecond: number; readonly us: number }> {
  const head = `GET ${path} HTTP/1.1\r\nHost: ${domain}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\r\n`;
  const bytes = Buffer.from(head);
  const before = cpuOf(pid);
  const answered = await askInLoop({
    target: { port },
    requests: () => bytes,
    status: 200,
    connections,
    seconds,
  });
  return {
    perSecond: answered.requests / answered.seconds,
    us: cpuSince(before, pid) / answered.requests,
  };
}

type Said = { readonly status: number | undefined; readonly isHit: boolean };

async function said(port: number): Promise<Said> {
  const { promise, resolve } = Promise.withResolvers<Said>();
  const nobody = { status: undefined, isHit: false };
  const headers = { host: domain };
  const asked = request({ host: "127.0.0.1", port, path, headers, agent: false }, (answer) => {
    answer.resume();
    const isHit = String(answer.headers["cache-status"]).includes("; hit");
    answer.once("end", () => resolve({ status: answer.statusCode, isHit }));
    answer.once("error", () => resolve(nobody));
  });
  asked.once("error", () => resolve(nobody));
  asked.end();
  return promise;
}

type Memory = {
  /** What the processes have alone, and each mapped file once; MiB. */
  readonly whole: number;
  readonly rss: number;
  readonly pss: number;
};

/** As proc_pid_smaps(5) tells it. A file's pages count as the process counts that has most of it. */
function memoryOf(pid: number): Memory {
  const files = new Map<string, number>();
  let [anonymous, rss, pss] = [0, 0, 0];
  for (const one of treeOf(pid)) {
    const own = new Map<string, number>();
    let file = "";
    for (const line of readFileSync(`/proc/${one}/smaps`, "latin1").split("\n")) {
      const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ (\d+)\s*(.*)$/.exec(line);
      if (mapping !== null) file = mapping[1] === "0" ? "" : (mapping[2] ?? "");
      const kib = Number(/^\w+:\s+(\d+) kB/.exec(line)?.[1] ?? 0);
      if (line.startsWith("Rss:")) {
        rss += kib;
        own.set(file, (own.get(file) ?? 0) + kib);
      } else if (line.startsWith("Pss:")) pss += kib;
      else if (line.startsWith("Anonymous:")) {
        anonymous += kib;
        own.set(file, (own.get(file) ?? 0) - kib);
      }
    }
    for (const [name, kib] of own) files.set(name, Math.max(kib, files.get(name) ?? 0));
  }
  const mapped = [...files.values()].reduce((sum, kib) => sum + kib, 0);
  return { whole: (anonymous + mapped) / 1_024, rss: rss / 1_024, pss: pss / 1_024 };
}

function shown({ rss, pss }: Memory): string {
  return `RSS of all processes ${rss.toFixed(0)}, PSS ${pss.toFixed(0)}`;
}

async function sleep(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  return promise;
}
