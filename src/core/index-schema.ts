// What a clear pattern is matched against: the columns of the FTS5 index, its tokenizer, and the text that stands in each column. The same at central and agent.
//
// Columns never change within v1:
//   path    static: relative to the site root; generated: the URL path, percent-decoded. Behind it stands the word `xend`.
//   query   of generated assets: percent-decoded, without the question mark
//   mime    media type without parameters
//   kind    `static` or `generated`
//
// Words are runs of letters and digits; everything else separates. Case is folded, diacritics are kept. `xend` gives a pattern an end to hold on to:
// `path:^xend` is the site root (a path without a word), `path:^"blog xend"` is /blog and /blog/ but not /blog/post.

export type IndexedEntry = {
  readonly kind: "static" | "generated";
  readonly path: string;
  readonly query: string;
  readonly mime: string;
};

export const pathEndWord = "xend";

/** Contentless: the base table is the truth, the index holds tokens only. `contentless_delete` needs SQLite 3.43. */
export function createTextIndexSql(table: string): string {
  return `CREATE VIRTUAL TABLE ${table} USING fts5(path, query, mime, kind, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0")`;
}

/** The values of the columns, in their order. */
export function indexedText({
  kind,
  path,
  query,
  mime,
}: IndexedEntry): [path: string, query: string, mime: string, kind: string] {
  const plainPath = kind === "static" ? path : percentDecoded(path);
  return [
    `${plainPath.normalize("NFC")} ${pathEndWord}`,
    percentDecoded(query).normalize("NFC"),
    mime,
    kind,
  ];
}

/** Patterns are compared in the normal form in which the index was written. */
export function normalPattern(pattern: string): string {
  return pattern.normalize("NFC");
}

/** What is no valid UTF-8 when decoded stays as it was sent, so that every path has one text. */
function percentDecoded(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      return decodeURIComponent(run);
    } catch {
      return run;
    }
  });
}
