// Clear patterns: our validator against SQLite's own over a million of them; what a check costs; the pattern that blocks FTS5; what the guard adds to a commit.

import { performance } from "node:perf_hooks";
import { Guard } from "../src/agent/cache/index/guard.ts";
import { openPatternCheck } from "../src/base/pattern-check.ts";
import type { IndexedEntry } from "../src/core/patterns/index-schema.ts";
import { under } from "../src/core/patterns/pattern-recipes.ts";
import { fuzzPatterns } from "../test/support/pattern-fuzz.ts";

type Say = (line: string) => void;

const fuzzCount = 1_000_000;
const seed = 20_261_121;
const rounds = 20_000;

/** Microseconds of the median round of 20. */
function medianUs(perRound: number, action: (i: number) => void): number {
  const took: number[] = [];
  for (let round = 0; round < 20; round++) {
    const began = performance.now();
    for (let i = 0; i < perRound; i++) action(i);
    took.push(((performance.now() - began) * 1_000) / perRound);
  }
  return took.sort((a, b) => a - b)[10] ?? 0;
}

const line = (what: string, figure: string): string => `${what.padEnd(52)} ${figure}`;

export async function run(say: Say): Promise<void> {
  using patterns = openPatternCheck();
  checks(say, patterns);
  refusals(say, patterns.check);
  guard(say);
  const began = performance.now();
  const counts = fuzzPatterns(fuzzCount, seed, patterns);
  const tookS = (performance.now() - began) / 1_000;
  say(line(`generated patterns, seed ${seed}`, `${fuzzCount} in ${tookS.toFixed(0)} s`));
  say(line("both accept", `${counts.agreedAccepts}`));
  say(line("  of these refused by our own rules", `${counts.unwanted}`));
  say(line("both refuse", `${counts.agreedRefusals}`));
  say(line("not compared (too deep, NUL)", `${counts.notCompared}`));
  say(line("disagreements", `${counts.disagreements.length}`));
  for (const disagreement of counts.disagreements.slice(0, 10)) say(`  ${disagreement}`);
  if (counts.disagreements.length > 0) process.exitCode = 1;
}

/** 6.6 KB of one-letter prefixes hold FTS5 for 27 s at 500,000 entries; then as much of them as is short enough to be read. */
function refusals(say: Say, check: (pattern: string) => unknown): void {
  const letters = Array.from("abcdefghijklmnopqrstuvwxyz0123456789", (letter) => `${letter}*`);
  const blocking = Array.from({ length: 30 }, () => `(${letters.join(" OR ")})`).join(" AND ");
  for (const pattern of [blocking, blocking.slice(0, 3_968)]) {
    const began = performance.now();
    const refused = check(pattern) !== undefined;
    const tookMs = performance.now() - began;
    const said = refused ? `refused in ${tookMs.toFixed(2)} ms` : "ACCEPTED";
    say(line(`what blocks FTS5, ${pattern.length} characters`, said));
  }
}

function checks(say: Say, patterns: ReturnType<typeof openPatternCheck>): void {
  const usual = 'path:^"blog post xend" AND (mime:html OR ext:png) NOT url:z2fblogz2fold*';
  const checked = medianUs(rounds / 20, () => patterns.check(usual));
  const fts5 = medianUs(rounds / 20, () => patterns.refusedByFts5(usual));
  const figure = `${checked.toFixed(1)} µs, ${(checked / fts5).toFixed(1)} × FTS5's parser alone`;
  say(line("a valid pattern checked", figure));
  const faulty = medianUs(rounds / 20, () => patterns.check("/blog/post.html"));
  say(line("a faulty one, with its suggestion", `${faulty.toFixed(1)} µs`));
}

/** Per commit of a response, while clears are pending that do not match it. */
function guard(say: Say): void {
  using candidate = new Guard();
  const entry = (i: number): IndexedEntry => ({
    kind: "generated",
    path: `/catalogue/lamps/2026/table-lamp-${i}.html`,
    query: `page=${i}&sort=price`,
    mime: "text/html",
  });
  const pending = [[under("/css/")], ['path:^"blog post"'], ['mime:^"image/png" AND ext:png']];
  for (const count of [0, 1, 3]) {
    const lists = pending.slice(0, count).map((list) => [list]);
    const us = medianUs(rounds / 20, (i) => candidate.firstMatch(entry(i), lists));
    say(line(`guard, ${count} pending patterns`, `${us.toFixed(1)} µs a commit`));
  }
}
