// What is wrong with a devlove in ways that no schema can express: names of headers and files, targets,
// contradictions.
//
// A text check gets a string and returns the fault, worded to follow the name of the key ("`index` must not
// …"), or undefined. A whole check gets the parts of a value of which only the outermost type is known, so
// that faults within the parts are reported together with its own.

import { familyBits, parseRange } from "../addresses/ip.ts";
import { hopByHop } from "../http/http-fields.ts";
import {
  canonicalPath,
  compilePathPattern,
  namePatternFault,
  pathPatternCharsMax,
  pathPatternFault,
} from "./path-pattern.ts";
import type { TextMatcher } from "./path-pattern.ts";

/** A fault within the value that was checked. */
export type Fault = { readonly path: readonly (string | number)[]; readonly message: string };

/**
 * The most redirects with wildcards: each is tried at every request, while all exact ones together take one
 * look-up.
 */
export const wildRedirectsMax = 100;

// oxlint-disable-next-line no-control-regex -- control characters are what is refused.
const controlCharacter = /[\x00-\x1f\x7f]/;

export function viewsDirFault(path: string): string | undefined {
  if (path === "") return 'must not be empty: "." is the root of the viewset';
  return relativePathFault(path, path);
}

/**
 * Checks the path of a file of the site root. One leading slash is accepted, because people write it either
 * way.
 */
export function filePathFault(path: string): string | undefined {
  if (/(?:^|\/)\.?$/.test(path)) return "must name a file";
  return relativePathFault(path.replace(/^\//, ""), path);
}

function relativePathFault(relative: string, path: string): string | undefined {
  if (relative.startsWith("/")) return "must be a relative path";
  if (controlCharacter.test(path)) return "must not contain control characters";
  if (path.includes("\\")) return "must not contain backslashes: folders are separated by `/`";
  if (relative.split("/").includes("..")) return "must not contain `..`";
  return undefined;
}

export function indexNameFault(name: string): string | undefined {
  if (name === "" || name === "." || name === "..") return "must be the name of a file";
  if (name.includes("/") || name.includes("\\")) return "must be a name without slashes";
  return controlCharacter.test(name) ? "must not contain control characters" : undefined;
}

/**
 * Headers that say where a body ends and how it is coded; if they changed, the body would be cut or
 * unreadable.
 */
const framingHeaders: ReadonlySet<string> = new Set([
  "content-encoding",
  "content-length",
  "content-range",
]);

export function headerNameFault(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name) || name === "__proto__")
    return "is not a header name (RFC 9110 §5.1)";
  const lower = name.toLowerCase();
  if (hopByHop.includes(lower)) return "is a hop-by-hop header: it belongs to the connection";
  if (framingHeaders.has(lower)) return "is a framing header: it belongs to the body";
  return undefined;
}

export function headerValueFault(value: string): string | undefined {
  if (/[\r\n]/.test(value)) return "must be one line (no CR or LF)";
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
    ? undefined
    : "must not contain control characters or characters beyond Latin-1";
}

/** The shortest prefixes of ranges that may purge: a wider one is a slip, and would let strangers empty a cache. */
const purgePrefixMin = { 4: 8, 6: 16 } as const;

/** Says what is wrong with an address or a CIDR range from which purge requests are taken. */
export function addressRangeFault(text: string): string | undefined {
  const parsed = parseRange(text);
  if (!parsed.ok)
    return parsed.reason.includes("host bits")
      ? `has host bits set: ${parsed.reason.replace(/^.*; /, "")}`
      : "is not an IPv4 or IPv6 address or CIDR range";
  const { family, first, last } = parsed.range;
  const prefixMin = purgePrefixMin[family];
  const sizeMax = 1n << BigInt(familyBits[family] - prefixMin);
  return last - first + 1n > sizeMax
    ? `is too wide: a range of IPv${family} has a prefix of ${prefixMin} or longer`
    : undefined;
}

/** Says what is wrong with the digest of a purge key. */
export function purgeKeyFault(text: string): string | undefined {
  return /^[0-9a-f]{64}$/.test(text)
    ? undefined
    : "is not the SHA-256 of a key in 64 lower-case hexadecimal digits; never write the key itself here";
}

/** Says what is wrong with a path that an origin is asked for; it may have a query. */
export function originPathFault(path: string): string | undefined {
  return /^\/[\x21\x22\x24-\x7e]*$/.test(path)
    ? undefined
    : "must be a path that starts with `/`, without blanks or `#`";
}

export function redirectTargetFault(to: string): string | undefined {
  if (/[^\x21-\x7e]|\\/.test(to))
    return "must not contain blanks, backslashes or characters beyond ASCII (encode them as %XX)";
  if (to.includes("*"))
    return "must not contain `*`: it is used as written, nothing of `from` is carried over";
  if (to.startsWith("/"))
    return to.startsWith("//") ? "must name the scheme before `//`" : undefined;
  if (!/^https?:\/\//i.test(to)) return "must be a path that starts with `/`, or an http(s) URL";
  if (!URL.canParse(to)) return "is not a URL: the host or the port cannot be read";
  const { username, password } = new URL(to);
  return username === "" && password === "" ? undefined : "must not contain credentials";
}

export function domainNameFault(name: string): string | undefined {
  const isName =
    name.length <= 253 &&
    /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(
      name,
    );
  return isName ? undefined : "is not a lower-case host name";
}

type Parts = Readonly<Record<string, unknown>>;

export function queryFaults(query: Parts): Fault[] {
  const said = ["ignore", "keep"].filter((key) => Object.hasOwn(query, key));
  if (said.length === 1 || (said.length === 0 && Object.hasOwn(query, "sort"))) return [];
  return [
    {
      path: [],
      message:
        said.length === 2
          ? "`ignore` and `keep` exclude each other"
          : "`ignore`, `keep` or `sort` must be given",
    },
  ];
}

/** The keys of a rule that say nothing where only answers to other methods than GET are meant. */
const keysOfGet = [
  "ttl_s",
  "negative_ttl_s",
  "browser_ttl_s",
  "vary",
  "override",
  "bypass",
  "query",
  "cookies",
  "stale_while_revalidate_s",
  "stale_if_error_s",
  "ignore_set_cookie",
];

export function cacheFaults(rule: Parts): Fault[] {
  return [
    ...withoutGetFaults(rule),
    ...typedFaults(rule),
    ...bypassFaults(rule),
    ...varyFaults(rule),
  ];
}

/** Finds names by which the rule tells answers apart though it tells the origin the same of all visitors. */
function varyFaults({ vary, headers }: Parts): Fault[] {
  const request = partOf(headers, "request");
  const set = Object.keys(partOf(request, "set") ?? {});
  const remove: unknown = partOf(request, "remove");
  const told = new Set(
    [...set, ...(Array.isArray(remove) ? remove : [])].map((name) => String(name).toLowerCase()),
  );
  return (Array.isArray(vary) ? vary : []).flatMap((name, at) =>
    typeof name === "string" && told.has(name.toLowerCase())
      ? [
          {
            path: ["vary", at],
            message: `\`${name.slice(0, 200)}\` tells no answers apart: \`headers.request\` tells the application the same of all visitors`,
          },
        ]
      : [],
  );
}

function partOf(value: unknown, key: string): object | undefined {
  const part: unknown =
    typeof value === "object" && value !== null
      ? Object.getOwnPropertyDescriptor(value, key)?.value
      : undefined;
  return typeof part === "object" && part !== null ? part : undefined;
}

/** The keys that decide before the origin answers. */
const keysOfRequests = ["bypass", "query", "cookies", "vary"];

/** Finds keys beside `match.media_type` that would have to know the answer before there is one. */
function typedFaults(rule: Parts): Fault[] {
  const types = partOf(rule["match"], "media_type");
  if (!Array.isArray(types) || types.length === 0) return [];
  const paths: string[][] = keysOfRequests
    .filter((key) => Object.hasOwn(rule, key))
    .map((key) => [key]);
  if (partOf(rule["headers"], "request") !== undefined) paths.push(["headers", "request"]);
  return paths.map((path) => ({
    path,
    message: `\`${path.join(".")}\` cannot stand beside \`match.media_type\`: it decides before the application answers, when the media type is not known; write it in a rule without \`media_type\` that follows`,
  }));
}

function withoutGetFaults(rule: Parts): Fault[] {
  const { match } = rule;
  const methods: unknown =
    typeof match === "object" && match !== null && "method" in match ? match.method : undefined;
  if (!Array.isArray(methods) || methods.length === 0 || methods.includes("GET")) return [];
  return keysOfGet
    .filter((key) => Object.hasOwn(rule, key))
    .map((key) => ({
      path: [key],
      message: `\`${key}\` has no effect: \`match.method\` leaves out GET, and only answers to GET are stored`,
    }));
}

function bypassFaults(rule: Parts): Fault[] {
  if (rule["bypass"] !== true) return [];
  return ["ttl_s", "negative_ttl_s", "browser_ttl_s"]
    .filter((key) => Object.hasOwn(rule, key))
    .map((key) => ({
      path: [key],
      message: `\`${key}\` has no effect with \`bypass: true\`: leave one of them out`,
    }));
}

/** Finds rules that no request reaches, because an earlier one has the same path and asks no more than they do. */
export function cacheRulesFaults(rules: readonly unknown[]): Fault[] {
  const faults: Fault[] = [];
  const seen = new Map<string, number>();
  for (const [at, rule] of rules.entries()) {
    const path = textOf(rule, "path");
    if (path === undefined || typeof rule !== "object" || rule === null) continue;
    const whole = JSON.stringify([path]);
    const own = "match" in rule ? JSON.stringify([path, rule.match]) : whole;
    const before = seen.get(whole) ?? seen.get(own);
    if (before === undefined) seen.set(own, at);
    else {
      const asked = seen.has(whole) ? "asks no more" : "asks the same";
      const message = `no request reaches this rule: rule ${before} has the same path and ${asked}`;
      faults.push({ path: [at], message });
    }
  }
  return faults;
}

export function matchFaults(match: Parts): Fault[] {
  const isEmpty = ["method", "header", "query", "media_type"].every((key) => {
    const value = match[key];
    return typeof value !== "object" || value === null || Object.keys(value).length === 0;
  });
  const message =
    "asks for nothing: name a `method`, a `header`, a parameter of the `query` or a `media_type`";
  return isEmpty ? [{ path: [], message }] : [];
}

/** Says what is wrong with the path below which an application lies; "" is the root. */
export function presetBaseFault(base: string): string | undefined {
  if (base === "") return undefined;
  if (base.endsWith("/")) return "must not end with a slash: the root is the empty text";
  return base.includes("*") ? "must be a path without `*`" : pathPatternFault(base);
}

export function presetFaults(preset: Parts): Fault[] {
  if (preset["pages"] === undefined || preset["name"] === "woocommerce") return [];
  return [{ path: ["pages"], message: "`pages` is for `woocommerce` only" }];
}

/** Says what is wrong with the name of a request header that a rule asks for. */
export function matchHeaderFault(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (lower === "cookie" || lower === "cookie2")
    return "is matched by `cookies` of the rule, which names each cookie";
  if (name.includes("_"))
    return "has `_` in its name, and such headers never reach the application";
  return headerNameFault(name);
}

/** Request headers by which nothing needs to be told apart, or cannot be. */
const notVariedBy: Readonly<Record<string, string>> = {
  "accept-encoding": "needs no entry of its own: `compression` makes what each visitor can read",
  authorization: "is a credential, and an answer to it is not shared (RFC 9111 §3.5)",
  cookie: "is told apart by `cookies.vary`, which names each cookie",
  cookie2: "is told apart by `cookies.vary`, which names each cookie",
  host: "is a part of the URL",
  "if-match": "is a condition",
  "if-modified-since": "is a condition",
  "if-none-match": "is a condition",
  "if-range": "is a condition",
  "if-unmodified-since": "is a condition",
  range: "asks for a part, which is cut out of the whole",
};

/** Says what is wrong with the name of a request header by which a rule tells answers apart. */
export function varyHeaderFault(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (Object.hasOwn(notVariedBy, lower)) return notVariedBy[lower];
  if (name.includes("_"))
    return "has `_` in its name, and such headers never reach the application";
  return headerNameFault(name);
}

const saidByAgent = "is said by the accelerator";
const credential =
  "is a credential: a fetch whose answer others get would be made with the rights of one of them";

/** Request headers that no rule sets or removes. */
const notEdited: Readonly<Record<string, string>> = {
  "accept-encoding": "is said by the accelerator: `compression` makes what each visitor can read",
  authorization: credential,
  cookie: "is told by `cookies`, which names each cookie",
  cookie2: "is told by `cookies`, which names each cookie",
  expect: "is answered by the accelerator",
  forwarded: saidByAgent,
  host: "names the site: `backend.host` says what the origin sees",
  "if-match": "is a condition",
  "if-modified-since": "is a condition",
  "if-none-match": "is a condition",
  "if-range": "is a condition",
  "if-unmodified-since": "is a condition",
  proxy: "never reaches the application",
  range: "asks for a part, which is cut out of the whole",
  via: saidByAgent,
  "x-accel-decision": saidByAgent,
  "x-real-ip": saidByAgent,
};

/** Says what is wrong with the name of a header that a rule sets or removes in requests to the origin. */
export function requestHeaderFault(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (Object.hasOwn(notEdited, lower)) return notEdited[lower];
  if (lower.startsWith("x-forwarded-")) return saidByAgent;
  if (name.includes("_"))
    return "has `_` in its name, and such headers never reach the application";
  return headerNameFault(name);
}

/** Says what is wrong with a pattern for the value of a request header. */
export function matchValueFault(value: string): string | undefined {
  if (value === "") return 'must not be empty: `"*"` is any value';
  if (value.length > pathPatternCharsMax) return `is longer than ${pathPatternCharsMax} characters`;
  return headerValueFault(value);
}

/** Says what is wrong with an item of `match.query`: a name, or `name=value`. */
export function matchQueryFault(item: string): string | undefined {
  const [name = ""] = item.split("=", 1);
  if (item.slice(name.length + 1).includes("&") || item.includes("#"))
    return "is matched with one parameter: no `&` or `#` (encode them as %XX)";
  if (item.length > pathPatternCharsMax) return `is longer than ${pathPatternCharsMax} characters`;
  if (name.startsWith("?")) return "is the name of a parameter: leave out the `?`";
  return namePatternFault(name);
}

/** The lists of a rule for cookies, in the order in which they are asked. */
const cookieLists = ["bypass", "vary", "ignore"];

/** Finds items that have no effect, because an earlier list has the same. */
export function cookiesFaults(cookies: Parts): Fault[] {
  const faults: Fault[] = [];
  const seen = new Map<string, string>();
  for (const list of cookieLists) {
    const items: unknown = cookies[list];
    for (const [at, item] of (Array.isArray(items) ? items : []).entries()) {
      if (typeof item !== "string") continue;
      const before = seen.get(item);
      if (before === undefined) seen.set(item, list);
      else if (before !== list)
        faults.push({
          path: [list, at],
          message: `${JSON.stringify(item.slice(0, 200))} has no effect here: it is also in \`${before}\`, which is asked first`,
        });
    }
  }
  return faults;
}

/** Finds header names that differ only in case, and names that are both set and removed. */
export function headersFaults({ set, remove }: Parts): Fault[] {
  const faults: Fault[] = [];
  const seen = new Map<string, string>();
  for (const name of typeof set === "object" && set !== null ? Object.keys(set) : []) {
    const before = seen.get(name.toLowerCase());
    if (before !== undefined)
      faults.push({
        path: ["set", name],
        message: `\`${name}\` is set twice: also as \`${before}\``,
      });
    else seen.set(name.toLowerCase(), name);
  }
  for (const [at, name] of (Array.isArray(remove) ? remove : []).entries()) {
    if (typeof name !== "string" || !seen.has(name.toLowerCase())) continue;
    faults.push({
      path: ["remove", at],
      message: `\`${name}\` is also set, which replaces it anyway`,
    });
  }
  return faults;
}

/**
 * Finds too many wildcards, and redirects that lead to themselves: their target is a path that they are the
 * first to match.
 */
export function redirectsFaults(redirects: readonly unknown[]): Fault[] {
  const faults: Fault[] = [];
  const literals = new Set<string>();
  const wild: TextMatcher[] = [];
  for (const [at, redirect] of redirects.entries()) {
    const from = textOf(redirect, "from");
    if (from === undefined || pathPatternFault(from) !== undefined) continue;
    const matcher = compilePathPattern(from);
    const to = targetPath(textOf(redirect, "to"));
    // An earlier redirect that takes the target ends the loop. A literal redirect onto itself is wrong
    // whatever stands before it.
    const isLoop = to !== undefined && matcher.matches(to);
    if (
      isLoop &&
      (matcher.literal !== undefined ||
        (!literals.has(to) && !wild.some((earlier) => earlier.matches(to))))
    ) {
      faults.push({
        path: [at, "to"],
        message: "the redirect leads to itself: `from` matches `to`",
      });
    }
    if (matcher.literal !== undefined) literals.add(matcher.literal);
    else if (wild.push(matcher) > wildRedirectsMax) {
      return [
        ...faults,
        {
          path: [at],
          message: `more than ${wildRedirectsMax} redirects have wildcards in \`from\``,
        },
      ];
    }
  }
  return faults;
}

function targetPath(to: string | undefined): string | undefined {
  if (to === undefined || !to.startsWith("/") || redirectTargetFault(to) !== undefined)
    return undefined;
  return canonicalPath(to.replace(/[?#].*$/, ""));
}

function textOf(value: unknown, key: string): string | undefined {
  const text =
    typeof value === "object" && value !== null
      ? Object.getOwnPropertyDescriptor(value, key)?.value
      : undefined;
  return typeof text === "string" ? text : undefined;
}
