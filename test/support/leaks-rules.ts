// The cache rules of a run: drawn at random, or those of a preset as docs/caching.md writes them out; and what docs/caching.md says that they mean for a request. Nothing
// of the programs is asked.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Chance } from "./leaks-random.ts";

export type LeakRule = {
  readonly path: string;
  readonly match?: {
    readonly method?: readonly string[];
    readonly header?: Readonly<Record<string, string>>;
    readonly query?: readonly string[];
    readonly media_type?: readonly string[];
  };
  readonly bypass?: boolean;
  readonly ttl_s?: number;
  readonly negative_ttl_s?: number;
  readonly browser_ttl_s?: number;
  readonly query?: {
    readonly ignore?: readonly string[];
    readonly keep?: readonly string[];
    readonly sort?: boolean;
  };
  readonly cookies?: {
    readonly bypass?: readonly string[];
    readonly vary?: readonly string[];
    readonly ignore?: readonly string[];
  };
  readonly vary?: readonly string[];
  readonly override?: readonly string[];
  readonly stale_while_revalidate_s?: number;
  readonly stale_if_error_s?: number;
  readonly ignore_set_cookie?: boolean;
};

export type PresetName = "wordpress" | "woocommerce" | "drupal";
export type Kind = "free" | PresetName;
export const kinds: readonly Kind[] = ["free", "wordpress", "woocommerce", "drupal"];

/** The rules of a site for a time: `cache` is what the devlove says, `rules` is what it stands for. */
export type Edition = {
  readonly no: number;
  readonly cache: unknown;
  readonly rules: readonly LeakRule[];
  readonly fallback: LeakRule;
  /** Until when the cache takes no part in anything, by the wall clock; 0 where it is not paused. */
  readonly pausedUntilMs: number;
};

/** What of a request chooses its rule. Names of fields are in lower case. */
export type Chosen = {
  readonly method: string;
  readonly path: string;
  /** Without its `?`. */
  readonly query: string;
  readonly fields: ReadonlyMap<string, string>;
};

const patterns = new Map<string, RegExp>();

/** In names and values `*` stands for any characters. */
export function textMatches(pattern: string, text: string): boolean {
  return compiled(pattern, (piece) => (piece === "*" ? ".*" : piece), /\*/).test(text);
}

/** In paths `*` stands for any characters of a segment, `**` for any at all. */
export function pathMatches(pattern: string, path: string): boolean {
  const wild = (piece: string): string =>
    piece === "/**/" ? "/(?:.*/)?" : piece === "**" ? ".*" : "[^/]*";
  return compiled(pattern, wild, /\/\*\*\/|\*\*|\*/).test(path);
}

function compiled(pattern: string, wild: (piece: string) => string, between: RegExp): RegExp {
  const key = `${between.source} ${pattern}`;
  let made = patterns.get(key);
  if (made === undefined) {
    const pieces = pattern.split(new RegExp(`(${between.source})`));
    const source = pieces
      .map((piece, at) =>
        at % 2 === 1 ? wild(piece) : piece.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`),
      )
      .join("");
    made = new RegExp(`^${source}$`, "s");
    patterns.set(key, made);
  }
  return made;
}

const itemMatches = (item: string, name: string, value: string): boolean => {
  const equals = item.indexOf("=");
  if (equals < 0) return textMatches(item, name);
  return textMatches(item.slice(0, equals), name) && textMatches(item.slice(equals + 1), value);
};

/** Returns the place of the first rule that holds whatever the answer is, or -1 for the default. */
export function choose({ rules }: Edition, chosen: Chosen): number {
  return rules.findIndex((rule) => !isTyped(rule) && holds(rule, chosen));
}

const isTyped = ({ match }: LeakRule): boolean => match?.media_type !== undefined;

/** Returns the place of the rule that an answer of this media type has in the place of the one that was chosen; -1 for none. */
export function chooseTyped(
  { rules }: Edition,
  chosen: Chosen,
  place: number,
  type: string,
): number {
  const kinds = [type, type.replace(/\/.*/, "/*")];
  return rules.findIndex(
    (rule, at) =>
      (place < 0 || at < place) &&
      rule.match?.media_type?.some((one) => kinds.includes(one)) === true &&
      holds(rule, chosen),
  );
}

/** Returns what is said of an answer of this media type: by its own rule, and of the request by the request's. */
export function ruleFor(edition: Edition, chosen: Chosen, type: string): LeakRule {
  const place = choose(edition, chosen);
  const rule = ruleAt(edition, place);
  const typed = edition.rules[chooseTyped(edition, chosen, place, type)];
  if (typed === undefined) return rule;
  const { bypass, query, cookies, vary } = rule;
  return {
    ...typed,
    ...(bypass !== undefined && { bypass }),
    ...(query !== undefined && { query }),
    ...(cookies !== undefined && { cookies }),
    ...(vary !== undefined && { vary }),
  };
}

function holds(
  { path: pattern, match = {} }: LeakRule,
  { method, path, query, fields }: Chosen,
): boolean {
  const parameters = parametersOf(query);
  const asked = method === "HEAD" ? "GET" : method;
  if (!pathMatches(pattern, path)) return false;
  if ((match.method ?? []).length > 0 && match.method?.includes(asked) !== true) return false;
  const headers = Object.entries(match.header ?? {});
  if (!headers.every(([name, value]) => hasField(fields, name, value))) return false;
  const items = match.query ?? [];
  return (
    items.length === 0 ||
    items.some((item) => parameters.some(([name, value]) => itemMatches(item, name, value)))
  );
}

function hasField(fields: ReadonlyMap<string, string>, name: string, pattern: string): boolean {
  const value = fields.get(name.toLowerCase());
  return value !== undefined && textMatches(pattern, value);
}

function parametersOf(query: string): readonly (readonly [string, string])[] {
  return query === ""
    ? []
    : query.split("&").map((piece) => {
        const [name = "", ...rest] = piece.split("=");
        return [name, rest.join("=")] as const;
      });
}

export const ruleAt = ({ rules, fallback }: Edition, at: number): LeakRule => rules[at] ?? fallback;

/**
 * Returns what of a query tells pages apart. What some application may read as a parameter that counts is never left out, and what some
 * application reads under one name keeps its order.
 */
export function queryUnder(
  { query: { ignore = [], keep, sort = false } = {} }: LeakRule,
  query: string,
): string {
  const pieces = query.split("&").filter((piece) => {
    if (piece.includes(";")) return true;
    const [name = ""] = piece.split("=", 1);
    if (keep === undefined) return !ignore.some((pattern) => textMatches(pattern, name));
    return keep.some((pattern) => [name, nameOf(piece)].some((one) => textMatches(pattern, one)));
  });
  if (!sort || pieces.some((piece) => piece.includes(";"))) return pieces.join("&");
  const named = pieces.map((piece) => ({ piece, name: nameOf(piece) }));
  return named
    .toSorted((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0))
    .map(({ piece }) => piece)
    .join("&");
}

/** As the frameworks read it that care least: `ID`, `id[]` and `id[x]` are `id`. */
const nameOf = (piece: string): string =>
  (piece.split("=", 1)[0] ?? "").replace(/\[.*/, "").toLowerCase();

/** A cookie of a request. What servers read in different ways is `odd`, with or without a name. */
export type Cookie = { readonly name: string; readonly value: string; readonly isOdd?: boolean };
export type CookieMeaning = "bypass" | "vary" | "ignored" | "own";

/** The characters that RFC 6265 §4.1.1 allows in a value. */
const plainValue = /^[!#-+\x2d-:<-[\]-~]*$/;

/** Reads a Cookie field as the most suspicious of servers would: a comma may end a cookie too (RFC 2109). */
export function readCookies(text: string): readonly Cookie[] {
  return text
    .split(";")
    .map((piece) => piece.trim())
    .filter((piece) => piece !== "")
    .flatMap((piece): readonly Cookie[] => {
      const parts = piece.split(",").filter((part, at) => at === 0 || part.includes("="));
      return parts.map((part) => {
        const equals = part.indexOf("=");
        if (equals < 0) return { name: "", value: part, isOdd: true };
        const [name, value] = [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
        return { name, value, isOdd: piece.includes(",") || !plainValue.test(value) };
      });
    });
}

/** Of the published list, those that visitors of the run have. */
const listed = ["_ga", "_fbp", "euconsent-v2"];

/** Returns what each cookie means (docs/caching.md, Cookies). */
export function cookieMeanings(
  { cookies: said = {} }: LeakRule,
  cookies: readonly Cookie[],
): readonly CookieMeaning[] {
  const { bypass = [], vary = [], ignore = [] } = said;
  const isByNames = bypass.length + vary.length > 0;
  if (!isByNames && ignore.includes("*")) return cookies.map(() => "ignored");
  return cookies.map(({ name, value, isOdd = false }) => {
    // In doubt: what cannot be read bypasses where anything does.
    if (name === "") return bypass.length > 0 ? "bypass" : "own";
    if (isOdd) return oddMeaning({ bypass, vary, ignore }, name);
    const hits = (items: readonly string[]): boolean =>
      items.some((item) => itemMatches(item, name, value));
    if (hits(bypass)) return "bypass";
    if (hits(vary)) return "vary";
    return hits(ignore) || listed.includes(name) ? "ignored" : "own";
  });
}

/** The value is not known for sure, so it matters only where no item asks for it. */
function oddMeaning(
  { bypass, vary, ignore }: Record<"bypass" | "vary" | "ignore", readonly string[]>,
  name: string,
): CookieMeaning {
  const named = (items: readonly string[], isWhole: boolean): boolean =>
    items.some(
      (item) =>
        (isWhole ? !item.includes("=") : true) && textMatches(item.split("=", 1)[0] ?? "", name),
    );
  if (named(bypass, false)) return "bypass";
  if (named(vary, false)) return "own";
  return named(ignore, true) || listed.includes(name) ? "ignored" : "own";
}

/** Returns whether the rule makes answers public without the application's word, so that only what it names may differ. */
export const isForNobody = ({ ttl_s, cookies }: LeakRule): boolean =>
  ttl_s !== undefined || (cookies?.vary ?? []).length > 0;

/** Returns the cookies of `vary` in one order. */
export function variedBy(rule: LeakRule, cookies: readonly Cookie[]): string {
  const meanings = cookieMeanings(rule, cookies);
  const pairs = cookies.flatMap(({ name, value }, at) =>
    meanings[at] === "vary" ? [`${name}=${value}`] : [],
  );
  return [...new Set(pairs)].toSorted().join("; ");
}

const cookieNames = [
  "session",
  "lang",
  "currency",
  "theme",
  "seen_a",
  "seen_b",
  "PHPSESSID",
  "member",
];

function randomCookies(chance: Chance): NonNullable<LeakRule["cookies"]> {
  const bypass = chance.some(
    ["session", "PHPSESSID", "member", "wordpress_*", "SESS*", "session=*"],
    0.3,
  );
  const vary = chance.some(["lang", "currency=*", "theme", "lang=d*"], 0.3);
  const ignore = chance.is(0.15)
    ? ["*"]
    : chance.some([...cookieNames.slice(3), "seen_*", "theme=light", "m*"], 0.3);
  const taken = new Set([...bypass, ...vary]);
  return { bypass, vary, ignore: ignore.filter((item) => !taken.has(item)) };
}

function randomMatch(chance: Chance): NonNullable<LeakRule["match"]> {
  const kind = chance.below(3);
  if (kind === 0) return { header: { "X-App": chance.pick(["shop/2.*", "*", "shop/1.0"]) } };
  if (kind === 1) return { query: [chance.pick(["preview", "id=1", "a*"])] };
  return { method: ["GET"], header: { "X-Group": chance.pick(["a", "b", "*"]) } };
}

function randomKeys(chance: Chance): Omit<LeakRule, "path"> {
  if (chance.is(0.06)) return { bypass: true };
  return {
    ...(chance.is(0.6) && { ttl_s: chance.pick([300, 300, 60, 1, 0]) }),
    ...(chance.is(0.2) && { negative_ttl_s: 30 }),
    ...(chance.is(0.15) && { browser_ttl_s: chance.pick([0, 60]) }),
    ...(chance.is(0.3) && {
      query: chance.is(0.7)
        ? { ignore: ["utm_*"], sort: chance.is(0.5) }
        : { keep: ["id", "preview"] },
    }),
    ...(chance.is(0.7) && { cookies: randomCookies(chance) }),
    ...(chance.is(0.15) && { vary: [chance.pick(["X-Group", "Accept-Language", "X-Flavor"])] }),
    ...(chance.is(0.15) && { ttl_s: 60, override: ["no-cache", "max-age"] }),
    ...(chance.is(0.3) && { stale_while_revalidate_s: chance.pick([1, 30]) }),
    ...(chance.is(0.3) && { stale_if_error_s: 60 }),
    ...(chance.is(0.25) && { ignore_set_cookie: true }),
  };
}

/** Of these the applications of the run are. */
export const mediaTypes = ["text/html", "text/css", "image/png", "application/json"] as const;

/** A rule for answers of a media type: it says nothing of requests. */
function randomTyped(path: string, chance: Chance): LeakRule {
  const { bypass: _, query: __, cookies: ___, vary: ____, ...keys } = randomKeys(chance);
  const type = chance.pick([...mediaTypes, "image/*", "text/*"]);
  const header = chance.is(0.2) ? { header: { "X-Group": "a" } } : {};
  return { path, match: { media_type: [type], ...header }, ...keys, ttl_s: keys.ttl_s ?? 300 };
}

export const freeSections = 8;

/** What customers write together, and chance would seldom put together. Applications of these sections suit them: see leaks-applications.ts. */
const likely: readonly ((path: string) => readonly LeakRule[])[] = [
  (path) => [
    {
      path,
      ttl_s: 300,
      cookies: { bypass: ["session"], vary: ["lang", "currency"], ignore: ["seen_*", "theme"] },
      ignore_set_cookie: true,
    },
  ],
  (path) => [{ path, ttl_s: 300, query: { ignore: ["utm_*"], sort: true } }],
  (path) => [{ path, negative_ttl_s: 30 }],
  (path) => [
    { path, match: { media_type: ["text/*", "image/*"] }, ttl_s: 300 },
    { path, stale_if_error_s: 60 },
  ],
  (path) => [{ path, ttl_s: 300, vary: ["X-Group", "Accept-Language"] }],
];

/** Up to three rules for each section of a free site; those before the last ask for more than the path. */
function randomRules(chance: Chance): readonly LeakRule[] {
  return Array.from({ length: freeSections }, (_, section) => {
    const path = `/s${section}/**`;
    const rules: LeakRule[] = [];
    const together = likely[section]?.(path);
    if (together !== undefined && chance.is(0.6)) return together;
    if (chance.is(0.25)) rules.push(randomTyped(path, chance));
    if (chance.is(0.4)) rules.push({ path, match: randomMatch(chance), ...randomKeys(chance) });
    if (chance.is(0.85)) rules.push({ path, ...randomKeys(chance) });
    return rules;
  }).flat();
}

/** The rules that docs/caching.md writes out for a preset. */
function documentedRules(name: PresetName): readonly LeakRule[] {
  const text = readFileSync(join(import.meta.dirname, "../../docs/caching.md"), "utf8");
  const [, shown] =
    new RegExp(`\`${name}\`:\\s+<!-- rules -->\\s+\`\`\`json\\n([\\s\\S]*?)\`\`\``).exec(text) ??
    [];
  if (shown === undefined) throw new Error(`docs/caching.md shows no rules of ${name}`);
  return JSON.parse(shown) as readonly LeakRule[];
}

/** Some editions begin with a pause, part of which goes by while they are activated. */
const pausedShare = 0.2;
const pauseMs = 6_000;

export function randomEdition(kind: Kind, no: number, chance: Chance): Edition {
  const fallback: LeakRule = {
    path: "/**",
    ...(chance.is(0.3) && { ttl_s: 60 }),
    ...(chance.is(0.3) && { cookies: randomCookies(chance) }),
  };
  const { path: _, ...unmatched } = fallback;
  const pausedUntilMs = no > 0 && chance.is(pausedShare) ? Date.now() + pauseMs : 0;
  const pause = pausedUntilMs > 0 && { paused_until: new Date(pausedUntilMs).toISOString() };
  if (kind === "free") {
    const rules = randomRules(chance);
    return { no, cache: { rules, default: unmatched, ...pause }, rules, fallback, pausedUntilMs };
  }
  const ttl = chance.is(0.4) ? { ttl_s: chance.pick([60, 600]) } : {};
  const vary = chance.is(0.5) ? ["lang", "currency"] : [];
  const own: readonly LeakRule[] = chance.is(0.3)
    ? [{ path: "/blog/**", match: { header: { "X-App": "shop/2.*" } }, ttl_s: 30 }]
    : [];
  const preset = { name: kind, ...ttl, cookies: { vary } };
  const stood = documentedRules(kind).map((rule, at, all): LeakRule =>
    at < all.length - 1
      ? rule
      : { ...rule, ...ttl, cookies: { ...rule.cookies, ...(vary.length > 0 && { vary }) } },
  );
  return {
    no,
    cache: { rules: own, presets: [preset], default: unmatched, ...pause },
    rules: [...own, ...stood],
    fallback,
    pausedUntilMs,
  };
}
