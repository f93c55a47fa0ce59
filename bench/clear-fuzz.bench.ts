// The worst clears that the validator lets through, on an index of 1,000,000 entries: no clear may take over 2.5 s until nothing of it is servable, and none may
// hold up what is stored meanwhile for that long.
//
// First single patterns are sought that take the matcher longest: families known to be bad, then changes of the worst so far. Then 1, 8 and 64 of the
// worst are given as clears, while a worker stores a response every 20 ms.

import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { openPatternCheck, type PatternCheck } from "../src/base/pattern-check.ts";
import type { IndexClient } from "../src/agent/cache/index/index-client.ts";
import { MatchProcess } from "../src/agent/cache/clearing/matcher-child.ts";
import { openWorkerCache, type WorkerCache } from "../src/agent/cache/worker/worker-cache.ts";
import { openAgentDb, indexMemory } from "../src/agent/link/agent-db.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { fillIndex } from "./support/big-index.ts";
import { Figures, percentile } from "./support/figures.ts";
import { openClearing } from "./support/scale-clears.ts";
import { siteDomains, SitePaths } from "./support/site-paths.ts";
import { changed, families } from "./support/worst-patterns.ts";

const entries = 1_000_000;
const searchMs = 60_000;
/** As the index thread gives it. */
const budgetMs = 1_500;
const invisibleMsMax = 2_500;
const storeEveryMs = 20;

type Timed = { readonly pattern: string; readonly ms: number };

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  using dir = tempDir();
  const stateDir = dir.path;
  mkdirSync(join(stateDir, "cache"), { recursive: true });
  const paths = new SitePaths();
  {
    using db = openAgentDb(join(stateDir, "agent.db"));
    figures.add(
      `${entries.toLocaleString("en")} entries, written in`,
      await fillIndex(stateDir, indexMemory(db), paths, entries),
      "s",
    );
  }
  using check = openPatternCheck();
  const { worst, tried } = await worstPatterns(stateDir, check);
  figures.head(
    `the worst of ${tried} valid patterns, alone in the matcher (killed at ${budgetMs} ms)`,
  );
  for (const { pattern, ms } of worst.slice(0, 5))
    say(`${ms.toFixed(0).padStart(6)} ms  ${pattern.slice(0, 150)}`);
  await giveWorst(stateDir, worst, figures);
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

async function worstPatterns(
  stateDir: string,
  check: PatternCheck,
): Promise<{ worst: Timed[]; tried: number }> {
  const matcherFile = join(import.meta.dirname, "../src/agent/matcher.ts");
  using matcher = new MatchProcess(pathToFileURL(matcherFile));
  const found = new Map<string, number>();
  const place = { directory: join(stateDir, "cache"), incarnation: 1 };
  const job = { kind: "match", newestNo: 0, checkFirst: false, ...place } as const;
  const time = async (pattern: string): Promise<void> => {
    if (found.has(pattern) || check.check(pattern) !== undefined) return;
    const began = performance.now();
    await matcher.run({ ...job, patterns: [pattern] }, budgetMs);
    found.set(pattern, performance.now() - began);
  };
  const ranked = (): Timed[] =>
    [...found].map(([pattern, ms]) => ({ pattern, ms })).sort((a, b) => b.ms - a.ms);
  const endMs = performance.now() + searchMs;
  for (const pattern of families()) if (performance.now() < endMs) await time(pattern);
  for (let seed = 1; performance.now() < endMs; seed++) {
    const within = ranked().filter(({ ms }) => ms < budgetMs);
    const parent = within[seed % Math.min(8, within.length)];
    if (parent !== undefined) await time(changed(parent.pattern, seed));
  }
  return { worst: ranked(), tried: found.size };
}

async function giveWorst(
  stateDir: string,
  worst: readonly Timed[],
  figures: Figures,
): Promise<void> {
  await using opened = await openClearing(stateDir);
  const { client } = opened;
  const { init, port } = client.workerInit();
  using cache = openWorkerCache(init, port);
  const slow = worst.slice(0, 64).map(({ pattern }) => pattern);
  const within = worst.filter(({ ms }) => ms < budgetMs).map(({ pattern }) => pattern);
  figures.head("given as clears, while a response is stored every 20 ms");
  const [big, middle, small] = siteDomains;
  const calm = await storing(cache, small, () => sleep(3_000));
  figures.add(
    "stored without any clear, p99 / max",
    percentile(calm.storedMs, 0.99),
    "ms",
    undefined,
    `max ${Math.max(...calm.storedMs).toFixed(0)} ms`,
  );
  const cases = [
    ["1 of the worst", slow.slice(0, 1), small],
    ["1 of the worst within the budget", within.slice(0, 1), small],
    ["8 of the worst", slow.slice(0, 8), small],
    ["64 of the worst", slow, middle],
    ["64 of the worst, the domain of 900,000", slow, big],
  ] as const;
  for (const [name, patterns, domain] of cases) {
    const { result, storedMs } = await storing(cache, domain, () =>
      cleared(client, domain, patterns),
    );
    const { matched, widened, tookMs } = result;
    const outcome = `${widened ? "widened" : "matched"} ${matched.toLocaleString("en")}`;
    figures.add(`${name}: clear durable in`, tookMs, "ms", { most: invisibleMsMax }, outcome);
    const p99 = `p99 ${percentile(storedMs, 0.99).toFixed(1)} ms of ${storedMs.length}`;
    figures.add(
      "  stored meanwhile, longest",
      Math.max(...storedMs),
      "ms",
      { most: invisibleMsMax },
      p99,
    );
  }
}

async function cleared(
  client: IndexClient,
  domain: string,
  patterns: readonly string[],
): Promise<{ matched: number; widened: boolean; tookMs: number }> {
  const began = performance.now();
  const { applied, gone } = client.clear({
    clearId: randomUUID(),
    domain,
    host: null,
    patterns,
    seq: 0,
  });
  gone.catch(() => undefined); // The next clear comes before the deletion has ended.
  const { matched, widened } = await applied;
  return { matched, widened, tookMs: performance.now() - began };
}

/** How long each commit took that a worker gave while the action ran. */
async function storing<T>(
  cache: WorkerCache,
  domain: string,
  action: () => Promise<T>,
): Promise<{ result: T; storedMs: number[] }> {
  const storedMs: number[] = [];
  const end = new AbortController();
  const stores = (async () => {
    const waiting: Promise<void>[] = [];
    while (!end.signal.aborted) {
      waiting.push(storeOne(cache, domain, storedMs));
      await sleep(storeEveryMs);
    }
    await Promise.all(waiting);
  })();
  const result = await action();
  end.abort();
  await stores;
  return { result, storedMs };
}

async function storeOne(cache: WorkerCache, domain: string, storedMs: number[]): Promise<void> {
  const path = `/stored/${randomUUID()}.html`;
  const key = { domain, host: domain, kind: "generated", path, query: "" } as const;
  const sourceNo = cache.sourceNo();
  const writer = cache.begin(key, cache.invalidationMark(key));
  await writer.write(Buffer.from("<p>stored meanwhile</p>"));
  const began = performance.now();
  const { kind } = await writer.commit({
    status: 200,
    headers: [["content-type", "text/html"]],
    mime: "text/html",
    vary: null,
    storedAtMs: Date.now(),
    initialAgeS: 0,
    freshForS: 600,
    sourceNo,
    digest: null,
  });
  if (kind !== "failed") storedMs.push(performance.now() - began);
}
