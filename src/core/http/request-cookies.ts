// What the cookies of a request mean for caches: none is there, all are ignored, or one is its visitor's own.
//
// The cookies are read so that no server finds one that was not seen here. A piece between semicolons is a
// cookie (RFC 6265 §5.4). Some servers also end one at a comma (RFC 2109), others do not end one at a
// semicolon within quotes, so everything that any of them takes for a name has to be ignored. A piece without
// `=`, without a name, or with a name that RFC 6265 does not allow counts as the visitor's own too.

import type { CookieRule } from "../serving/effective-devlove.ts";
import type { Field } from "./http-fields.ts";
import { isListedCookie } from "./listed-cookies.ts";
import { compileTextPattern } from "../serving/path-pattern.ts";

export type CookieUse =
  | { readonly kind: "none" }
  /** Whatever the cookies say, the answer is the same: the origin is asked without them. */
  | { readonly kind: "ignored" }
  /** `name` is that of the first cookie that is not ignored, undefined if it has no readable one. */
  | { readonly kind: "own"; readonly name: string | undefined };

/** Takes fields as received: there may be several, and HTTP/2 brings one in pieces. */
export type CookieJudge = (fields: readonly Field[]) => CookieUse;

const none: CookieUse = { kind: "none" };
const ignored: CookieUse = { kind: "ignored" };

/** The fields that are left out of a request whose answer others get. Cookie2 is RFC 2965's, and obsolete. */
export const cookieFields: ReadonlySet<string> = new Set(["cookie", "cookie2"]);

/** Compiles a rule: it names the cookies that are ignored beside those of the published list. */
export function compileCookieRule({ ignore }: CookieRule): CookieJudge {
  if (ignore.includes("*")) return (fields) => (fields.some(isCookie) ? ignored : none);
  const isIgnored = remembering(ignoring(ignore));
  return (fields) => {
    let use = none;
    for (const field of fields) {
      if (!isCookie(field)) continue;
      const own = ownOf(field[1], isIgnored);
      if (own !== undefined) return own;
      use = ignored;
    }
    return use;
  };
}

/** The most names remembered, because the same come with each request; at 100 bytes each, 50 KiB. */
const namesMax = 512;
const nameCharsKept = 100;

/** Remembers the verdict on each name. Only names that RFC 6265 allows can be ignored. */
function remembering(isIgnored: (name: string) => boolean): (name: string) => boolean {
  const known = new Map<string, boolean>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const is = isToken.test(name) && isIgnored(name);
    if (name.length > nameCharsKept) return is;
    if (known.size >= namesMax) known.clear();
    known.set(name, is);
    return is;
  };
}

/** Returns whether a cookie of this name is ignored, under these patterns or by the published list. */
export function ignoring(patterns: readonly string[]): (name: string) => boolean {
  const matchers = patterns.map(compileTextPattern);
  return (name) => isListedCookie(name) || matchers.some((matcher) => matcher.matches(name));
}

function isCookie([name]: Field): boolean {
  return name.length === 6 && name.toLowerCase() === "cookie";
}

const semicolon = 59;
const comma = 44;
const equalsSign = 61;

/**
 * Returns the first cookie that is not ignored. Each character is looked at once, because visitors choose
 * what stands here.
 */
function ownOf(value: string, isIgnored: (name: string) => boolean): CookieUse | undefined {
  let from = 0;
  let equals = -1;
  let isBehindComma = false;
  for (let at = 0; at <= value.length; at++) {
    const code = at === value.length ? semicolon : value.charCodeAt(at);
    if (code === equalsSign && equals < 0) equals = at;
    if (code !== semicolon && code !== comma) continue;
    if (equals >= 0) {
      const name = trimmed(value, from, equals);
      if (!isIgnored(name)) return { kind: "own", name: isToken.test(name) ? name : undefined };
    } else if (!isBehindComma && (code === comma || trimmed(value, from, at) !== ""))
      return { kind: "own", name: undefined };
    // Behind a comma, a piece without `=` is part of a value to everybody.
    isBehindComma = code === comma;
    from = at + 1;
    equals = -1;
  }
  return undefined;
}

/** A token of RFC 9110 §5.6.2. */
const isToken = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Trims blanks and tabs, as RFC 6265 does; to some servers other white space is a part of the name. */
function trimmed(text: string, from: number, to: number): string {
  let [first, end] = [from, to];
  while (first < end && isBlank(text.charCodeAt(first))) first++;
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(first, end);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}
