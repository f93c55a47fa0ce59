// Whether a clear pattern asks for what no entry can have at once: an entry has one exact word in url, dir and ext, and one kind. `url:z2fa AND url:z2fb`
// would clear nothing and look like success. Asked once the phrases have sense each by itself (pattern-sense.ts).

import type { IndexColumn } from "./index-schema.ts";
import type { PatternFlaw, PatternPhrase, PatternTree } from "./pattern-grammar.ts";

type Word = { readonly text: string; readonly isOpen: boolean; readonly at: number };
/** The words of which an entry must have one to match, by column; where a column is missing, any. */
type Needs = ReadonlyMap<IndexColumn, readonly Word[]>;

const single: ReadonlySet<IndexColumn> = new Set<IndexColumn>(["url", "dir", "ext", "kind"]);

export function conflictFlaw(
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

/** What is a word of both; of two beginnings the longer one. */
function narrowed(ones: readonly Word[], others: readonly Word[]): readonly Word[] {
  const shared = new Map<string, Word>();
  for (const one of ones)
    for (const other of others) {
      const [long, short] = one.text.length >= other.text.length ? [one, other] : [other, one];
      const isShared = short.isOpen ? long.text.startsWith(short.text) : long.text === short.text;
      const word = long.text === short.text && long.isOpen ? short : long;
      // An exact word that is shorter than a beginning does not begin so.
      if (isShared) shared.set(said(word), word);
    }
  return [...shared.values()];
}

const said = ({ text, isOpen }: Word): string => `${text}${isOpen ? "*" : ""}`;
