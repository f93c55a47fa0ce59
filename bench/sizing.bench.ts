// What a host needs for sites of three sizes: memory and processor of the agent, disk of cache, index and spool, time of a clear; and what central needs for
// a million request records. docs/operations/sizing.md has the figures.
//
// The programs are built as they ship and started with the environment of their units. The visitors and the origin are in this process: they share the
// processors with what is measured, so the shares of the agent are its own, and times are those of a busy host. Everything is on loopback, and below TMPDIR.
//
//   npm run bench -- sizing [--site small|medium|large|central] [--seconds S] [--entries N]     N: fewer than the size has, where filling takes too long

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { builtTree } from "../test/support/built-tree.ts";
import { CustomerScript, domain } from "../test/support/customer-script.ts";
import { browser, Edge } from "../test/support/edge.ts";
import { cpuOf, cpuSince, treeOf } from "./serving/cpu.ts";
import { Figures, percentile } from "./support/figures.ts";
import { fillLogs, type FillSite } from "./support/log-fill.ts";
import { LogIntake, type Site } from "./support/log-intake.ts";
import { visitAtPace } from "./support/paced-load.ts";
import { unitEnvironment } from "./support/unit-options.ts";

const kib = 1_024;
const mib = 1_048_576;

type Size = {
  readonly name: string;
  readonly entries: number;
  readonly perSecond: number;
  readonly bytesOf: (no: number) => number;
  readonly sizes: string;
  readonly diskMax: string;
};

/** Of a hundred entries: 60 of 4 KiB, 30 of 20 KiB, 9 of 64 KiB, one of 1 MiB. */
const mixedBytes = (no: number): number => {
  const share = no % 100;
  return (share < 60 ? 4 : share < 90 ? 20 : share < 99 ? 64 : 1_024) * kib;
};
const pageBytes = (): number => 20 * kib;

const sizes: readonly Size[] = [
  {
    name: "small",
    entries: 1_000,
    perSecond: 50,
    bytesOf: pageBytes,
    sizes: "20 KiB each",
    diskMax: "2GiB",
  },
  {
    name: "medium",
    entries: 50_000,
    perSecond: 500,
    bytesOf: pageBytes,
    sizes: "20 KiB each",
    diskMax: "4GiB",
  },
  {
    name: "large",
    entries: 300_000,
    perSecond: 2_000,
    bytesOf: mixedBytes,
    sizes: "4 KiB to 1 MiB",
    diskMax: "16GiB",
  },
];

const fillConnections = 32;
const settleMs = 10_000;
const sampleEveryMs = 2_000;
const logMillions = 3;
/** What central takes in while its memory is measured, records a second. */
const intakeRate = 2_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      site: { type: "string" },
      seconds: { type: "string", default: "60" },
      entries: { type: "string" },
    },
  });
  const figures = new Figures(say);
  say(`on ${availableParallelism()} cores, shared with visitors, origin and whatever else runs`);
  using tree = builtTree();
  for (const size of sizes)
    if (values.site === undefined || values.site === size.name)
      await measureSite(
        tree.main,
        { ...size, entries: Number(values.entries ?? size.entries) },
        Number(values.seconds),
        figures,
      );
  if (values.site === undefined || values.site === "central")
    await measureCentral(tree.main, Number(values.seconds), figures);
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
}

async function measureSite(
  main: string,
  size: Size,
  seconds: number,
  figures: Figures,
): Promise<void> {
  figures.head(
    `${size.name}: ${size.entries.toLocaleString("en")} entries, ${size.sizes}, ${size.perSecond} requests a second`,
  );
  await using origin = await startSizedOrigin(size.bytesOf);
  await using edge = await Edge.prepare();
  {
    using _ = unitEnvironment("accel-central");
    await edge.startCentral(main);
  }
  const script = new CustomerScript(edge, origin.url, size.name);
  await script.enrol();
  edge.changeAgentSettings({ cache: { disk_max: size.diskMax } });
  {
    using _ = unitEnvironment("accel-agent");
    await edge.startAgent(main);
  }
  for (const { run: step } of script.steps().slice(0, 2)) await step();
  const agentDir = join(edge.dir, "agent");
  const idle = cpuOf(edge.agent.pid);
  await sleep(settleMs);
  figures.add("agent before its first visitor", pssMib(edge.agent.pid), "MiB");
  figures.add("of one core then", (cpuSince(idle, edge.agent.pid) / 1_000 / settleMs) * 100, "%");

  const filled = await fill(edge, size.entries);
  figures.add("filled: fetched and stored", filled, "/s");
  await sleep(settleMs);
  const cacheBytes = duBytes(join(agentDir, "cache"));
  const indexBytes = indexBytesIn(join(agentDir, "cache"));
  figures.add("bodies and index on disk", cacheBytes / mib, "MiB");
  figures.add("of these the index with the small bodies", indexBytes / mib, "MiB");
  figures.add("disk by the bytes of the bodies", cacheBytes / bodyBytes(size), "×");

  const served = await serve(edge, size, seconds);
  figures.add("resident (Pss) under load, highest", served.pssMib, "MiB");
  figures.add("of one core", served.cpuPercent, "%");
  figures.add("requests a second", served.perSecond, "/s");
  figures.add("hits", 100 * served.hitShare, "%");
  figures.add("time of an answer, p50", percentile(served.tookMs, 0.5), "ms");
  figures.add("time of an answer, p99", percentile(served.tookMs, 0.99), "ms");
  if (served.failed > 0) figures.add("failed", served.failed, "");

  await measureClear(edge, figures);

  await edge.central.terminate();
  const spool = join(agentDir, "spool");
  const spoolBefore = duBytes(spool);
  const away = await serve(edge, size, seconds);
  const records = away.tookMs.length;
  const spooled = duBytes(spool) - spoolBefore;
  figures.add("spool a million records, central away", ((spooled / records) * 1e6) / mib, "MiB");
  figures.add(
    "spool an hour without central, at this pace",
    ((spooled / records) * size.perSecond * 3_600) / mib,
    "MiB",
  );
  figures.add("resident (Pss) meanwhile, highest", away.pssMib, "MiB");
}

/** A tenth of the entries, by a pattern: the customer's wait and what the agent says. */
async function measureClear(edge: Edge, figures: Figures): Promise<void> {
  const began = performance.now();
  const { status, body } = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
    url_path_patterns: ["path:shelf3"],
  });
  if (status !== 200) throw new Error(`the clear: ${status} ${JSON.stringify(body)}`);
  const waitedMs = performance.now() - began;
  const { deployments } = body as {
    readonly deployments: readonly { readonly state: string; readonly matched?: number }[];
  };
  const [one] = deployments;
  if (one?.state !== "applied") throw new Error(`the clear is ${one?.state}`);
  const more = `${(one.matched ?? 0).toLocaleString("en")} entries matched`;
  figures.add("a clear by pattern, asked until proved", waitedMs, "ms", undefined, more);
}

type Served = {
  readonly pssMib: number;
  readonly cpuPercent: number;
  readonly perSecond: number;
  readonly hitShare: number;
  readonly failed: number;
  readonly tookMs: readonly number[];
};

async function serve(edge: Edge, size: Size, seconds: number): Promise<Served> {
  const ended = new AbortController();
  let highest = 0;
  const watch = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      highest = Math.max(highest, pssMib(edge.agent.pid));
      await sleep(sampleEveryMs, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  };
  const watching = watch();
  const before = cpuOf(edge.agent.pid);
  const began = performance.now();
  const paced = await visitAtPace({
    origin: `http://127.0.0.1:${edge.ports.visitors}`,
    paths: visitedPaths(size, seconds),
    headers: { host: domain, "user-agent": browser },
    perSecond: size.perSecond,
    seconds,
  });
  const wallMs = performance.now() - began;
  const cpuMs = cpuSince(before, edge.agent.pid) / 1_000;
  ended.abort();
  await watching;
  return {
    pssMib: highest,
    cpuPercent: (100 * cpuMs) / wallMs,
    perSecond: paced.perSecond,
    hitShare: paced.hits / paced.tookMs.length,
    failed: paced.failed,
    tookMs: paced.tookMs,
  };
}

/** Few pages are asked for often, and most seldom: half of the requests go to an eighth of the entries. */
function visitedPaths({ entries, perSecond }: Size, seconds: number): readonly string[] {
  let state = 1;
  return Array.from({ length: perSecond * seconds }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return pathOf(Math.floor(entries * (state / 2 ** 32) ** 3));
  });
}

const pathOf = (no: number): string => `/shop/shelf${no % 10}/page-${no.toString(36)}.html`;

async function fill(edge: Edge, entries: number): Promise<number> {
  const pool = new Pool(`http://127.0.0.1:${edge.ports.visitors}`, {
    connections: fillConnections,
  });
  const began = performance.now();
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < entries) {
      const path = pathOf(next++);
      const headers = { host: domain, "user-agent": browser };
      const answer = await pool.request({ path, method: "GET", headers });
      await answer.body.dump();
      if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode}`);
    }
  };
  await Promise.all(Array.from({ length: fillConnections }, one));
  const seconds = (performance.now() - began) / 1_000;
  await pool.close();
  return entries / seconds;
}

function bodyBytes({ entries, bytesOf }: Size): number {
  let sum = 0;
  for (let no = 0; no < entries; no++) sum += bytesOf(no);
  return sum;
}

async function startSizedOrigin(
  bytesOf: (no: number) => number,
): Promise<AsyncDisposable & { readonly url: string }> {
  const text = Buffer.from(
    Array.from({ length: 200_000 }, (_, at) =>
      (Math.imul(at, 2_654_435_761) >>> 0).toString(36),
    ).join(" "),
  );
  const server = createServer((incoming, response) => {
    const no = Number.parseInt(/page-(\w+)\.html/.exec(incoming.url ?? "")?.[1] ?? "0", 36);
    const bytes = bytesOf(no);
    const from = (no * 97) % (text.length - bytes);
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "public, max-age=86400",
      "content-length": bytes,
    });
    response.end(text.subarray(from, from + bytes));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

async function measureCentral(main: string, seconds: number, figures: Figures): Promise<void> {
  figures.head(`central: ${logMillions} million request records, then ${intakeRate} a second more`);
  await using edge = await Edge.prepare();
  using _ = unitEnvironment("accel-central");
  await edge.startCentral(main);
  figures.add("central, empty", pssMib(edge.central.pid), "MiB");
  const site = await makeSite(edge);
  await edge.central.terminate();
  const logs = join(edge.dir, "central", "logs");
  const nowMs = Date.now();
  const dayStart = nowMs - (nowMs % 86_400_000);
  const filled = fillLogs(logs, [site], logMillions * 1_000_000, [dayStart], nowMs);
  figures.add("disk a million records", ((duBytes(logs) / filled.records) * 1e6) / mib, "MiB");
  figures.add("processor a million records", (filled.cpuS / filled.records) * 1e6, "s");
  await edge.startCentral(main);
  figures.add("central with these, at rest", pssMib(edge.central.pid), "MiB");
  const url = `http://127.0.0.1:${edge.ports.central}/agent-api/v1`;
  await using intake = new LogIntake(url, [site], intakeRate);
  const before = cpuOf(edge.central.pid);
  const began = performance.now();
  let highest = 0;
  while (performance.now() - began < seconds * 1_000) {
    highest = Math.max(highest, pssMib(edge.central.pid));
    const query = `deployment_id=${site.id}&domain=${site.domains[0]}&limit=1000`;
    await edge.api.get(`/incominglogs/?${query}`);
    await sleep(sampleEveryMs);
  }
  const cpuMs = cpuSince(before, edge.central.pid) / 1_000;
  const wallMs = performance.now() - began;
  figures.add("resident (Pss) while records arrive and are read", highest, "MiB");
  figures.add("of one core", (100 * cpuMs) / wallMs, "%");
  figures.add("records taken in", intake.records / intake.seconds, "/s");
}

async function makeSite(edge: Edge): Promise<Site> {
  const trial = await edge.api.post("/trial/", { username: "sizing" });
  edge.api.token = Object(trial.body).token;
  const made = Object((await edge.api.post("/deployment-site/", {})).body);
  const domains: FillSite["domains"] = Array.from({ length: 6 }, (_, at) => `d${at}.example.com`);
  for (const name of domains)
    await edge.api.post("/domain/", { name, deployment_site_id: made.id });
  return { id: made.id, name16: made.name16, secret16: made.secret16, domains };
}

/** What the process and its children have alone, and their part of what is shared. */
function pssMib(pid: number): number {
  let kibs = 0;
  for (const one of treeOf(pid)) {
    try {
      const rollup = readFileSync(`/proc/${one}/smaps_rollup`, "latin1");
      kibs += Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0);
    } catch {
      // It has ended.
    }
  }
  return kibs / 1_024;
}

function duBytes(directory: string): number {
  return Number(execFileSync("du", ["-sk", directory], { encoding: "utf8" }).split("\t")[0]) * kib;
}

function indexBytesIn(directory: string): number {
  return readdirSync(directory)
    .filter((name) => name.includes(".db"))
    .reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
}
