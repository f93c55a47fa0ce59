// Floods and slow visitors: what an honest visitor waits while somebody attacks, and what memory it takes, beside nginx in the same run. The server has core 0 and
// one worker, the attack and the visitor core 1, where the visitor goes first. Each attack comes from a hundred addresses of the loopback network that no
// other one has, lasts some seconds, and ends by itself.
//
//   npm run bench -- floods [--attack NAME,NAME] [--seconds S] [--beside DIR]
//   npm run bench -- floods --profile NAME    where the server's time goes under one attack, by folder

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeAuthority } from "../test/support/x509.ts";
import { until } from "../test/support/until.ts";
import { attacks, type Attack } from "./floods/attacks.ts";
import type { Counts } from "./floods/attack.ts";
import { visitFor, type Waited } from "./floods/visitor.ts";
import { host, tlsOriginHost } from "./serving/cases.ts";
import { cpuOf, cpuSince, residentMiB } from "./serving/cpu.ts";
import { profileOf } from "./serving/profile.ts";
import { startOrigin } from "./serving/origin.ts";
import {
  answering,
  askOnce,
  startNginx,
  startOurs,
  type Scene,
  type Server,
} from "./serving/servers.ts";
import { Figures, percentile } from "./support/figures.ts";

/** What others wait, and what an attack takes of memory. */
const waitMsMost = 250;
const growthMiBMost = 640; // 64 KiB for each of ten thousand connections or streams.
/** Where nobody attacks and a visitor waits longer than this, the host does something else, and the limits judge that. */
const quietMsMost = 60;
const memoryEveryMs = 200;
/** So long the server may rest before the next attack, until it holds no connection of this one. */
const restMs = 700;
const request = `GET /hit/0 HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

type Seen = {
  readonly waited: Waited;
  readonly counts: Counts;
  readonly beforeMiB: number;
  readonly mostMiB: number;
  readonly afterMiB: number;
  /** The share of its core that the server was busy. */
  readonly busy: number;
};

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      attack: { type: "string" },
      seconds: { type: "string", default: "4" },
      beside: { type: "string" },
      profile: { type: "string" },
    },
  });
  const names = (values.profile ?? values.attack)?.split(",");
  const unknown = names?.find((name) => !attacks.some((one) => one.name === name));
  if (unknown !== undefined)
    throw new Error(
      `no attack ${unknown}; there are: ${attacks.map(({ name }) => name).join(", ")}`,
    );
  const chosen = attacks.filter(({ name }) => names?.includes(name) ?? true);
  if (availableParallelism() < 2) throw new Error("floods needs two cores: one for the server");
  execFileSync("taskset", ["-apc", "1", String(process.pid)], { stdio: "ignore" });

  const dir = mkdtempSync(join(tmpdir(), "accel-floods-"));
  const figures = new Figures(say);
  try {
    await using stack = new AsyncDisposableStack();
    const scene = await prepare(dir, stack);
    if (values.profile !== undefined) {
      await profile(scene, chosen[0], Number(values.seconds), dir, say);
      return;
    }
    const servers: Server[] = [stack.use(await startOurs(scene))];
    const nginx = await startNginx(scene);
    if ("missing" in nginx) say(`nginx: skipped, ${nginx.missing}`);
    else servers.push(stack.use(nginx));
    if (values.beside !== undefined)
      servers.push(
        stack.use(await startOurs(scene, { tree: resolve(values.beside), name: "beside" })),
      );
    for (const server of servers) await untilAnswered(server);
    for (const attack of [undefined, ...chosen]) {
      figures.head(attack?.title ?? "no attack");
      for (const server of servers) {
        const seen = await underAttack(server, attack, Number(values.seconds));
        tell(figures, server, attack, seen);
        if (attack === undefined && percentile(seen.waited.kept, 0.99) > quietMsMost)
          say("THIS HOST IS BUSY: visitors wait although nobody attacks; limits judge the host");
      }
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "all limits are met" : `MISSED: ${figures.missed.join("; ")}`);
}

async function prepare(dir: string, stack: AsyncDisposableStack): Promise<Scene> {
  const authority = makeAuthority();
  const certificate = authority.issue({ names: [host, tlsOriginHost, "localhost"] });
  const rootFile = join(dir, "root.pem");
  writeFileSync(rootFile, authority.root.pem);
  const origin = stack.use(await startOrigin({ key: certificate.key, cert: certificate.chain }));
  return { origin, certificate, rootFile, badRanges: [] };
}

async function untilAnswered({ name, https }: Server): Promise<void> {
  await answering(`the page at ${name}`, async () =>
    askOnce({ port: https, servername: host }, request, 200),
  );
}

async function profile(
  scene: Scene,
  attack: Attack | undefined,
  seconds: number,
  dir: string,
  say: (line: string) => void,
): Promise<void> {
  const options = `--cpu-prof --cpu-prof-dir=${dir} --cpu-prof-interval=500`;
  await using ours = await startOurs(scene, { env: { NODE_OPTIONS: options } });
  await untilAnswered(ours);
  const fromUs = Number(process.hrtime.bigint() / 1_000n);
  const { waited } = await underAttack(ours, attack, seconds);
  const toUs = Number(process.hrtime.bigint() / 1_000n);
  await ours.stop();
  say(`kept connections wait ${percentile(waited.kept, 0.99).toFixed(1)} ms, p99; shares of 100`);
  for (const line of profileOf(dir, { fromUs, toUs }, 100)) say(line);
}

async function underAttack(
  server: Server,
  attack: Attack | undefined,
  seconds: number,
): Promise<Seen> {
  const { pid, http, https } = server;
  const beforeMiB = residentMiB(pid);
  let mostMiB = beforeMiB;
  const watch = setInterval(() => (mostMiB = Math.max(mostMiB, residentMiB(pid))), memoryEveryMs);
  try {
    const buildUpMs = attack?.buildUpMs ?? 300;
    const attacking = attack && startAttack(server, attack.name, seconds + buildUpMs / 1_000);
    await new Promise((built) => setTimeout(built, buildUpMs));
    const before = cpuOf(pid);
    const began = performance.now();
    const waited = await visitFor(
      { port: http },
      { port: https, servername: host },
      request,
      seconds,
    );
    const busy = cpuSince(before, pid) / 1_000 / (performance.now() - began);
    const counts = (await attacking) ?? { opened: 0, closed: 0, refused: 0, sent: 0 };
    mostMiB = Math.max(mostMiB, residentMiB(pid));
    await new Promise((rested) => setTimeout(rested, restMs));
    await until("an answer behind the attack", async () => {
      await askOnce({ port: https, servername: host }, request, 200);
      return true;
    });
    return { waited, counts, beforeMiB, mostMiB, afterMiB: residentMiB(pid), busy };
  } finally {
    clearInterval(watch);
  }
}

async function startAttack(server: Server, name: string, seconds: number): Promise<Counts> {
  const file = join(import.meta.dirname, "floods/flood.ts");
  const told = [name, server.http, server.https, seconds].map(String);
  const line = ["-n", "5", "taskset", "-c", "1", process.execPath, file, ...told];
  const child = spawn("nice", line, { stdio: ["ignore", "pipe", "inherit"] });
  const late = setTimeout(() => child.kill("SIGKILL"), (seconds + 60) * 1_000);
  const end = (): void => void child.kill("SIGKILL");
  process.once("exit", end);
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(child, "close");
  process.off("exit", end);
  clearTimeout(late);
  if (said === "") throw new Error(`the attack ${name} ended without its counts`);
  return JSON.parse(said) as Counts; // What flood.ts writes.
}

function tell(figures: Figures, server: Server, attack: Attack | undefined, seen: Seen): void {
  const { waited, counts, beforeMiB, mostMiB, afterMiB, busy } = seen;
  const isOurs = !server.name.startsWith("nginx");
  const ms = (values: readonly number[], share: number): string =>
    percentile(values, share).toFixed(1);
  const name = (what: string): string => `${server.name}: ${what}`;
  figures.add(
    name("kept connections wait, p99"),
    percentile(waited.kept, 0.99),
    "ms",
    isOurs ? { most: waitMsMost } : undefined,
    `p50 ${ms(waited.kept, 0.5)}, most ${ms(waited.kept, 1)} ms of ${waited.kept.length}`,
  );
  figures.add(
    name("new connections over TLS wait, p99"),
    percentile(waited.fresh, 0.99),
    "ms",
    isOurs ? { most: waitMsMost } : undefined,
    `p50 ${ms(waited.fresh, 0.5)}, most ${ms(waited.fresh, 1)} ms of ${waited.fresh.length}, ${waited.failed} failed`,
  );
  figures.add(
    name("memory grows by at most"),
    mostMiB - beforeMiB,
    "MiB",
    isOurs ? { most: growthMiBMost } : undefined,
    `${beforeMiB.toFixed(0)} before, ${mostMiB.toFixed(0)} at most, ${afterMiB.toFixed(0)} after; the core ${(100 * busy).toFixed(0)} % busy`,
  );
  if (attack === undefined) return;
  const { opened, closed, refused, sent } = counts;
  figures.add(
    name("the attack sent"),
    sent,
    attack.unit,
    undefined,
    `${opened} connections, ${closed} closed by the server, ${refused} refused`,
  );
}
