// What the cookies of a request mean for caches: none is there, all are ignored, or one is its visitor's own.
//
// Read so that no server finds a cookie that was not seen here. A piece between semicolons is a cookie (RFC 6265 §5.4); some servers also end one at a
// comma (RFC 2109), and others not at a semicolon within quotes: all that any of them takes for a name has to be ignored. What is no cookie to us, without
// `=`, without a name, or with another name than RFC 6265 allows, is the visitor's own too.

import type { CookieRule } from "./effective-devlove.ts";
import type { Field } from "./http-fields.ts";
import { isListedCookie } from "./listed-cookies.ts";
import { compileTextPattern } from "./path-pattern.ts";

export type CookieUse =
  | { readonly kind: "none" }
  /** Whatever they say, the answer is the same: it is asked for without them. */
  | { readonly kind: "ignored" }
  /** `name`: of the first that is not ignored; undefined where it has none that can be read. */
  | { readonly kind: "own"; readonly name: string | undefined };

/** Fields as received: there may be several, and HTTP/2 brings one in pieces. */
export type CookieJudge = (fields: readonly Field[]) => CookieUse;

const none: CookieUse = { kind: "none" };
const ignored: CookieUse = { kind: "ignored" };

/** Not forwarded in a request whose answer others get. Cookie2 is RFC 2965's, and obsolete. */
export const cookieFields: ReadonlySet<string> = new Set(["cookie", "cookie2"]);

/** What is ignored beside the published list. */
export function compileCookieRule({ ignore }: CookieRule): CookieJudge {
  if (ignore.includes("*")) return (fields) => (fields.some(isCookie) ? ignored : none);
  const isIgnored = ignoring(ignore);
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

/** Whether a cookie of this name is ignored under such patterns or by the published list. */
export function ignoring(patterns: readonly string[]): (name: string) => boolean {
  const matchers = patterns.map(compileTextPattern);
  return (name) => isListedCookie(name) || matchers.some((matcher) => matcher.matches(name));
}

function isCookie([name]: Field): boolean {
  return name.length === 6 && name.toLowerCase() === "cookie";
}

function ownOf(value: string, isIgnored: (name: string) => boolean): CookieUse | undefined {
  for (const piece of value.split(";")) {
    if (trimmed(piece) === "") continue;
    // What has no `=` behind a comma is a part of a value to everybody.
    for (const [at, part] of piece.split(",").entries()) {
      const equals = part.indexOf("=");
      if (equals < 0 && at > 0) continue;
      const name = equals < 0 ? "" : trimmed(part.slice(0, equals));
      const isReadable = isToken.test(name);
      if (!isReadable || !isIgnored(name))
        return { kind: "own", name: isReadable ? name : undefined };
    }
  }
  return undefined;
}

/** RFC 9110 §5.6.2. */
const isToken = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Blanks and tabs, as RFC 6265 has them; other white space is a part of the name to some. */
function trimmed(text: string): string {
  return text.replaceAll(/^[ \t]+|[ \t]+$/g, "");
}
