// The applications of the leak hunt, one for each path: what of a request each makes its page by, and whether it says so rightly, carelessly or not at all. Each part of an
// answer names the answer that it was made for, and the value of the visitor's that it shows.

import { createHash } from "node:crypto";
import { Chance } from "./leaks-random.ts";
import { freeSections, kinds, mediaTypes, type Kind } from "./leaks-rules.ts";
import {
  allowInWords,
  forbidInWords,
  nothingMeant,
  type Meaning,
  type Said,
} from "./leaks-words.ts";

type FieldLine = readonly [name: string, value: string];

const sections: Readonly<Record<Kind, readonly [string, ...string[]]>> = {
  free: ["/s0", "/s2", ...Array.from({ length: freeSections }, (_, at) => `/s${at + 1}`)],
  wordpress: ["/blog", "/blog", "/shop", "/wp-content/themes/x", "/wp-admin", "/a/wp-json"],
  woocommerce: [
    "/product",
    "/product",
    "/shop",
    "/wp-content/x",
    "/cart",
    "/my-account",
    "/checkout",
  ],
  drupal: ["/node", "/node", "/en/blog", "/core/misc", "/user", "/de/admin", "/sites/x/files"],
};
/** Inputs by which pages are made: cookies by name or all of them, fields, and the whole query, which every page shows. */
const inputs = [
  "cookie:session", "cookie:lang", "cookie:currency", "cookie:member", "cookie:PHPSESSID", "cookie:wordpress_logged_in_a1",
  "cookie:SESSab12", "cookie:woocommerce_cart_hash", "cookie:theme", "cookie:*", "field:authorization", "field:accept-language",
  "field:user-agent", "field:x-flavor", "field:x-group", "field:x-original-url", "field:x-http-method-override", "field:x-forwarded-scheme",
] as const; // prettier-ignore
export type Input = (typeof inputs)[number];

/** Of these every application that is right says `private`. */
const isPersonal = (input: Input): boolean =>
  /^cookie:(?!lang|currency|theme)|authorization|flavor|original|override|scheme/.test(input);

export type Application = {
  readonly no: number;
  readonly domain: string;
  readonly kind: Kind;
  readonly path: string;
  readonly seed: number;
  readonly reads: readonly Input[];
  readonly manner: "right" | "varies" | "careless";
  /** What becomes another after some answers: what it says of who may have them, or also by what they differ. */
  readonly changes: "nothing" | "words" | "all";
  readonly answersPerChange: number;
  readonly type: (typeof mediaTypes)[number];
  readonly validator: "none" | "of-content" | "of-page" | "date";
  readonly status: number;
  readonly delayMs: number;
  readonly lines: number;
};

export const domainOf = (kind: Kind): string => `${kind}.leaks.example`;

export function applicationAt(seed: number, no: number): Application {
  const chance = Chance.of(seed, no);
  const kind = kinds[no % kinds.length] ?? "free";
  const section = chance.pick(sections[kind]);
  return {
    no,
    domain: domainOf(kind),
    kind,
    path: `${section}/p${no}${chance.is(0.2) ? ".css" : ""}`,
    seed: chance.below(2 ** 31),
    reads: chance.some(inputs, chance.pick([0.03, 0.1, 0.1, 0.3])),
    manner: chance.pick(["right", "right", "varies", "careless", "careless"]),
    validator: chance.pick(["none", "of-content", "of-page", "date"]),
    status: statusIn(section, chance),
    delayMs: chance.is(0.3) ? chance.below(25) : 0,
    lines: chance.pick([1, 4, 40, 120]),
    changes: chance.pick(["nothing", "nothing", "nothing", "words", "all"]),
    answersPerChange: chance.pick([2, 5, 20]),
    type: chance.pick(["text/html", "text/html", ...mediaTypes]),
  };
}

/** Section 2 of a free site is where things have gone. */
function statusIn(section: string, chance: Chance): number {
  if (section === "/s2" && chance.is(0.6)) return 404;
  return chance.is(0.85) ? 200 : chance.pick([404, 410, 301, 203, 302]);
}

/** What an origin was told of a visitor. */
export type Told = {
  readonly fields: ReadonlyMap<string, string>;
  readonly cookie: string;
  readonly query: string;
};
export type Page = {
  readonly status: number;
  readonly fields: readonly FieldLine[];
  readonly meaning: Meaning;
  /** In lower case; undefined for `*`. */
  readonly vary: readonly string[] | undefined;
  readonly setsCookies: readonly string[];
  readonly etag: string | undefined;
  readonly body: string;
};

function shownOf(reads: readonly Input[], { fields, cookie, query }: Told): readonly string[] {
  const shown = query === "" ? [] : [`query ${query}`];
  for (const input of reads) {
    const [from = "", name = ""] = input.split(":");
    const value = from === "field" ? fields.get(name) : cookieNamed(cookie, name);
    if (value !== undefined && value !== "")
      shown.push(`${input} ${value.replaceAll(/[<>\s]+/g, "_")}`);
  }
  return shown;
}

/** As many servers read it: the first that has the name. */
function cookieNamed(text: string, name: string): string | undefined {
  if (name === "*") return text;
  const pair = text.split(/[;,]\s*/).find((piece) => piece.trim().startsWith(`${name}=`));
  return pair?.trim().slice(name.length + 1);
}

/** Returns the fields that tell pages apart, as the application says: all of them, or those that chance leaves. */
function varyOf(chance: Chance, { reads, manner }: Application): readonly string[] | undefined {
  if (manner === "careless" && chance.is(0.02)) return undefined;
  const needed = new Set(
    reads.map((input) => {
      const [from = "", name = ""] = input.split(":");
      return from === "cookie" ? "cookie" : name;
    }),
  );
  if (manner === "careless") return chance.some([...needed, "accept-encoding"], 0.4);
  // What is said to be private need not be told apart.
  return [...needed].filter(
    (name) => manner === "varies" || !["cookie", "authorization"].includes(name),
  );
}

/** Of what is not there applications seldom say how long that lasts. */
function wordsOf({ status }: Application, chance: Chance): Said {
  return status === 404 && chance.is(0.7)
    ? { fields: [], meaning: nothingMeant }
    : allowInWords(chance);
}

/** Whoever makes pages by a language or a currency also sets the cookie. */
function cookiesSet(
  chance: Chance,
  { reads, path }: Application,
  isOfVisitor: boolean,
): readonly string[] {
  const chosen = (["lang", "currency"] as const).filter((name) => reads.includes(`cookie:${name}`));
  const isChooser = chosen.length > 0 || path.startsWith("/s0/");
  if (isChooser && chance.is(0.2)) return [chosen[0] ?? "lang"];
  const isSet = chance.is(isOfVisitor ? 0.3 : 0.05);
  return isSet ? [chance.pick(["session", "lang", "_ga", "member"])] : [];
}

/** How often something is private that is no visitor's alone. */
function shareOfPrivate({ manner, changes }: Application): number {
  if (changes !== "nothing") return 0.3;
  return manner === "right" ? 0 : 0.15;
}

function varyLines(chance: Chance, names: readonly string[] | undefined): readonly FieldLine[] {
  if (names === undefined) return [["Vary", chance.pick(["*", "accept-encoding, *"])]];
  if (names.length === 0) return [];
  const said = names.map((name) => (chance.is(0.5) ? name : name.toUpperCase()));
  if (chance.is(0.3)) return said.map((name): FieldLine => ["vary", name]);
  return [["Vary", said.join(chance.pick([", ", ",", " , ,"]))]];
}

/** Makes the answer number `no` for what the application was told; `turn`: it has made so many before. */
export function pageOf(application: Application, told: Told, no: number, turn: number): Page {
  const { seed, reads, manner, validator, status, lines, changes, type } = application;
  const shown = shownOf(reads, told);
  const isOfVisitor = reads.some(
    (input) => isPersonal(input) && shown.some((text) => text.startsWith(input)),
  );
  // The same words for everybody who is told alike, so that what is said once can be stored and met again.
  const era = changes === "nothing" ? 0 : Math.floor(turn / application.answersPerChange);
  const chance = Chance.of(seed, 2 * era + (isOfVisitor ? 1 : 0));
  const isPrivate = (manner === "right" && isOfVisitor) || chance.is(shareOfPrivate(application));
  const said = isPrivate ? forbidInWords(chance) : wordsOf(application, chance);
  const differing = changes === "all" ? chance : Chance.of(seed, isOfVisitor ? -1 : -2);
  const vary = varyOf(differing, application);
  const setsCookies = cookiesSet(chance, application, isOfVisitor);
  const named = shown.map((text) => `<${text} ${no}>\n`).join("");
  const body = named + `<body ${no}>\n`.repeat(lines);
  const digest = createHash("sha256").update(shown.join("\n")).digest("base64url").slice(0, 12);
  // Some applications give pages for different visitors one tag, and some take the date of the article.
  const tag = validator === "of-content" ? `"${application.no}-${digest}"` : `"${application.no}"`;
  const hasTag = validator === "of-content" || validator === "of-page";
  const fields: readonly FieldLine[] = [
    ["Content-Type", `${differing.is(0.2) ? type.toUpperCase() : type}; charset=utf-8`],
    ...said.fields,
    ...varyLines(differing, vary),
    ...setsCookies.map((name): FieldLine => [
      chance.pick(["Set-Cookie", "set-cookie"]),
      `${name}=<sid ${no}>; Path=/`,
    ]),
    ["X-Made", `<head ${no}>`],
    ...shown.slice(0, 2).map((text): FieldLine => ["X-Shown", `<${text} ${no}>`]),
    ...(hasTag ? [["ETag", tag] as const] : []),
    ...(validator === "date" ? [["Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT"] as const] : []),
    ...(status === 301 || status === 302 ? [["Location", `/moved?by=${no}`] as const] : []),
  ];
  return {
    status,
    fields,
    meaning: said.meaning,
    vary,
    setsCookies,
    etag: hasTag ? tag : undefined,
    body,
  };
}
