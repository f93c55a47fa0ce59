// How fast `/incominglogs/` is over 20,000,000 retained records while new ones are taken in, and whether the removal of a day is noticed beside it.
// The real central as a process, asked over HTTP; the records are written by its own store before it starts. Peer: the same page without the order by domain and time.

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { silentLog } from "../src/base/log.ts";
import { openSqlite } from "../src/base/sqlite.ts";
import { sleep } from "../src/base/wait.ts";
import { LogThread } from "../src/central/agents/log-client.ts";
import { batchRecordsMax } from "../src/wire/request-log.ts";
import { Edge } from "../test/support/edge.ts";
import { Figures, percentile } from "./support/figures.ts";
import { batchOf, fillLogs } from "./support/log-fill.ts";
import { LogIntake, takenFrom, type Site } from "./support/log-intake.ts";

const records = Number(process.env["LOG_READ_RECORDS"] ?? 20_000_000);
const sitesCount = 10;
const domainsOfSite = 6;
const days = 4;
const dayMs = 86_400_000;
const readsOfKind = 250;
/** Taken in beside the reads, records a second. */
const intakeRate = 10_000;

type Kind = readonly [name: string, path: (at: number) => string];

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const sites = await makeSites(edge);
  await edge.central.terminate();
  const logs = join(edge.dir, "central", "logs");
  const nowMs = Date.now();
  fill(figures, logs, sites, nowMs);
  await edge.startCentral();
  await readBesideIntake(figures, edge, sites, nowMs);
  scanAsPeer(figures, logs, sites);
  await edge.central.terminate();
  await removeDay(figures, logs, sites, nowMs);
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

async function makeSites(edge: Edge): Promise<readonly Site[]> {
  const trial = await edge.api.post("/trial/", { username: "reader" });
  edge.api.token = Object(trial.body).token;
  const sites: Site[] = [];
  for (let no = 0; no < sitesCount; no++) {
    const made = Object((await edge.api.post("/deployment-site/", {})).body);
    const domains = Array.from(
      { length: domainsOfSite },
      (_, at) => `d${at}.site${no}.example.com`,
    );
    for (const name of domains) {
      const body = { name, deployment_site_id: made.id };
      const { status } = await edge.api.post("/domain/", body);
      if (status !== 201) throw new Error(`the domain was not made: ${status}`);
    }
    sites.push({ id: made.id, name16: made.name16, secret16: made.secret16, domains });
  }
  return sites;
}

function fill(figures: Figures, logs: string, sites: readonly Site[], nowMs: number): void {
  const today = nowMs - (nowMs % dayMs);
  const starts = Array.from({ length: days }, (_, at) => today - (days - 1 - at) * dayMs);
  figures.head("taking in: decode, check and commit, in batches of 2,000, each synced");
  const filled = fillLogs(logs, sites, records, starts, nowMs);
  const least = { least: 50_000 };
  figures.add("records a second of CPU time", filled.records / filled.cpuS, "/s", least);
  figures.add("records a second of wall clock", filled.records / filled.wallS, "/s");
  figures.add("records retained", filled.records, "");
  figures.add("bytes a record on disk", filled.bytes / filled.records, "B");
}

async function readBesideIntake(
  figures: Figures,
  edge: Edge,
  sites: readonly Site[],
  nowMs: number,
): Promise<void> {
  figures.head(`/incominglogs/ while ${intakeRate} records a second are taken in`);
  const taken = new LogIntake(
    `http://127.0.0.1:${edge.ports.central}/agent-api/v1`,
    sites,
    intakeRate,
  );
  await using _ = taken;
  const all: number[] = [];
  for (const [name, path] of kindsOf(sites, nowMs)) {
    const times: number[] = [];
    const cpuBefore = cpuMs(edge.central.pid);
    for (let at = 0; at < readsOfKind; at++) times.push(await timed(edge, path(at)));
    all.push(...times);
    const cpu = (cpuMs(edge.central.pid) - cpuBefore) / readsOfKind;
    const more = `p50 ${percentile(times, 0.5).toFixed(1)} ms, central's CPU ${cpu.toFixed(1)} ms a read, intake included`;
    figures.add(`${name}, p99`, percentile(times, 0.99), "ms", { most: 100 }, more);
  }
  const walked = await walk(edge, sites, 100);
  all.push(...walked);
  figures.add("each page of a walk by cursor, p99", percentile(walked, 0.99), "ms", { most: 100 });
  figures.add("all reads, p99", percentile(all, 0.99), "ms", { most: 100 });
  figures.add("records taken in meanwhile", taken.records / taken.seconds, "/s");
}

function kindsOf(sites: readonly Site[], nowMs: number): readonly Kind[] {
  const site = (at: number): Site => {
    const found = sites[at % sites.length];
    if (found === undefined) throw new Error("there are no sites");
    return found;
  };
  const of = (at: number, domain: number): string =>
    `deployment_id=${site(at).id}&domain=${site(at).domains[domain]}`;
  // Spread over what is retained, the same in every run.
  const past = (at: number): number =>
    Math.round(nowMs / 1_000 - (((at * 7_919) % 1_000) / 1_000) * (days - 1) * 86_400);
  return [
    ["newest 1,000 of a busy domain", (at) => of(at, 0)],
    ["newest 1,000 of a quiet domain", (at) => of(at, domainsOfSite - 3)],
    [
      "an hour anywhere, busy domain",
      (at) => `${of(at, 0)}&since=${past(at) - 3_600}&until=${past(at)}`,
    ],
    [
      "a second anywhere, busy domain",
      (at) => `${of(at, 0)}&since=${past(at) - 1}&until=${past(at)}`,
    ],
    ["a domain with a handful of records", (at) => of(at, domainsOfSite - 2)],
    ["a domain with none", (at) => of(at, domainsOfSite - 1)],
    [
      "an hour long before all, busy domain",
      (at) => `${of(at, 0)}&since=1000000000&until=1000003600`,
    ],
    ["all domains of a deployment, 100 each", (at) => `deployment_id=${site(at).id}&limit=100`],
  ];
}

async function timed(edge: Edge, query: string): Promise<number> {
  const began = performance.now();
  const { status } = await edge.api.get(`/incominglogs/?${query}`);
  if (status !== 200) throw new Error(`${query}: ${status}`);
  return performance.now() - began;
}

async function walk(edge: Edge, sites: readonly Site[], pages: number): Promise<readonly number[]> {
  const [site] = sites;
  let path = `/incominglogs/?deployment_id=${site?.id}&domain=${site?.domains[0]}`;
  const times: number[] = [];
  const seen = new Set<number>();
  for (let page = 0; page < pages; page++) {
    const began = performance.now();
    const { body, headers } = await edge.api.get(path);
    times.push(performance.now() - began);
    for (const { connection } of Object(body).logs_data.deployments[0].domains[0].domain_logs) {
      if (connection >= takenFrom) continue; // What is taken in meanwhile repeats one batch.
      if (seen.has(connection)) throw new Error(`record ${connection} came twice`);
      seen.add(connection);
    }
    const next = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    if (next === undefined) throw new Error("the walk ended early");
    path = next.replace("/presentation-api/v1", "");
  }
  return times;
}

/** What the same page costs without the order by domain and time: the newest day's rows, newest first, until a thousand are found or all are seen. */
function scanAsPeer(figures: Figures, logs: string, sites: readonly Site[]): void {
  const newest = dayFiles(logs).at(-1) ?? "";
  const [site] = sites;
  const db = openSqlite(join(logs, newest), { sync: "normal", readonly: true });
  const rows = db.prepare<[string, number], { line: string }>(
    "SELECT line FROM record NOT INDEXED WHERE json_extract(line, '$.domain') = ? ORDER BY id DESC LIMIT ?",
  );
  const began = performance.now();
  rows.all(site?.domains[domainsOfSite - 2] ?? "", 1_000);
  db.close();
  figures.add("peer: the handful by a scan of one day's file", performance.now() - began, "ms");
}

/** On the store's own threads in this process, so that what happens beside the removal is all that happens. */
async function removeDay(
  figures: Figures,
  logs: string,
  [site]: readonly Site[],
  nowMs: number,
): Promise<void> {
  if (site === undefined) throw new Error("there are no sites");
  figures.head("a day removed by retention, beside reads and intake at full speed");
  await using thread = new LogThread({
    entry: new URL("../src/central/logger.ts", import.meta.url),
    directory: logs,
    log: silentLog(),
    broken: (path) => {
      throw new Error(`${path} is broken`);
    },
  });
  const { bytes } = await thread.stats(60_000);
  const quiet = await beside(thread, site, sleep(1_500, AbortSignal.timeout(10_000)));
  const began = performance.now();
  const removing = thread.retain({ ageMs: Number.MAX_SAFE_INTEGER, bytesMax: bytes - 1 }, nowMs);
  const busy = await beside(thread, site, removing);
  const tookS = (performance.now() - began) / 1_000;
  const left = await thread.stats(60_000);
  figures.add("until the room is given back", tookS, "s", { most: 5 }, (await removing).join());
  figures.add("given back", (bytes - left.bytes) / 2 ** 20, "MiB");
  figures.add(
    "slowest read meanwhile",
    Math.max(...busy.reads),
    "ms",
    { most: 100 },
    beforeIt(quiet.reads),
  );
  figures.add(
    "slowest commit meanwhile",
    Math.max(...busy.appends),
    "ms",
    undefined,
    beforeIt(quiet.appends),
  );
}

const beforeIt = (times: readonly number[]): string =>
  `before it: ${Math.max(...times).toFixed(1)} ms in ${times.length}`;

type Beside = { readonly reads: readonly number[]; readonly appends: readonly number[] };

/** Reads and batches one after the other until `end`. */
async function beside(thread: LogThread, site: Site, end: Promise<unknown>): Promise<Beside> {
  const ended = new AbortController();
  const over = end.finally(() => ended.abort());
  const repeat = async (action: (at: number) => Promise<unknown>): Promise<number[]> => {
    const times: number[] = [];
    for (let at = 0; !ended.signal.aborted || at < 3; at++) {
      const began = performance.now();
      await action(at);
      times.push(performance.now() - began);
    }
    return times;
  };
  const lane = { epoch: randomBytes(8).toString("hex"), no: 1 };
  const body = Buffer.from(batchOf(site, 0, Date.now(), 1));
  const bounds = { limit: 1_000, after: undefined, since: undefined, until: undefined };
  const [reads, appends] = await Promise.all([
    repeat(async () => thread.read({ siteId: site.id, domain: site.domains[0] ?? "", ...bounds })),
    repeat(async (at) =>
      thread.append({
        siteId: site.id,
        lane,
        firstSeq: at * batchRecordsMax + 1,
        lastSeq: (at + 1) * batchRecordsMax,
        encoding: "identity",
        body,
        nowMs: Date.now(),
      }),
    ),
    over,
  ]);
  return { reads, appends };
}

/** Of a process so far: where others use the machine, it tells more than the clock. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ", 2)[1]?.split(" ") ?? [];
  const ticks = Number(fields[11]) + Number(fields[12]);
  return ticks * 10; // 100 a second.
}

function dayFiles(logs: string): readonly string[] {
  return readdirSync(logs)
    .filter((name) => name.endsWith(".db"))
    .sort();
}
