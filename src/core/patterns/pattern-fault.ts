// Whether a clear pattern may be used, and if not, where it goes wrong and what was probably meant. Pure;
// SQLite is asked separately (base/pattern-check.ts).
//
// Patterns are refused that are no FTS5 query (pattern-grammar.ts); that FTS5 accepts but nothing can match
// (`senseFlaw`; also a NUL, behind which FTS5 does not read); that ask for too much (pattern-budget.ts); or
// that ask for two things that exclude each other (`conflictFlaw`). They are checked in this order, so that
// the first thing to mend is named first.

import { normalPattern, type IndexColumn } from "./index-schema.ts";
import { budgetFlaw, depthFlaw, lengthFlaw, patternsMax } from "./pattern-budget.ts";
import {
  parsePattern,
  type PatternFlaw,
  type PatternPhrase,
  type PatternTree,
  lexemesOf,
} from "./pattern-grammar.ts";
import { suggestedPatterns } from "./pattern-suggestion.ts";
import { exactWord } from "./exact-word.ts";

export type PatternFault = {
  /** The place in the pattern as it was given: the number of characters (code points) before it. */
  readonly position: number;
  /** A message that is read after the pattern itself. */
  readonly message: string;
  /** A valid pattern that says what this one was probably meant to say. */
  readonly suggestion: string | undefined;
};

export type PatternVerdict =
  | { readonly kind: "valid" }
  /** FTS5 would refuse it too. */
  | { readonly kind: "invalid"; readonly flaw: PatternFlaw }
  /** Our own rules refuse it; FTS5 might take it. */
  | { readonly kind: "unwanted"; readonly flaw: PatternFlaw };

/** Judges a pattern in its normal form. */
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

/**
 * Returns what is wrong with a pattern, or undefined if it may be used. `refuses` gives a second opinion on
 * what passes here, as the message of a refusal.
 */
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
  // Suggestions are made for the pattern as it was given, because exact words tell a path from its normal
  // form.
  const suggestion = suggestedPatterns(pattern)
    .map(normalPattern)
    .find((meant) => meant !== normal && flawOf(meant) === undefined);
  return { position: positionIn(pattern, normal, flaw.at), message: flaw.message, suggestion };
}

/** Says that the patterns of one clear are too many, or which is the first that may not be used. */
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

/** Writes one sentence for a log or a terminal. */
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

/**
 * Finds the place in the original. The normal form may be shorter or longer, so this is the first character
 * of the original whose normal form reaches beyond the place.
 */
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

// Finds patterns that ask for what no entry can have at once: an entry has one exact word in url, dir and
// ext, and one kind. `url:z2fa AND url:z2fb` would clear nothing and look like success. This is asked once
// each phrase makes sense by itself.

type Word = { readonly text: string; readonly isOpen: boolean; readonly at: number };
/** The words of which an entry must have one to match, by column; a missing column may hold any. */
type Needs = ReadonlyMap<IndexColumn, readonly Word[]>;

const single: ReadonlySet<IndexColumn> = new Set<IndexColumn>(["url", "dir", "ext", "kind"]);

function conflictFlaw(
  tree: PatternTree,
  phrases: readonly PatternPhrase[],
): PatternFlaw | undefined {
  let flaw: PatternFlaw | undefined;

  const needsOf = (part: PatternTree): Needs => {
    if (typeof part === "number") return needsOfPhrase(phrases[part]);
    const [first = new Map(), ...others] = part.parts.map(needsOf);
    if (part.kind === "not") return first;
    return others.reduce(part.kind === "or" ? either : both, first);
  };

  const both = (one: Needs, other: Needs): Needs => {
    const needs = new Map(one);
    for (const [column, words] of other) {
      const before = needs.get(column);
      const shared = before === undefined ? words : narrowed(before, words);
      const [a, b] = [before?.[0], words[0]];
      if (shared.length === 0 && a !== undefined && b !== undefined)
        flaw ??= {
          at: b.at,
          message: `asks ${column} for ${said(a)} and for ${said(b)} at once, and no entry has both; OR asks for the one or the other`,
        };
      needs.set(column, shared);
    }
    return needs;
  };

  needsOf(tree);
  return flaw;
}

function needsOfPhrase(phrase: PatternPhrase | undefined): Needs {
  const [column, ...more] = phrase?.columns ?? [];
  const [word, ...others] = phrase?.words ?? [];
  if (phrase === undefined || column === undefined || word === undefined) return new Map();
  if (more.length + others.length > 0 || !single.has(column)) return new Map();
  const isOpen = phrase.prefixes.length > 0;
  return new Map([[column, [{ text: word.toLowerCase(), isOpen, at: phrase.at }]]]);
}

function either(one: Needs, other: Needs): Needs {
  const needs = new Map<IndexColumn, readonly Word[]>();
  for (const [column, words] of one) {
    const more = other.get(column);
    if (more !== undefined) needs.set(column, [...words, ...more]);
  }
  return needs;
}

/** Returns the words that fit both; of two beginnings the longer one. */
function narrowed(ones: readonly Word[], others: readonly Word[]): readonly Word[] {
  const shared = new Map<string, Word>();
  for (const one of ones)
    for (const other of others) {
      const [long, short] = one.text.length >= other.text.length ? [one, other] : [other, one];
      const isShared = short.isOpen ? long.text.startsWith(short.text) : long.text === short.text;
      const word = long.text === short.text && long.isOpen ? short : long;
      // A whole word that is shorter than a beginning does not begin with it.
      if (isShared) shared.set(said(word), word);
    }
  return [...shared.values()];
}

const said = ({ text, isOpen }: Word): string => `${text}${isOpen ? "*" : ""}`;

// Finds what FTS5 accepts but no entry can ever match. It would clear nothing and look like success, so it is
// refused.

/**
 * Finds the quotes that word processors and phones make of plain ones. FTS5 takes them for part of a word and
 * asks for each word by itself, anywhere.
 */
function quoteFlaw(pattern: string): PatternFlaw | undefined {
  for (const { kind, at, text } of lexemesOf(pattern)) {
    if (kind !== "string" || text.startsWith('"')) continue;
    const place = text.search(/[“”„‟«»＂]|^[‘‚‛]/);
    if (place >= 0)
      return { at: at + place, message: `has ${text.charAt(place)}, which is no quote here; " is` };
  }
  return undefined;
}

function senseFlaw(phrases: readonly PatternPhrase[]): PatternFlaw | undefined {
  for (const phrase of phrases) {
    const message = whyNothing(phrase);
    if (message !== undefined) return { at: phrase.at, message };
  }
  return undefined;
}

function whyNothing(phrase: PatternPhrase): string | undefined {
  if (phrase.words.length === 0)
    return "has a phrase without a word (a run of letters or digits) to look for; the site root is path:^xend";
  if (phrase.columns.size === 0)
    return "asks for a word in no column: the filters around it exclude each other";
  let first: string | undefined;
  for (const column of phrase.columns) {
    const message = whyNotIn(column, phrase);
    if (message === undefined) return undefined;
    first ??= message;
  }
  return first;
}

/** Says why no text of the column can hold the phrase, or returns undefined if one can. */
function whyNotIn(
  column: IndexColumn,
  { text, words, prefixes }: PatternPhrase,
): string | undefined {
  const [first = ""] = words;
  const isOpen = prefixes.length > 0;
  const begins = (whole: string): boolean => (isOpen ? whole.startsWith(first) : whole === first);
  switch (column) {
    case "path":
    case "query":
    case "mime":
      return undefined;
    case "kind":
      return words.length === 1 &&
        ["static", "generated"].some((kind) => begins(kind) || kind === first.toLowerCase())
        ? undefined
        : "asks for a kind; there are static and generated";
    case "param":
    case "tag":
      return noExactWords(column, text, words, prefixes);
    case "ext":
      return (
        noExactWord(column, text, words, prefixes) ??
        (/z2[ef]/.test(first)
          ? "has a dot or a slash in ext, which holds what follows the last dot"
          : undefined)
      );
    case "url":
    case "dir":
      return noExactWord(column, text, words, prefixes) ?? noPath(column, first, isOpen);
    default:
      return column satisfies never;
  }
}

function noPath(column: "url" | "dir", word: string, isOpen: boolean): string | undefined {
  if (!word.startsWith("z2f") && !(isOpen && "z2f".startsWith(word)))
    return `asks ${column} for ${word}, but all it holds begins with z2f, the slash`;
  return column === "url" || isOpen || word.endsWith("z2f")
    ? undefined
    : "asks dir for what does not end with z2f; a directory ends with its slash";
}

function noExactWord(
  column: IndexColumn,
  text: string,
  words: readonly string[],
  prefixes: readonly string[],
): string | undefined {
  return words.length === 1
    ? noExactWords(column, text, words, prefixes)
    : `asks ${column} for several words; it holds one exact word`;
}

/**
 * Says why the column cannot hold these words: exact words have one spelling, and nothing else can be in the
 * index.
 */
function noExactWords(
  column: IndexColumn,
  text: string,
  words: readonly string[],
  prefixes: readonly string[],
): string | undefined {
  if (/[^\sA-Za-z0-9]/.test(text))
    return `has to have exact words in ${column}: letters and digits only`;
  for (const word of words) {
    const whole = prefixes.includes(word) ? word.replace(/z[0-9a-f]?$/, "") : word;
    const bytes = bytesOf(whole);
    if (bytes === undefined || exactWord(bytes) !== whole)
      return `asks ${column} for ${word}, which is no exact word (bytes a-y and 0-9 as they are, every other as z and two lower-case hex digits)`;
  }
  return undefined;
}

function bytesOf(word: string): Uint8Array | undefined {
  if (!/^(?:[a-y0-9]|z[0-9a-f]{2})*$/.test(word)) return undefined;
  const units = word.match(/z..|./g) ?? [];
  return Uint8Array.from(units, (unit) =>
    unit.length === 3 ? Number.parseInt(unit.slice(1), 16) : unit.charCodeAt(0),
  );
}
