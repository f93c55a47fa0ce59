// The cache as it runs: index thread, matcher process, and a worker's side opened in the test's own thread.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { openSqlite } from "../../../src/base/sqlite.ts";
import type { ResponseCache } from "../../../src/agent/accelerator/cached/cache-port.ts";
import type { CommitOutcome, EntryKey, EntryMeta } from "../../../src/agent/cache/entry.ts";
import {
  startIndexer,
  type IndexClient,
  type IndexerOptions,
} from "../../../src/agent/cache/index/index-client.ts";
import type { IndexFacts, IndexMemory } from "../../../src/agent/cache/index/opening.ts";
import { SharedHeader } from "../../../src/agent/cache/index/shared-header.ts";
import { openWorkerCache, type WorkerCache } from "../../../src/agent/cache/worker/worker-cache.ts";
import { until } from "../../support/until.ts";

const agent = join(import.meta.dirname, "../../../src/agent");
const indexerEntry = pathToFileURL(join(agent, "indexer.ts"));
const matcherEntry = pathToFileURL(join(agent, "matcher.ts"));

export type Rig = {
  readonly client: IndexClient;
  readonly cache: WorkerCache;
  readonly health: Health;
  readonly header: SharedHeader;
} & AsyncDisposable;

export function openRig(stateDir: string, changes: Partial<IndexerOptions> = {}): Rig {
  const health = new Health(() => new Date());
  const stop = new AbortController();
  const client = startIndexer({
    entry: indexerEntry,
    matcherEntry,
    stateDir,
    diskMax: 64 * 2 ** 20,
    memoryMax: 2 ** 20,
    workers: 1,
    memory: memoryOf(stateDir),
    registry: new Registry(),
    health,
    log: silentLog(),
    stop: stop.signal,
    matchBudgetMs: 10_000, // On a busy host too; what is over budget has tests of its own.
    ...changes,
  });
  const { init, port } = client.workerInit();
  const cache = openWorkerCache(init, port);
  return {
    client,
    cache,
    health,
    header: new SharedHeader(init.header),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      cache[Symbol.dispose]();
      await client[Symbol.asyncDispose]();
    },
  };
}

/** What agent.db remembers, as a file beside the cache. `known`: what it says whatever was noted. */
export function memoryOf(stateDir: string, known: Partial<IndexFacts> = {}): IndexMemory {
  const path = join(stateDir, "memory.json");
  const noted = (): IndexFacts => {
    const nothing = { epoch: null, clearSeq: 0, clearNo: 0, opening: null };
    try {
      return { ...nothing, ...JSON.parse(readFileSync(path, "utf8")) };
    } catch {
      return nothing;
    }
  };
  return {
    read: () => ({ ...noted(), ...known }),
    note: (changes) => writeFileSync(path, JSON.stringify({ ...noted(), ...changes })),
  };
}

/** When the worker sees an open index. */
export async function openedRig(
  stateDir: string,
  changes: Partial<IndexerOptions> = {},
): Promise<Rig> {
  const rig = openRig(stateDir, changes);
  await viewArrived(rig);
  return rig;
}

/** Storing works only with a view; a probe of a domain of its own tells. */
export function viewArrived({ cache }: Pick<Rig, "cache">): Promise<unknown> {
  const key = keyOf({ domain: "probe.test", host: "probe.test" });
  return until(
    "the worker sees the index",
    async () => (await store(cache, key)).kind === "stored",
  );
}

export function keyOf(changes: Partial<EntryKey> = {}): EntryKey {
  const domain = changes.domain ?? "a.test";
  return { domain, host: domain, kind: "generated", path: "/", query: "", ...changes };
}

export function metaOf(changes: Partial<EntryMeta> = {}): EntryMeta {
  return {
    status: 200,
    headers: [["content-type", "text/html"]],
    mime: "text/html",
    vary: null,
    storedAtMs: 1_700_000_000_000,
    initialAgeS: 0,
    freshForS: 60,
    sourceNo: 0,
    digest: null,
    ...changes,
  };
}

/** Begins a body of a response that is fetched now. */
export function begin(cache: ResponseCache, key: EntryKey): ReturnType<ResponseCache["begin"]> {
  return cache.begin(key, cache.invalidationMark(key));
}

/** As a worker does it: the source number first, then the body, then the commit. `invalidationMark`: of a response that was fetched before. */
export async function store(
  cache: ResponseCache,
  key: EntryKey,
  body = "hello",
  {
    invalidationMark = cache.invalidationMark(key),
    ...meta
  }: Partial<EntryMeta> & { readonly invalidationMark?: number } = {},
): Promise<CommitOutcome> {
  const sourceNo = cache.sourceNo();
  const writer = cache.begin(key, invalidationMark);
  if ((await writer.write(Buffer.from(body))) === "given-up") {
    writer.abort();
    return { kind: "failed", reason: "not written" };
  }
  return writer.commit(metaOf({ sourceNo, ...meta }));
}

export async function bodyOf(cache: ResponseCache, key: EntryKey): Promise<string | undefined> {
  const entry = cache.find(key)[0];
  const body = entry === undefined ? undefined : await cache.open(entry);
  if (body === undefined || body instanceof Uint8Array)
    return body === undefined ? undefined : Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export const isHit = (cache: ResponseCache, key: EntryKey): boolean => cache.find(key).length > 0;

let clears = 0;

/** Resolves when the clear is applied. */
export function clear(
  { client }: Pick<Rig, "client">,
  patterns: readonly string[],
  changes: {
    domain?: string;
    host?: string | null;
    seq?: number;
    clearId?: string;
    isSoft?: boolean;
  } = {},
): ReturnType<IndexClient["clear"]> {
  return client.clear({
    clearId: `clear-${++clears}`,
    domain: "a.test",
    host: null,
    patterns,
    seq: 0,
    ...changes,
  });
}

/** Changes index.db behind its owner's back. */
export function tamper(stateDir: string, sql: string): void {
  const db = openSqlite(join(stateDir, "cache/index.db"), { sync: "full" });
  db.exec(sql);
  db.close();
}

/** An entry for a thread or process that does what the test needs; the directory is the test's. */
export function entryScript(directory: string, text: string): URL {
  const path = join(directory, "entry.mjs");
  writeFileSync(path, text);
  return pathToFileURL(path);
}

/** The index thread, ending whenever `killThread` was called. */
export function mortalIndexer(directory: string): URL {
  return entryScript(
    directory,
    `import { rmSync } from "node:fs";
     import { workerData } from "node:worker_threads";
     await import(${JSON.stringify(indexerEntry.href)});
     setInterval(() => {
       try { rmSync(workerData.directory + "/die"); } catch { return; }
       process.exit(3);
     }, 5);`,
  );
}

export function killThread(stateDir: string): void {
  writeFileSync(join(stateDir, "cache/die"), "");
}

/** Paths of all bodies on disk. */
export function objectFiles(stateDir: string): string[] {
  const objects = join(stateDir, "cache/objects");
  return readdirSync(objects, { recursive: true, encoding: "utf8" })
    .filter((path) => path.includes("/"))
    .map((path) => join(objects, path));
}

/** How many bodies stand in index.db. */
export function inlineBodies(stateDir: string): number {
  const db = openSqlite(join(stateDir, "cache/index.db"), { sync: "normal", readonly: true });
  const count = db.prepare<[], number>("SELECT count(*) FROM body").pluck().get() ?? 0;
  db.close();
  return count;
}
