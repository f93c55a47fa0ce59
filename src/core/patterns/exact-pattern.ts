// Patterns that ask for one exact word in one column, judged without SQLite: `url:z2fblog`, `url:z2fcssz2f*`,
// `kind:static url:z2fa`. Clears by URL, prefix and tag consist of them, up to thousands a clear, and each
// response that is about to be stored has to be held against all of them.
//
// The judgement is that of FTS5 over the same text: an exact word is one token that nothing folds, so equality
// and the beginning of the text decide. Words that FTS5 would cut are left to FTS5.

import type { IndexedText } from "./index-schema.ts";
import { indexColumns } from "./index-schema.ts";

const form = /^(?:kind:(static|generated) )?(url|dir|ext|param|tag):([a-z0-9]+)(\*?)$/;
/** FTS5 reads a word up to 32,768 bytes (FTS5_MAX_TOKEN_SIZE). */
const wordCharsMax = 32_767;

type Open = { readonly kind: string; readonly at: number; readonly word: string };

const placeOf = (column: string): number => indexColumns.findIndex((name) => name === column);
const kindAt = placeOf("kind");

/** Patterns of which the exact ones can be judged at once; `rest` are the others. */
export class ExactPatterns {
  readonly rest: readonly string[];
  /** Whole words by kind (empty: any) and place of the column. */
  readonly #whole = new Map<string, Set<string>>();
  readonly #open: Open[] = [];

  constructor(patterns: readonly string[]) {
    this.rest = patterns.filter((pattern) => !this.#take(pattern));
  }

  /** Whether one of the exact patterns matches an entry with this text. */
  matches(text: IndexedText): boolean {
    for (const [key, words] of this.#whole) {
      const [kind = "", place = ""] = key.split(":");
      if (kind !== "" && kind !== text[kindAt]) continue;
      if (wordsAt(text, Number(place)).some((word) => words.has(word))) return true;
    }
    return this.#open.some(
      ({ kind, at, word }) =>
        (kind === "" || kind === text[kindAt]) &&
        wordsAt(text, at).some((whole) => whole.startsWith(word)),
    );
  }

  #take(pattern: string): boolean {
    const [, kind = "", column = "", word = "", star] = form.exec(pattern) ?? [];
    if (word === "" || word.length > wordCharsMax) return false;
    const at = placeOf(column);
    if (star === "*") this.#open.push({ kind, at, word });
    else {
      const key = `${kind}:${at}`;
      const words = this.#whole.get(key) ?? new Set();
      this.#whole.set(key, words.add(word));
    }
    return true;
  }
}

function wordsAt(text: IndexedText, at: number): readonly string[] {
  return (text[at] ?? "").split(" ");
}
