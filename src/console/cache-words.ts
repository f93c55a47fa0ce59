// What the cache had to do with a request, in people's words. Pure.

import type { RequestRecord } from "../wire/request-log.ts";

type CacheOutcome = RequestRecord["cache"];

/** An outcome that is missing here does not compile. */
const words: Readonly<Record<CacheOutcome, string>> = {
  hit: "hit",
  stale: "stale",
  miss: "miss",
  pass: "not cached (pass)",
  none: "without the cache",
  blocked: "blocked",
};

export const cachePartsShown = Object.keys(words) as readonly CacheOutcome[];

/** One that has no words here, such as one of a later release, is said as it is called. */
export function cacheWords(outcome: string): string {
  return Object.hasOwn(words, outcome) ? words[outcome as CacheOutcome] : outcome;
}

/** What a filter offers. One that stands in an address and is none of them is offered as it is: central says that there is no such thing. */
export function cacheChoices(
  chosen: string,
): readonly (readonly [outcome: string, words: string])[] {
  const known: readonly string[] = ["", ...cachePartsShown];
  return [...known, ...(known.includes(chosen) ? [] : [chosen])].map((outcome) => [
    outcome,
    outcome === "" ? "any" : cacheWords(outcome),
  ]);
}
