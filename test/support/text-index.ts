// The text index as the agent has it, in memory and alone: what a pattern matches.

import { openSqlite } from "../../src/base/sqlite.ts";
import { exactWord } from "../../src/core/patterns/exact-word.ts";
import { ftsQuery } from "../../src/core/patterns/pattern-query.ts";
import {
  createTextIndexSql,
  indexedText,
  insertTextSql,
  normalPattern,
  type IndexedEntry,
  type IndexedText,
} from "../../src/core/patterns/index-schema.ts";

export class TextIndex implements Disposable {
  readonly #db = openSqlite(":memory:", { sync: "normal" });
  readonly #match;

  constructor(entries: readonly IndexedEntry[]) {
    this.#db.exec(createTextIndexSql("entries"));
    const insert = this.#db.prepare<[number, ...IndexedText]>(insertTextSql("entries"));
    this.#db.transaction(() => {
      for (const [at, entry] of entries.entries()) insert.run(at, ...indexedText(entry));
    })();
    this.#match = this.#db
      .prepare<[string], number>("SELECT rowid FROM entries WHERE entries MATCH ? ORDER BY rowid")
      .pluck();
  }

  /** Positions in the list of entries. Throws what SQLite says. */
  matches(pattern: string): number[] {
    return this.#match.all(ftsQuery(normalPattern(pattern)));
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}

const mimes: Readonly<Record<string, string>> = {
  apng: "image/apng",
  css: "text/css",
  js: "text/javascript",
  json: "application/json",
  png: "image/png",
  webp: "image/webp",
};

/**
 * `/path?query` is generated, `file path` static, `/path [news, product-7]` has tags; the media type is that of
 * the extension, else text/html.
 */
export function entryOf(given: string): IndexedEntry {
  const [, text = "", listed = ""] = /^(.*?)(?: \[(.*)\])?$/s.exec(given) ?? [];
  const isFile = text.startsWith("file ");
  const [path = "", query = ""] = (isFile ? text.slice(5) : text).split(/\?(.*)/s);
  const mime = mimes[path.split(".").at(-1) ?? ""] ?? "text/html";
  const tags = listed
    .split(",")
    .map((tag) => exactWord(tag.trim()))
    .join(" ");
  return {
    kind: isFile ? "static" : "generated",
    path,
    query,
    mime,
    ...(listed !== "" && { tags }),
  };
}
