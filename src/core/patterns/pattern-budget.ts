// How much a clear pattern may ask for, decided before SQLite sees it: FTS5 has no limit of its own that would hold (6.6 KB of one-letter prefixes blocked a thread for 27 s).
//
// At 1,000,000 entries a word that all of them have takes 0.15 s and a prefix that all of them have 0.5 s, `url:z2f*` for one; each further one in
// the same pattern a third of that. So what a pattern names once or twice is matched within the budget of a clear, 2 s, however much of the index it
// reaches. What passes here and takes longer is ended by that budget, and the clear widened: the limits below keep this to patterns that nobody writes.

import { patternDepthMax, type PatternFlaw, type PatternPhrase } from "./pattern-grammar.ts";

export const patternCharsMax = 4_096;
export const patternsMax = 64;
const patternTermsMax = 64;
const patternPrefixesMax = 16;
/** A prefix of one ASCII letter or digit expands to a large part of the vocabulary; one of another script does not. */
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
