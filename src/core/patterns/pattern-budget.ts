// How much a clear pattern may ask for, decided before SQLite sees it, because FTS5 has no effective limit of
// its own (6.6 KB of one-letter prefixes blocked a thread for 27 s).
//
// At 1,000,000 entries, a word that all of them have takes 0.15 s, and a prefix that all of them have, such
// as `url:z2f*`, takes 0.5 s; each further one in the same pattern takes a third of that. So a pattern that
// names one or two of them is matched within the budget of a clear, 2 s, however much of the index it
// reaches. A pattern that passes here and takes longer is ended by that budget, and the clear is widened; the
// limits below keep this to patterns that nobody writes.

import { patternDepthMax, type PatternFlaw, type PatternPhrase } from "./pattern-grammar.ts";

export const patternCharsMax = 4_096;
export const patternsMax = 64;
const patternTermsMax = 64;
const patternPrefixesMax = 16;
/**
 * Returns whether a prefix is too short: one ASCII letter or digit expands to a large part of the vocabulary,
 * one character of another script does not.
 */
const isTooOpen = (prefix: string): boolean => /^[a-z0-9]$/i.test(prefix);

export function lengthFlaw(pattern: string): PatternFlaw | undefined {
  return pattern.length <= patternCharsMax
    ? undefined
    : {
        at: patternCharsMax,
        message: `is ${pattern.length} characters long, at most ${patternCharsMax} are allowed`,
      };
}

export function depthFlaw(at: number): PatternFlaw {
  return {
    at,
    message: `is nested too deeply: at most ${patternDepthMax} parentheses, fewer with operators between them`,
  };
}

export function budgetFlaw(phrases: readonly PatternPhrase[]): PatternFlaw | undefined {
  let terms = 0;
  let prefixes = 0;
  for (const { at, words, prefixes: open } of phrases) {
    const short = open.find(isTooOpen);
    if (short !== undefined)
      return { at, message: `has the prefix ${short}*; a prefix needs 2 letters or digits` };
    terms += words.length;
    if (terms > patternTermsMax) return { at, message: `has more than ${patternTermsMax} words` };
    prefixes += open.length;
    if (prefixes > patternPrefixesMax)
      return { at, message: `has more than ${patternPrefixesMax} prefixes` };
  }
  return undefined;
}
