// What a query rule leaves out of the cache key, and how frameworks read the names of query parameters.

import { canonicalName, compileNamePattern } from "./path-pattern.ts";
import type { QueryRule } from "./effective-devlove.ts";

/** Writes a rule in characters that the normalizing of field values leaves alone. */
export function textOfRule(rule: QueryRule): string {
  const text = (names: readonly string[]): string =>
    names.map((name) => encodeURIComponent(name.toWellFormed())).join("|");
  const sort = rule.sort ? "sort:" : "";
  if ("keep" in rule) return `${sort}keep:${text(rule.keep)}`;
  const { ignore = [] } = rule;
  return ignore.length === 0 ? sort : `${sort}ignore:${text(ignore)}`;
}

/**
 * Makes a function that returns the query without what the rule leaves out; the bytes of the rest stay as they
 * are, and so does their order unless the rule sorts them. `rawQuery` is without its `?`. Names are compared decoded (`%75tm_source` is utm_source),
 * because an origin decodes them too; otherwise `keep` would merge what the origin tells apart.
 *
 * Whatever an origin may read as a parameter that counts stays in: a visitor who could hide it from the key
 * would have his page served to all. Each piece with `;` stays too, because some servers end a parameter
 * there (unlike WHATWG, as older frameworks do).
 */
export function compileQueryRule(rule: QueryRule): (rawQuery: string) => string {
  const keeps = "keep" in rule;
  const written = keeps ? [...rule.keep, ...rule.keep.map(lowerCase)] : (rule.ignore ?? []);
  const patterns = [...new Set(written)].map(compileNamePattern);
  const inOrder = rule.sort ? sorted : (pieces: readonly string[]) => pieces;
  if (patterns.length === 0) {
    if (keeps) return () => "";
    return rule.sort ? (rawQuery) => sorted(rawQuery.split("&")).join("&") : (rawQuery) => rawQuery;
  }
  const isNamed = (piece: string): boolean => {
    const equals = piece.indexOf("=");
    const name = canonicalName(equals < 0 ? piece : piece.slice(0, equals));
    const names = keeps ? readNames(name) : [name];
    return patterns.some((pattern) => names.some((one) => pattern.matches(one)));
  };
  return (rawQuery) =>
    inOrder(
      rawQuery.split("&").filter((piece) => piece.includes(";") || isNamed(piece) === keeps),
    ).join("&");
}

/**
 * Sorts the parameters by name. Those that a framework may read under one name stay in their order, because
 * it tells the first from the last; where it is not sure which those are, all stay as they are.
 */
function sorted(pieces: readonly string[]): readonly string[] {
  if (pieces.length < 2) return pieces;
  const placed: { readonly piece: string; readonly place: string }[] = [];
  for (const piece of pieces) {
    const place = placeOf(piece);
    if (place === undefined) return pieces;
    placed.push({ piece, place });
  }
  return placed
    .toSorted((a, b) => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0))
    .map(({ piece }) => piece);
}

/** A name that all frameworks read alike, but for capitals and that `a[]` and `a[b]` are parts of `a`. */
const plainName = /^([\w-]+)(?:\[[\w-]*\])*$/;

/** Returns one text for all names that some framework reads as one; undefined if that is not sure. */
function placeOf(piece: string): string | undefined {
  if (piece.includes(";")) return undefined;
  const [rawName = ""] = piece.split("=", 1);
  const name = plainName.exec(canonicalName(rawName))?.[1];
  return name === undefined ? undefined : lowerCase(name);
}

/**
 * Returns the names as frameworks read them. `user[]` and `user[id]` are the array `user` (PHP, Rails, qs).
 * PHP skips leading blanks, ends at NUL, and spells `.`, blank and `[` as `_`. ASP.NET ignores case.
 */
export function readNames(name: string): readonly string[] {
  if (/^[a-z0-9_]*$/.test(name)) return [name];
  const trimmed = name.replace(/^ +/, "").replace(/\0[^]*$/, "");
  const array = trimmed.replace(/(?<=[^])\[[^]*$/, "");
  const names = [name, trimmed, array];
  for (const one of [trimmed, array]) names.push(one.replaceAll(/[. []/g, "_"));
  return [...new Set([...names, ...names.map(lowerCase)])];
}

export const lowerCase = (text: string): string =>
  text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
