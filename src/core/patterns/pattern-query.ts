// What FTS5 is asked for a pattern. Words without a column are looked for in all of them but `tag`, which came
// later: so every pattern that does not name it matches what it matched before.

import { lexemesOf } from "./pattern-grammar.ts";

/** Tells quickly that nothing but one exact word in one column is asked for. */
const exact = /^(?:kind:\w+ )?\w+:[a-z0-9]+\*?$/;

/** Returns the query of FTS5 for a valid pattern in its normal form. */
export function ftsQuery(pattern: string): string {
  return exact.test(pattern) || namesTags(pattern) ? pattern : `- tag : (${pattern})`;
}

/** Whether the pattern has `tag` among the columns of a filter. */
export function namesTags(pattern: string): boolean {
  if (!/tag/i.test(pattern)) return false;
  const lexemes = lexemesOf(pattern);
  let isList = false;
  return lexemes.some(({ kind, text }, at) => {
    if (kind === "{") isList = true;
    if (kind === "}") isList = false;
    const isColumn = isList || lexemes[at + 1]?.kind === ":";
    return kind === "string" && isColumn && /^"?tag"?$/i.test(text);
  });
}
