// Clears of an index of a million entries as the agent's main thread gives them: the real index thread and matcher, without visitors. Beside each the bare
// limit: the same FTS5 query on a connection of this process.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { openSqlite } from "../../src/base/sqlite.ts";
import { startIndexer, type IndexClient } from "../../src/agent/cache/index/index-client.ts";
import { openAgentDb, indexMemory } from "../../src/agent/link/agent-db.ts";
import {
  directlyIn,
  everything,
  exactPatternOf,
  parameter,
  under,
} from "../../src/core/patterns/pattern-recipes.ts";
import { until } from "../../test/support/until.ts";
import { percentile, type Figures } from "./figures.ts";
import { shopPath, siteDomains, type SitePaths } from "./site-paths.ts";

const smallClears = 200;
const smallMatchesMax = 1_000;
const clearsBeside = 40;
const [bigDomain, neighbour] = siteDomains;

type Cleared = {
  readonly matched: number;
  /** Not matched within its budget, because the host was too busy: everything of the domain went. */
  readonly widened: boolean;
  readonly invisibleMs: number;
  readonly answeredMs: number;
  readonly gone: Promise<{ readonly removed: number; readonly goneMs: number }>;
};

export async function openClearing(
  stateDir: string,
): Promise<{ readonly client: IndexClient } & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const agent = join(import.meta.dirname, "../../src/agent");
  const db = stack.use(openAgentDb(join(stateDir, "agent.db")));
  const stop = new AbortController();
  const client = stack.use(
    startIndexer({
      entry: pathToFileURL(join(agent, "indexer.ts")),
      matcherEntry: pathToFileURL(join(agent, "matcher.ts")),
      stateDir,
      diskMax: 2 ** 40,
      memoryMax: 2 ** 24,
      workers: 1,
      memory: indexMemory(db),
      registry: new Registry(),
      health: new Health(() => new Date()),
      log: silentLog(),
      stop: stop.signal,
    }),
  );
  await until("the index is open", async () => (await client.stats()).isOpen, 30_000);
  const owned = stack.move();
  return {
    client,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await owned.disposeAsync();
    },
  };
}

export async function clearNow(
  client: IndexClient,
  patterns: readonly string[],
  domain: string = bigDomain,
): Promise<Cleared> {
  const began = performance.now();
  const order = { clearId: randomUUID(), domain, host: null, patterns, seq: 0 };
  const { applied, gone } = client.clear(order);
  gone.catch(() => undefined); // Whoever waits for it is told.
  const { matched, invisibleMs, widened } = await applied;
  return { matched, widened, invisibleMs, answeredMs: performance.now() - began, gone };
}

/** Milliseconds of the FTS5 query alone, the least of three. */
export class BareQueries implements Disposable {
  readonly #db;
  readonly #ids;

  constructor(stateDir: string) {
    this.#db = openSqlite(join(stateDir, "cache/index.db"), { sync: "normal", readonly: true });
    this.#ids = this.#db
      .prepare<[string], number>("SELECT rowid FROM entry_text WHERE entry_text MATCH ?")
      .pluck();
  }

  ask(pattern: string): { readonly ms: number; readonly matches: number } {
    let ms = Infinity;
    let matches = 0;
    for (let round = 0; round < 3; round++) {
      const began = performance.now();
      matches = this.#ids.all(pattern).length;
      ms = Math.min(ms, performance.now() - began);
    }
    return { ms, matches };
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}

/** Of recipes of all kinds those that match 1 to 1,000 entries, over all domains. */
function smallPatterns(paths: SitePaths, bare: BareQueries): { pattern: string; bareMs: number }[] {
  const chosen: { pattern: string; bareMs: number }[] = [];
  for (let no = 0; chosen.length < smallClears; no += 997) {
    const entry = paths.entry(no);
    if (entry.domain !== bigDomain) continue;
    const url = entry.kind === "static" ? `/${entry.path}` : entry.path;
    const directory = url.slice(0, url.lastIndexOf("/", url.length - 2) + 1);
    const recipes = [
      exactPatternOf(entry),
      directlyIn(directory),
      under(directory),
      `path:"${directory.replaceAll(/[^a-z0-9]+/gi, " ").trim()}" AND mime:"${entry.mime}"`,
      `${parameter(`page=${no % 50}`)} AND ext:html`,
    ];
    const pattern = recipes[no % recipes.length] ?? everything;
    const { ms, matches } = bare.ask(pattern);
    if (matches >= 1 && matches <= smallMatchesMax) chosen.push({ pattern, bareMs: ms });
  }
  return chosen;
}

export async function measureClears(
  stateDir: string,
  paths: SitePaths,
  figures: Figures,
): Promise<void> {
  await using opened = await openClearing(stateDir);
  const { client } = opened;
  using bare = new BareQueries(stateDir);
  await clearNow(client, [exactPatternOf(paths.entry(1))]);
  const small = smallPatterns(paths, bare);
  const took: Cleared[] = [];
  for (const { pattern } of small) {
    const cleared = await clearNow(client, [pattern]);
    took.push(cleared);
    await cleared.gone;
  }
  const invisible = took.map(({ invisibleMs }) => invisibleMs);
  const bareMs = percentile(
    small.map((asked) => asked.bareMs),
    0.5,
  );
  const matched = took.map((cleared) => cleared.matched);
  figures.head(
    `${small.length} clears of ${Math.min(...matched)} to ${Math.max(...matched)} entries`,
  );
  const ratio = `${(percentile(invisible, 0.5) / bareMs).toFixed(1)} × the bare query`;
  figures.add("time to invisible, p50", percentile(invisible, 0.5), "ms", undefined, ratio);
  figures.add("time to invisible, p99", percentile(invisible, 0.99), "ms", { most: 100 });
  figures.add("widened", took.filter(({ widened }) => widened).length, "", { most: 0 });
  figures.add(
    "answered (durable), p99",
    percentile(
      took.map(({ answeredMs }) => answeredMs),
      0.99,
    ),
    "ms",
  );
  await measureLarge(client, bare, paths, figures);
}

async function measureLarge(
  client: IndexClient,
  bare: BareQueries,
  paths: SitePaths,
  figures: Figures,
): Promise<void> {
  figures.head("large clears, one after the other");
  const show = (name: string, cleared: Cleared, bareMs: number, most?: number): void =>
    figures.add(
      `time to invisible, ${name}: ${cleared.matched.toLocaleString("en")}`,
      cleared.invisibleMs,
      "ms",
      most === undefined ? undefined : { most },
      `${cleared.widened ? "WIDENED; " : ""}${(cleared.invisibleMs / bareMs).toFixed(1)} × the bare query; answered after ${cleared.answeredMs.toFixed(0)} ms`,
    );
  const shop = under(shopPath);
  const { ms: shopMs } = bare.ask(shop);
  const { ms: allMs } = bare.ask(everything);
  let cpu = process.cpuUsage();
  const cleared = await clearNow(client, [shop]);
  show("all below one directory", cleared, shopMs, 600);
  showDeletion("background deletion with bodies", await cleared.gone, cpu, figures, 40_000);
  cpu = process.cpuUsage();
  const rest = await clearNow(client, [everything]);
  show("everything of the domain", rest, allMs, 600);
  const beside = await clearBeside(client, paths);
  showDeletion("deletion of the rest beside these clears", await rest.gone, cpu, figures);
  const besideName = `time to invisible of ${beside.length} clears meanwhile, p99`;
  const besideMs = beside.map(({ invisibleMs }) => invisibleMs);
  figures.add(besideName, percentile(besideMs, 0.99), "ms", { most: 100 });
  for (const { gone } of beside) await gone; // Their proofs as well.
}

/** One after the other, of a neighbour's entries. */
async function clearBeside(client: IndexClient, paths: SitePaths): Promise<Cleared[]> {
  const cleared: Cleared[] = [];
  for (let no = 0; cleared.length < clearsBeside; no++) {
    const entry = paths.entry(no);
    if (entry.domain !== neighbour) continue;
    cleared.push(await clearNow(client, [exactPatternOf(entry)], neighbour));
  }
  return cleared;
}

/** `before`: CPU time that this process, which has nothing else to do, had taken when the clear was given. By it the rate does not hang on the host's other work. */
function showDeletion(
  name: string,
  { removed, goneMs }: { readonly removed: number; readonly goneMs: number },
  before: NodeJS.CpuUsage,
  figures: Figures,
  least?: number,
): void {
  const { user, system } = process.cpuUsage(before);
  const byCpu = Math.round((removed * 1_000_000) / (user + system)).toLocaleString("en");
  const limit = least === undefined ? undefined : { least };
  figures.add(name, (removed * 1_000) / goneMs, "entries/s", limit, `${byCpu}/s of CPU time`);
}
