// What an answer costs: microseconds of processor a request, over all threads and children of the server, beside nginx with the same site and bare Node, in one
// run. The server has core 0, visitors and origin core 1. The ratio of a round is nginx's CPU by ours; the figure is the median of the rounds with its 95 %
// interval, and no round is left out. Requests a second depend on what else the host does; they stand beside it.
//
//   npm run bench -- serve [--case NAME,NAME] [--rounds N] [--seconds S] [--no-pace]
//   npm run bench -- serve --beside DIR       with the agent of another checkout in the same rounds
//   npm run bench -- serve --threads NAME     where the time of one row goes, by thread
//   npm run bench -- serve --profile NAME     where it goes by folder and by function; the profiler costs as much again

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeAuthority } from "../test/support/x509.ts";
import { cases, host, loopOf, paced, tlsOriginHost, type Case } from "./serving/cases.ts";
import { cpuByName, cpuOf, cpuSince, residentMiB } from "./serving/cpu.ts";
import { askByHttp2 } from "./serving/http2-load.ts";
import { askAtPace, askInLoop, type Answered } from "./serving/load.ts";
import { startOrigin } from "./serving/origin.ts";
import { profileOf } from "./serving/profile.ts";
import {
  answering,
  askOnce,
  startBare,
  startNginx,
  startOurs,
  type Scene,
  type Server,
} from "./serving/servers.ts";
import { percentile } from "./support/figures.ts";
import { medianWithInterval, type Interval } from "./support/interval.ts";

const warmUpS = 0.2;
const titleChars = 76;
const badRangesCount = 200;
const paceSeconds = 5;
const paceRounds = 3;
/** V8 compiles what answers without the cache behind some 30,000 requests, on threads that are counted with the rest. */
const settleRequests = 60_000;
const settleSMost = 6;
const longS = 5;
/** Threads that take less have no line. */
const shownUsLeast = 0.1;

type Cost = { readonly us: number; readonly perSecond: number };

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      case: { type: "string" },
      rounds: { type: "string", default: "9" },
      seconds: { type: "string", default: "0.8" },
      "no-pace": { type: "boolean", default: false },
      profile: { type: "string" },
      threads: { type: "string" },
      beside: { type: "string" },
    },
  });
  const asked = values.threads ?? values.profile ?? values.case;
  const names = asked?.split(",");
  const unknown = names?.find((name) => !cases.some((one) => one.name === name));
  if (unknown !== undefined)
    throw new Error(`no case ${unknown}; there are: ${cases.map(({ name }) => name).join(", ")}`);
  const chosen = cases.filter(({ name }) => names?.includes(name) ?? true);
  if (availableParallelism() < 2) throw new Error("serve needs two cores: one for the server");
  execFileSync("taskset", ["-apc", "1", String(process.pid)], { stdio: "ignore" });

  const dir = mkdtempSync(join(tmpdir(), "accel-serve-"));
  try {
    await using stack = new AsyncDisposableStack();
    const scene = await prepare(dir, stack);
    const seconds = Number(values.seconds);
    if (values.threads !== undefined) await costByThread(scene, chosen, seconds, say);
    else if (values.profile !== undefined) await profile(scene, chosen, seconds, dir, say);
    else {
      const servers = await startAll(scene, { dir, beside: values.beside }, stack, say);
      await compare(servers, chosen, Number(values.rounds), seconds, say);
      if (!values["no-pace"]) await comparePace(servers, say);
      for (const { name, pid } of servers)
        say(`resident  ${name.padEnd(14)} ${residentMiB(pid).toFixed(0)} MiB`);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
}

async function prepare(dir: string, stack: AsyncDisposableStack): Promise<Scene> {
  const authority = makeAuthority();
  const certificate = authority.issue({ names: [host, tlsOriginHost, "localhost"] });
  const rootFile = join(dir, "root.pem");
  writeFileSync(rootFile, authority.root.pem);
  const origin = stack.use(await startOrigin({ key: certificate.key, cert: certificate.chain }));
  const badRanges = Array.from({ length: badRangesCount }, (_, no) => `198.18.${no}.0/24`);
  return { origin, certificate, rootFile, badRanges };
}

async function startAll(
  scene: Scene,
  { dir, beside }: { readonly dir: string; readonly beside: string | undefined },
  stack: AsyncDisposableStack,
  say: (line: string) => void,
): Promise<readonly Server[]> {
  const servers: Server[] = [stack.use(await startOurs(scene))];
  const nginx = await startNginx(scene);
  if ("missing" in nginx) say(`nginx: skipped, ${nginx.missing}`);
  else servers.push(stack.use(nginx));
  servers.push(stack.use(await startBare(scene, dir)));
  if (beside !== undefined)
    servers.push(stack.use(await startOurs(scene, { tree: resolve(beside), name: "beside" })));
  return servers;
}

async function compare(
  servers: readonly Server[],
  chosen: readonly Case[],
  rounds: number,
  seconds: number,
  say: (line: string) => void,
): Promise<void> {
  const names = servers.map(({ name }) => `${name} µs`.padStart(16)).join("");
  say(`${"".padEnd(titleChars)}${names}   × nginx (95 %)          required, aimed at`);
  for (const one of chosen) {
    const rows = servers.map((): Cost[] => []);
    for (const server of servers) await settle(server, one);
    for (let round = 0; round < rounds; round++)
      for (const no of orderOf(round, servers.length)) {
        const server = servers[no];
        if (server !== undefined) rows[no]?.push(await costOf(server, one, seconds));
      }
    say(lineOf(one, servers, rows));
  }
}

/**
 * Each begins in turn, and every other round goes backwards: an agent that was loaded a moment ago still writes its records, and takes the caches of the core from
 * whoever comes next. So two agents come behind each other equally often.
 */
function orderOf(round: number, count: number): readonly number[] {
  const turned = Array.from({ length: count }, (_, at) => (round + at) % count);
  return round % 2 === 0 ? turned : turned.toReversed();
}

function lineOf(one: Case, servers: readonly Server[], rows: readonly (readonly Cost[])[]): string {
  const costs = (no: number): readonly number[] => rows[no]?.map(({ us }) => us) ?? [];
  const shown = servers.map((_, no) => percentile(costs(no), 0.5).toFixed(1).padStart(16)).join("");
  const line = [`${one.name.padEnd(16)} ${one.title}`.padEnd(titleChars) + shown];
  const no = (name: string): number => servers.findIndex((server) => server.name.startsWith(name));
  if (no("nginx") >= 0) {
    const ratio = medianWithInterval(ratios(costs(no("nginx")), costs(0)));
    line.push(shownInterval(ratio), `${one.required.toFixed(2)}, ${one.aimedAt.toFixed(2)}`);
    if (ratio.median < one.required) line.push("MISSED");
    else line.push(ratio.median < one.aimedAt ? "required is met" : "aimed at is met");
  }
  if (one.requiredOfBare !== undefined) {
    const ratio = medianWithInterval(ratios(costs(no("bare")), costs(0)));
    const isMet = ratio.median >= one.requiredOfBare;
    const required = `required ${one.requiredOfBare.toFixed(2)}: ${isMet ? "met" : "MISSED"}`;
    line.push(`× bare Node ${shownInterval(ratio)}, ${required}`);
  }
  if (no("beside") >= 0)
    line.push(
      `× beside ${shownInterval(medianWithInterval(ratios(costs(0), costs(no("beside")))))}`,
    );
  line.push(`${percentile(rows[0]?.map(({ perSecond }) => perSecond) ?? [], 0.5).toFixed(0)}/s`);
  return line.join("   ");
}

/** Round by round. */
function ratios(ones: readonly number[], others: readonly number[]): readonly number[] {
  return ones.map((one, round) => one / (others[round] ?? Number.NaN));
}

function shownInterval({ median, from, to }: Interval): string {
  return `${median.toFixed(2)} (${from.toFixed(2)} to ${to.toFixed(2)})`;
}

async function load(server: Server, one: Case, seconds: number): Promise<Answered> {
  if (one.by === "http2" && one.path !== undefined)
    return askByHttp2(server.http2, one.path, seconds);
  return askInLoop(loopOf(one, one.by === "https" ? server.https : server.http, seconds));
}

async function costOf(server: Server, one: Case, seconds: number): Promise<Cost> {
  await load(server, one, warmUpS);
  const before = cpuOf(server.pid);
  const { requests, seconds: took } = await load(server, one, seconds);
  return { us: cpuSince(before, server.pid) / requests, perSecond: requests / took };
}

/** Loads until what is hot is compiled. */
async function settle(server: Server, one: Case): Promise<void> {
  await untilAnswered(server, one);
  let [requests, seconds] = [0, 0];
  while (requests < settleRequests && seconds < settleSMost) {
    const more = await load(server, one, 1);
    requests += more.requests;
    seconds += more.seconds;
  }
}

async function untilAnswered(server: Server, one: Case): Promise<void> {
  const { target, requests, status, first } = loopOf(
    one,
    one.by === "https" ? server.https : server.http,
    0,
  );
  await answering(`${one.name} at ${server.name}`, async () => {
    if (one.by === "http2") await load(server, one, 0.05);
    else await askOnce(target, first ?? requests(0), first === undefined ? status : 200);
  });
}

async function comparePace(servers: readonly Server[], say: (line: string) => void): Promise<void> {
  const took = servers.map((): number[] => []);
  for (let round = 0; round < paceRounds; round++)
    for (const [no, { http: port }] of servers.entries())
      took[no]?.push(...(await askAtPace({ ...paced, target: { port }, seconds: paceSeconds })));
  const at = (no: number, share: number): number => percentile(took[no] ?? [], share);
  const nginxNo = servers.findIndex(({ name }) => name.startsWith("nginx"));
  const { times, p999Times, p999MoreMs } = paced.required;
  for (const [no, { name }] of servers.entries()) {
    const shown = [0.5, 0.99, 0.999].map((share) => at(no, share).toFixed(2).padStart(8)).join(" ");
    say(`at ${paced.perSecond} requests a second  ${name.padEnd(14)} p50 p99 p99.9 ms ${shown}`);
  }
  if (nginxNo < 0) return;
  const isMet =
    at(0, 0.5) <= times * at(nginxNo, 0.5) &&
    at(0, 0.99) <= times * at(nginxNo, 0.99) &&
    at(0, 0.999) <= Math.max(p999Times * at(nginxNo, 0.999), at(nginxNo, 0.999) + p999MoreMs);
  say(
    `  required: p50 and p99 at most ${times} × nginx's, p99.9 ${p999Times} × or ${p999MoreMs} ms more: ${isMet ? "met" : "MISSED"}`,
  );
}

async function costByThread(
  scene: Scene,
  chosen: readonly Case[],
  seconds: number,
  say: (line: string) => void,
): Promise<void> {
  await using ours = await startOurs(scene);
  for (const one of chosen) {
    await settle(ours, one);
    const before = cpuOf(ours.pid);
    const { requests } = await load(ours, one, Math.max(seconds, longS));
    const threads = cpuByName(before, ours.pid);
    const us = threads.reduce((sum, [, took]) => sum + took, 0) / requests;
    say(`${one.title}: ${us.toFixed(1)} µs a request, ${requests} requests`);
    for (const [name, took] of threads)
      if (took / requests >= shownUsLeast)
        say(`${(took / requests).toFixed(1).padStart(8)} µs  ${name}`);
  }
}

async function profile(
  scene: Scene,
  [one]: readonly Case[],
  seconds: number,
  dir: string,
  say: (line: string) => void,
): Promise<void> {
  if (one === undefined) return;
  const options = `--cpu-prof --cpu-prof-dir=${dir} --cpu-prof-interval=200`;
  await using ours = await startOurs(scene, { env: { NODE_OPTIONS: options } });
  await settle(ours, one);
  const before = cpuOf(ours.pid);
  const fromUs = Number(process.hrtime.bigint() / 1_000n);
  const { requests } = await load(ours, one, Math.max(seconds, longS));
  const toUs = Number(process.hrtime.bigint() / 1_000n);
  const us = cpuSince(before, ours.pid) / requests;
  await ours.stop();
  say(`${one.title}: ${us.toFixed(1)} µs a request, ${requests} requests`);
  for (const line of profileOf(dir, { fromUs, toUs }, us)) say(line);
}
