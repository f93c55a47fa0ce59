// Walks by seed, and the shortest walk that still goes wrong.

import { mkdtempSync, rmSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite, type Sqlite } from "../../src/base/sqlite.ts";
import { ignoresFull, seeIndex } from "./cache-model-bugs.ts";
import { patternKinds } from "./cache-model-words.ts";
import { Violation } from "./cache-model-oracle.ts";
import { stepWeights, type Step, type StepName, type Weights } from "./cache-model-steps.ts";
import { Walk, type Bugs } from "./cache-model-walk.ts";

/** In memory where the host has such a place: the disk is not what is checked. */
const scratch = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** Before everything comes to its end: long enough for a clear, a crash and what comes of both. */
const walkSteps = 400;

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** In a narrow walk everything happens to two pages, and most clears hit them: so that things meet. */
const narrowWeights: Weights = {
  clear: 7,
  soften: 5,
  order: 5,
  invalidate: 5,
  hold: 12,
  matchRead: 14,
  matchAnswer: 14,
};
/** Numbers of patterns that match a page in two, without joining. */
const broadPatterns = [0, 3, 12, 12, 18, 18, 18, 26].map((no) => no + patternKinds / 2);

/** `weights`: instead of the usual ones. */
export function stepsOf(seed: number, weights: Weights = {}): Step[] {
  const random = randomOf(seed);
  const isNarrow = seed % 2 === 1;
  const below = (end: number): number => Math.floor(random() * end);
  // The keys are the names.
  const weighted = Object.entries({
    ...stepWeights,
    ...(isNarrow ? narrowWeights : {}),
    ...weights,
  }) as [StepName, number][];
  const sum = weighted.reduce((total, [, weight]) => total + weight, 0);
  const name = (): StepName => {
    let left = random() * sum;
    for (const [each, weight] of weighted) if ((left -= weight) < 0) return each;
    return "turn";
  };
  const favourite = below(patternKinds);
  const page = (): number =>
    isNarrow ? favourite + below(2) : random() < 0.5 ? favourite + below(3) : below(patternKinds);
  return Array.from({ length: walkSteps }, () => {
    const chosen = name();
    if (chosen === "clear" || chosen === "soften" || chosen === "order") {
      const a = isNarrow ? (broadPatterns[below(broadPatterns.length)] ?? 0) : below(patternKinds);
      return [chosen, a, isNarrow && chosen !== "order" ? 3 : below(12), 1 + below(patternKinds)];
    }
    const isOfPage = pageSteps.has(chosen);
    const b = isNarrow && random() < 0.7 ? 0 : below(patternKinds);
    return [chosen, isOfPage ? page() : below(patternKinds), b, below(patternKinds)];
  });
}

const pageSteps: ReadonlySet<StepName> = new Set([
  "fill",
  "code",
  "startFetch",
  "lookUp",
  "quick",
  "hold",
  "startRefresh",
  "startVariant",
  "invalidate",
]);

export type Failure = { readonly reason: string; readonly at: number };

export class Runs implements Disposable {
  readonly #directory = mkdtempSync(join(scratch, "accel-model-"));
  readonly #unhook: () => void;
  #walk: Walk | undefined;
  readonly totals = {
    steps: 0,
    served: 0,
    stale: 0,
    coded: 0,
    stored: 0,
    blocked: 0,
    failed: 0,
    missed: 0,
    quick: 0,
  };

  constructor() {
    this.#unhook = onFullCommit(() => this.#walk?.onSynced());
  }

  /** Undefined where nothing went wrong. */
  async run(
    steps: readonly Step[],
    options: { isSmall?: boolean; bugs?: Bugs } = {},
  ): Promise<Failure | undefined> {
    const { isSmall = false, bugs = {} } = options;
    const walk = new Walk({ directory: this.#directory, isSmall, bugs });
    this.#walk = walk;
    let at = 0;
    try {
      await walk.start();
      for (const step of steps) {
        await walk.take(step);
        at++;
      }
      await walk.finish();
      return undefined;
    } catch (error) {
      if (error instanceof Violation) return { reason: error.message, at };
      throw new Error(`after ${at} steps`, { cause: error });
    } finally {
      await walk[Symbol.asyncDispose]();
      this.totals.steps += walk.now;
      const { counts } = walk.visitors;
      this.totals.served += counts.served;
      this.totals.stale += counts.stale;
      this.totals.coded += counts.coded;
      this.totals.stored += counts.stored;
      this.totals.blocked += counts.blocked;
      this.totals.failed += counts.failed;
      this.totals.missed += counts.missed;
      this.totals.quick += counts.quick;
      this.#walk = undefined;
    }
  }

  /** Leaves out whatever is not needed to go wrong: halves, quarters, down to single steps. */
  async shrink(
    steps: readonly Step[],
    { at }: Failure,
    options: Parameters<Runs["run"]>[1] = {},
  ): Promise<readonly Step[]> {
    let shortest = steps.slice(0, at + 1);
    for (
      let size = Math.ceil(shortest.length / 2);
      size >= 1;
      size = size === 1 ? 0 : Math.ceil(size / 2)
    )
      for (let from = 0; from < shortest.length;) {
        const shorter = shortest.toSpliced(from, size);
        if ((await this.run(shorter, options).catch(() => undefined)) === undefined) from += size;
        else shortest = shorter;
      }
    return shortest;
  }

  [Symbol.dispose](): void {
    this.#unhook();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export const show = (steps: readonly Step[]): string =>
  steps.map((step) => JSON.stringify(step)).join("\n");

export type Checked = {
  readonly totals: Runs["totals"];
  readonly seeds: number;
  /** In words, with the shortest walk. */
  readonly failure: string | undefined;
};

/** Walks from `first` on until so many steps were taken. Every fifth has a cache that is far too small. */
export async function checkSeeds(
  first: number,
  stepsWanted: number,
  onSeed: (totals: Runs["totals"]) => void = () => undefined,
): Promise<Checked> {
  using runs = new Runs();
  const { totals } = runs;
  for (let seed = first; ; seed++) {
    const options = { isSmall: seed % 5 === 0 };
    const steps = stepsOf(seed);
    const failure = await runs.run(steps, options);
    onSeed(totals);
    if (failure !== undefined) {
      const walk = show(await runs.shrink(steps, failure, options));
      return { totals, seeds: seed - first, failure: `seed ${seed}: ${failure.reason}\n${walk}` };
    }
    if (totals.steps >= stepsWanted) return { totals, seeds: seed - first + 1, failure: undefined };
  }
}

/** SQLite's connections are all of one class: the end of a FULL commit is where its level goes back. */
function onFullCommit(tell: () => void): () => void {
  const db = openSqlite(":memory:", { sync: "normal" });
  const prototype = Object.getPrototypeOf(db) as {
    pragma: (sql: string, options?: unknown) => unknown;
  };
  db.close();
  const { pragma } = prototype;
  let isFull = false;
  prototype.pragma = function (this: Sqlite, sql: string, options?: unknown): unknown {
    if (sql === "journal_mode = WAL" && this.name.endsWith("index.db")) seeIndex(this);
    const result = options === undefined ? pragma.call(this, sql) : pragma.call(this, sql, options);
    if (sql === "synchronous = full") isFull = !ignoresFull();
    else if (sql === "synchronous = normal" && isFull) {
      isFull = false;
      tell();
    }
    return result;
  };
  return () => {
    prototype.pragma = pragma;
  };
}
