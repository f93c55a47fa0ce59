// What FTS5 takes but no entry can ever match. It would clear nothing and look like success, so it is refused.

import { exactWord } from "./exact-word.ts";
import type { IndexColumn } from "./index-schema.ts";
import type { PatternFlaw, PatternPhrase } from "./pattern-grammar.ts";
import { lexemesOf } from "./pattern-lexer.ts";

/** Quotes that text programs and phones make of plain ones. FTS5 takes them for a part of the word and asks for each word by itself, anywhere. */
export function quoteFlaw(pattern: string): PatternFlaw | undefined {
  for (const { kind, at, text } of lexemesOf(pattern)) {
    if (kind !== "string" || text.startsWith('"')) continue;
    const place = text.search(/[“”„‟«»＂]|^[‘‚‛]/);
    if (place >= 0)
      return { at: at + place, message: `has ${text.charAt(place)}, which is no quote here; " is` };
  }
  return undefined;
}

export function senseFlaw(phrases: readonly PatternPhrase[]): PatternFlaw | undefined {
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

/** Why no text of the column can hold the phrase; undefined where one can. */
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

/** Exact words are told by their spelling: whatever else is asked for cannot be in the index. */
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
