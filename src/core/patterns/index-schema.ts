// What a clear pattern is matched against: the columns of the FTS5 index, its tokenizer, and the text that stands in each column. The same at central and agent.
//
// Columns and their order never change within v1; `tag` was added behind the others, and is looked in only by patterns
// that name it (pattern-query.ts):
//   path    static: relative to the site root; generated: the URL path, percent-decoded. Behind it stands the word `xend`.
//   query   of generated assets: percent-decoded, without the question mark
//   mime    media type without parameters
//   kind    `static` or `generated`
//   url     exact word: static: "/" and the path below the site root; generated: the path as sent, "?" and the query where there is one
//   dir     exact word: url's path up to its last "/", with it
//   ext     exact word: what follows the last dot of the last segment of url's path; nothing without a dot
//   param   exact words: one a parameter of the query, as it was sent
//   tag     exact words: one a tag of the response (core/http/cache-tags.ts)
//
// Words are runs of letters and digits; everything else separates. Case is folded, diacritics are kept. `xend` gives a pattern an end to hold on to:
// `path:^xend` is the site root (a path without a word), `path:^"blog xend"` is /blog and /blog/ but not /blog/post. A real word like it has one more
// x in the index, so nothing else is taken for an end. Exact words (exact-word.ts) fold nothing: they tell /Blog from /blog and /blog from /blog/.

import { exactWord } from "./exact-word.ts";

export type IndexedEntry = {
  readonly kind: "static" | "generated";
  readonly path: string;
  readonly query: string;
  readonly mime: string;
  /** Exact words joined by blanks; absent: none. */
  readonly tags?: string | undefined;
};

/** The values of the columns, in their order. */
export type IndexedText = [
  path: string,
  query: string,
  mime: string,
  kind: string,
  url: string,
  dir: string,
  ext: string,
  param: string,
  tag: string,
];

export const indexColumns = [
  "path",
  "query",
  "mime",
  "kind",
  "url",
  "dir",
  "ext",
  "param",
  "tag",
] as const;
export type IndexColumn = (typeof indexColumns)[number];

export const pathEndWord = "xend";

/**
 * Creates a contentless index: the base table is the truth, the index holds only tokens. `contentless_delete`
 * needs SQLite 3.43.
 */
export function createTextIndexSql(table: string): string {
  return `CREATE VIRTUAL TABLE ${table} USING fts5(${indexColumns.join(", ")}, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0")`;
}

/**
 * Its parameters are the row id and `indexedText`. The row id must be new, because contentless FTS5 would
 * keep the old words too.
 */
export function insertTextSql(table: string): string {
  return `INSERT INTO ${table} (rowid, ${indexColumns.join(", ")}) VALUES (?${", ?".repeat(indexColumns.length)})`;
}

/** Returns the URL whose exact word the column `url` holds. */
export function urlOf({
  kind,
  path,
  query,
}: Pick<IndexedEntry, "kind" | "path" | "query">): string {
  const urlPath = kind === "static" ? `/${path}` : path;
  return query === "" ? urlPath : `${urlPath}?${query}`;
}

export function indexedText({ kind, path, query, mime, tags = "" }: IndexedEntry): IndexedText {
  const plainPath = kind === "static" ? path : percentDecoded(path);
  const urlPath = urlOf({ kind, path, query: "" });
  const segmentAt = urlPath.lastIndexOf("/") + 1;
  const dotAt = urlPath.indexOf(".", segmentAt) < 0 ? urlPath.length : urlPath.lastIndexOf(".");
  return [
    `${freeOfEnds(plainPath.normalize("NFC"))} ${pathEndWord}`,
    percentDecoded(query).normalize("NFC"),
    mime,
    kind,
    exactWord(urlOf({ kind, path, query })),
    exactWord(urlPath.slice(0, segmentAt)),
    exactWord(urlPath.slice(dotAt + 1)),
    query
      .split("&")
      .map((parameter) => exactWord(parameter))
      .join(" "),
    tags,
  ];
}

/** Brings a pattern into the normal form in which the index was written. */
export function normalPattern(pattern: string): string {
  return pattern.normalize("NFC");
}

/**
 * Matches what unicode61 makes words of. It knows Unicode 6.1. It takes every character assigned later for a
 * letter, whatever it is, and the digits excluded here for separators.
 */
const word = /[[\p{L}\p{N}\p{Co}]--[\u19b0-\u19c9\u1cf2\u1cf3]]+/gv;
const endLikeWord =
  /(?<![[\p{L}\p{N}\p{Co}]--[\u19b0-\u19c9\u1cf2\u1cf3]])x+end(?![[\p{L}\p{N}\p{Co}]--[\u19b0-\u19c9\u1cf2\u1cf3]])/giv;

/**
 * Returns the words of a text. They are never fewer than SQLite finds, except where it takes unassigned
 * characters and combining marks for letters.
 */
export function wordsOf(text: string): readonly string[] {
  return /^[a-z0-9]+$/i.test(text) ? [text] : (text.match(word) ?? []);
}

/** Gives words of the path that look like its end one more x, as they stand in the index. */
function freeOfEnds(path: string): string {
  return /xend/i.test(path) ? path.replaceAll(endLikeWord, "x$&") : path;
}

/**
 * Decodes percent escapes. What is no valid UTF-8 when decoded stays as it was sent, so that every path has
 * one text.
 */
export function percentDecoded(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      return decodeURIComponent(run);
    } catch {
      return run;
    }
  });
}
