// Which tests judge a mutant, and in which order: those that most likely kill it soonest come first.

import { availableParallelism, loadavg } from "node:os";
import { basename, dirname } from "node:path";
import type { Related } from "./test-map.ts";
import type { TestFile } from "./test-run.ts";

/** What a test file costs besides its own time. */
const startMs = 400;
const slownessLeast = 5;
const graceMs = 15_000;

/** Tests that have killed a mutant of the same file before. */
export type Killers = ReadonlySet<string>;

/** `budgetMs` of recorded time at most, but at least one. */
export function choose(
  file: string,
  related: readonly Related[],
  killers: Killers,
  budgetMs: number,
): readonly TestFile[] {
  const ordered = related
    .map((one) => ({ ...one, cost: costOf(file, one, killers) }))
    .toSorted((a, b) => a.cost - b.cost || (a.test < b.test ? -1 : 1));
  let left = budgetMs;
  return ordered
    .filter(({ ms }, at) => {
      const isChosen = at === 0 || ms + startMs <= left;
      if (isChosen) left -= ms + startMs;
      return isChosen;
    })
    .map(({ test, ms }) => ({ file: test, msMax: deadlineOf(ms) }));
}

/** Where the machine is full, everything takes longer: several times as long as processes wait for each core. */
export function deadlineOf(ms: number): number {
  const [load = 0] = loadavg();
  const slowness = Math.max(slownessLeast, (3 * load) / availableParallelism());
  return slowness * (graceMs / slownessLeast + ms);
}

function costOf(file: string, { test, ms, share }: Related, killers: Killers): number {
  const mirror = file.replace(/^src/, "test");
  const isOwn = basename(test, ".test.ts") === basename(file, ".ts");
  const nearness = isOwn ? 0.1 : dirname(test) === dirname(mirror) ? 0.4 : 1;
  return ((ms + startMs) * nearness * (killers.has(test) ? 0.3 : 1)) / (0.2 + share);
}
