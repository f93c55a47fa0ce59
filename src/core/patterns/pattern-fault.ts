// Whether a clear pattern may be used, and if not, where it goes wrong and what was probably meant. Pure; SQLite is asked besides (base/pattern-check.ts).
//
// Refused are: what is no FTS5 query (pattern-grammar.ts), what FTS5 takes and nothing can match (pattern-sense.ts; a NUL too, behind which FTS5 does
// not read), what asks for too much (pattern-budget.ts), what asks for two things that exclude each other (pattern-conflict.ts). In that order, so that
// the first thing to mend is named first.

import { normalPattern } from "./index-schema.ts";
import { conflictFlaw } from "./pattern-conflict.ts";
import { budgetFlaw, depthFlaw, lengthFlaw, patternsMax } from "./pattern-budget.ts";
import { parsePattern, type PatternFlaw } from "./pattern-grammar.ts";
import { quoteFlaw, senseFlaw } from "./pattern-sense.ts";
import { suggestedPatterns } from "./pattern-suggestion.ts";

export type PatternFault = {
  /** Of the pattern as it was given: characters (code points) before the place; 0 is the first. */
  readonly position: number;
  /** To be read after the pattern itself. */
  readonly message: string;
  /** A valid pattern that says what this one was probably meant to say. */
  readonly suggestion: string | undefined;
};

export type PatternVerdict =
  | { readonly kind: "valid" }
  /** FTS5 would refuse it too. */
  | { readonly kind: "invalid"; readonly flaw: PatternFlaw }
  /** By our own rules: FTS5 might take it. */
  | { readonly kind: "unwanted"; readonly flaw: PatternFlaw };

/** Of a pattern in its normal form. */
export function judgePattern(pattern: string): PatternVerdict {
  const early = lengthFlaw(pattern) ?? nulFlaw(pattern);
  if (early !== undefined) return { kind: "unwanted", flaw: early };
  const parsed = parsePattern(pattern);
  if (parsed.kind === "invalid") return parsed;
  const flaw =
    parsed.kind === "deep"
      ? depthFlaw(parsed.at)
      : (quoteFlaw(pattern) ??
        senseFlaw(parsed.phrases) ??
        budgetFlaw(parsed.phrases) ??
        conflictFlaw(parsed.tree, parsed.phrases));
  return flaw === undefined ? { kind: "valid" } : { kind: "unwanted", flaw };
}

/** Undefined where the pattern may be used. `refuses`: a second opinion on what passes here, as the message of a refusal. */
export function patternFault(
  pattern: string,
  refuses: (normal: string) => string | undefined = () => undefined,
): PatternFault | undefined {
  const flawOf = (normal: string): PatternFlaw | undefined => {
    const verdict = judgePattern(normal);
    if (verdict.kind !== "valid") return verdict.flaw;
    const message = refuses(normal);
    return message === undefined ? undefined : { at: 0, message };
  };
  const normal = normalPattern(pattern);
  const flaw = flawOf(normal);
  if (flaw === undefined) return undefined;
  // Of the pattern as it was given: exact words tell a path from its normal form.
  const suggestion = suggestedPatterns(pattern)
    .map(normalPattern)
    .find((meant) => meant !== normal && flawOf(meant) === undefined);
  return { position: positionIn(pattern, normal, flaw.at), message: flaw.message, suggestion };
}

/** Of the patterns of one clear: that they are too many, or the first that may not be used. */
export function patternsFault(
  patterns: readonly string[],
  check: (pattern: string) => PatternFault | undefined,
): string | undefined {
  if (patterns.length > patternsMax)
    return `${patterns.length} patterns, at most ${patternsMax} are allowed`;
  for (const pattern of patterns) {
    const fault = check(pattern);
    if (fault !== undefined) return faultText(pattern, fault);
  }
  return undefined;
}

/** One sentence for a log or a terminal. */
export function faultText(
  pattern: string,
  { position, message, suggestion }: PatternFault,
): string {
  const meant = suggestion === undefined ? "" : `; did you mean ${suggestion}`;
  return `the pattern ${JSON.stringify(pattern)} ${message} (at character ${position})${meant}`;
}

function nulFlaw(pattern: string): PatternFlaw | undefined {
  const at = pattern.indexOf("\0");
  return at < 0 ? undefined : { at, message: "holds a NUL character" };
}

/** The normal form may be shorter or longer: the first character of the original that reaches beyond what stands before the place in it. */
function positionIn(pattern: string, normal: string, at: number): number {
  if (pattern === normal) return Array.from(normal.slice(0, at)).length;
  const characters = Array.from(pattern);
  let low = 0;
  let high = characters.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (normalPattern(characters.slice(0, middle + 1).join("")).length > at) high = middle;
    else low = middle + 1;
  }
  return low;
}
