// Limits of requests: what a rule costs, and whom it refuses, beside nginx's limit_req in the same run. The server has core 0 and one worker, the visitors core 1. All
// requests come through a trusted proxy, each from one of 100,000 addresses.
//
//   npm run bench -- limits [--rounds N] [--seconds S] [--crowd S]
//
//   cost    microseconds of processor time a request, of a hit in the cache: of a host without limits, of one with a rule that the path does not meet, with one that lets it
//           in, and refused with 429. nginx has the rule at one path and nothing at the others, so it has no host without limits
//   crowd   10,000 requests a second: nine of ten from 100,000 addresses that keep below the rule, one from 50 addresses that do not. An honest address asks every 11 s on
//           average, and may ask once a second with 5 at once: whoever is refused of them is refused falsely

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeAuthority } from "../test/support/x509.ts";
import { addressOf, askAll, crowdAsks, requestOf, type Crowd } from "./limits/visitors.ts";
import { host, openHost, tlsOriginHost } from "./serving/cases.ts";
import { cpuOf, cpuSince } from "./serving/cpu.ts";
import { startOrigin } from "./serving/origin.ts";
import { answering, startNginx, startOurs, type Server } from "./serving/servers.ts";
import { Figures, percentile } from "./support/figures.ts";
import { medianWithInterval } from "./support/interval.ts";

const open = "/hit/0";
/** In bench/serving/nginx.conf the same: one a second, five at once. */
const limited = "/hit/limited/0";
const rule = { path: "/hit/limited/**", rate: 1, burst: 5 };
const addresses = 100_000;
const crowd: Crowd = { honest: addresses, greedy: 50, greedyShare: 0.1 };
const perSecond = 10_000;
const connections = 64;
const falseShareMost = 0.001;
const warmUpS = 0.5;
/** The name of the server of this tree. */
const ours = "ours";

type Kind = "bare" | "open" | "limited" | "refused";
const titles: Readonly<Record<Kind, string>> = {
  bare: "a hit, of a host without limits",
  open: "a hit that meets no rule of its host",
  limited: "a hit, counted and let in",
  refused: "refused with 429",
};

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "9" },
      seconds: { type: "string", default: "1.5" },
      crowd: { type: "string", default: "20" },
    },
  });
  if (availableParallelism() < 2) throw new Error("limits needs two cores: one for the server");
  execFileSync("taskset", ["-apc", "1", String(process.pid)], { stdio: "ignore" });
  const dir = mkdtempSync(join(tmpdir(), "accel-limits-"));
  const figures = new Figures(say);
  try {
    await using stack = new AsyncDisposableStack();
    const authority = makeAuthority();
    const certificate = authority.issue({ names: [host, tlsOriginHost, "localhost"] });
    const rootFile = join(dir, "root.pem");
    writeFileSync(rootFile, authority.root.pem);
    const origin = stack.use(await startOrigin({ key: certificate.key, cert: certificate.chain }));
    const scene = { origin, certificate, rootFile, badRanges: [] };
    const agent = await startOurs(scene, { name: ours, limits: { requests: [rule] } });
    const servers: Server[] = [stack.use(agent)];
    const nginx = await startNginx(scene);
    if ("missing" in nginx) say(`nginx: skipped, ${nginx.missing}`);
    else servers.push(stack.use(nginx));
    for (const server of servers) await untilStored(server);
    await compareCosts(servers, Number(values.rounds), Number(values.seconds), figures);
    for (const server of servers) await judgeCrowd(server, Number(values.crowd), figures);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "all limits are met" : `MISSED: ${figures.missed.join("; ")}`);
}

async function untilStored({ name, http }: Server): Promise<void> {
  const hits = [
    [host, open],
    [host, limited],
    [openHost, open],
  ] as const;
  for (const [on, path] of name === ours ? hits : hits.slice(0, 2))
    await answering(`${on}${path} at ${name}`, async () => {
      const asking = { connections: 1, seconds: 0.1, status: 200 };
      // Each time another address, so that no rule refuses it.
      const { expected } = await askAll(http, () => requestOf(path, anyAddress(), on), asking);
      if (expected === 0) throw new Error("not yet");
    });
}

function anyAddress(): string {
  return addressOf(Math.floor(Math.random() * addresses), false);
}

/** Made before, so that the client's cost is the same whatever the case. */
function requestsOf(kind: Kind): (no: number) => string {
  if (kind === "refused") {
    const one = requestOf(limited, addressOf(0, true));
    return () => one;
  }
  const path = kind === "limited" ? limited : open;
  const on = kind === "bare" ? openHost : host;
  const all = Array.from({ length: addresses }, (_, no) =>
    requestOf(path, addressOf(no, false), on),
  );
  let turn = 0;
  // From round to round the turn goes on: an address that asked lately would be refused.
  return () => all[turn++ % addresses] ?? "";
}

const kinds = ["bare", "open", "limited", "refused"] as const;

function kindsOf({ name }: Server): readonly Kind[] {
  return name === ours ? kinds : kinds.filter((kind) => kind !== "bare");
}

async function compareCosts(
  servers: readonly Server[],
  rounds: number,
  seconds: number,
  figures: Figures,
): Promise<void> {
  figures.head("processor time of a request, µs");
  const rows = servers.map((server) => ({ server, next: nextRequests(), us: noCosts() }));
  for (let round = -1; round < rounds; round++)
    for (const kind of kinds)
      for (const { server, next, us } of rows) {
        if (!kindsOf(server).includes(kind)) continue;
        const asking = { connections, seconds, status: kind === "refused" ? 429 : 200 };
        await askAll(server.http, next[kind], { ...asking, seconds: warmUpS });
        const before = cpuOf(server.pid);
        const { expected, others } = await askAll(server.http, next[kind], asking);
        if (others > expected / 100)
          throw new Error(
            `${server.name}, ${titles[kind]}: ${others} of ${expected + others} were answered otherwise`,
          );
        // The first round is for compilers and caches.
        if (round >= 0) us[kind].push(cpuSince(before, server.pid) / (expected + others));
      }
  for (const kind of kinds)
    for (const { server, us } of rows)
      if (us[kind].length > 0)
        figures.add(`${server.name}: ${titles[kind]}`, percentile(us[kind], 0.5), "µs");
  for (const { server, us } of rows) {
    const differ = (title: string, more: readonly number[], less: readonly number[]): void => {
      const { median, from, to } = medianWithInterval(
        more.map((cost, round) => cost - (less[round] ?? cost)),
      );
      const interval = `95 %: ${from.toFixed(2)} to ${to.toFixed(2)}`;
      figures.add(`${server.name}: ${title}`, median, "µs", undefined, interval);
    };
    differ("what a rule adds", us.limited, us.open);
    if (us.bare.length > 0) differ("what a rule adds to what does not meet it", us.open, us.bare);
  }
}

function nextRequests(): Readonly<Record<Kind, (no: number) => string>> {
  return {
    bare: requestsOf("bare"),
    open: requestsOf("open"),
    limited: requestsOf("limited"),
    refused: requestsOf("refused"),
  };
}

function noCosts(): Record<Kind, number[]> {
  return { bare: [], open: [], limited: [], refused: [] };
}

async function judgeCrowd(server: Server, seconds: number, figures: Figures): Promise<void> {
  figures.head(`${server.name}: 100,000 addresses, 10,000 requests a second`);
  const before = cpuOf(server.pid);
  const asking = { connections, seconds, perSecond };
  const said = await crowdAsks(server.http, limited, crowd, asking);
  const us = cpuSince(before, server.pid) / said.requests;
  const isOurs = server.name === ours;
  figures.add("requests a second", said.requests / said.seconds, "/s");
  figures.add("processor time of a request", us, "µs");
  const falsely = said.honest.refused / Math.max(1, said.honest.asked);
  const counts = `${said.honest.refused} of ${said.honest.asked}`;
  figures.add(
    "false 429",
    falsely * 100,
    "%",
    isOurs ? { most: falseShareMost * 100 } : undefined,
    counts,
  );
  const allowed = crowd.greedy * (rule.burst + rule.rate * said.seconds);
  const greedy = `${said.greedy.letIn} of ${said.greedy.asked}`;
  figures.add(
    "greedy addresses: let in, of what the rule allows",
    said.greedy.letIn / allowed,
    "×",
    isOurs ? { most: 1 } : undefined,
    greedy,
  );
}
