// Rules that name cookies to bypass, to vary by and to ignore: what a request is told to an origin with, and what is passed on because it may be read in several ways.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import {
  compileCookieRule,
  setsVaryCookie,
  toldCharsMax,
  toldToShare,
  type CookieUse,
} from "../../../src/core/http/request-cookies.ts";
import { isListedCookie } from "../../../src/core/http/listed-cookies.ts";

type Lists = {
  readonly bypass?: readonly string[];
  readonly vary?: readonly string[];
  readonly ignore?: readonly string[];
};

const judge = (rule: Lists) => compileCookieRule({ bypass: [], vary: [], ignore: [], ...rule });

const fieldsOf = (values: readonly string[]): readonly Field[] =>
  values.map((value): Field => ["Cookie", value]);

const wordOf = (use: CookieUse): string => {
  if (use.kind === "vary") return `vary ${use.told}`;
  return use.kind === "own" || use.kind === "bypass" ? `${use.kind} ${use.name ?? "?"}` : use.kind;
};

const shop: Lists = {
  bypass: ["session", "role=admin", "dbg*"],
  vary: ["lang", "cur*=*", "theme=dark"],
  ignore: ["seen_*", "theme", "mood=*"],
};

const long = "x".repeat(toldCharsMax);

it.each<[string, readonly string[], string]>([
  ["none", [], "none"],
  ["only ignored ones", ["seen_1=a; _ga=1; theme=light"], "ignored"],
  ["one to vary by", ["lang=de"], "vary lang=de"],
  ["beside ignored ones", ["_ga=1; lang=de; seen_x=2; _gid=3"], "vary lang=de"],
  ["several, in any order", ["lang=de; currency=EUR"], "vary currency=EUR; lang=de"],
  ["in the other order", ["currency=EUR", "lang=de"], "vary currency=EUR; lang=de"],
  ["no blanks, or many", ["lang=de;currency=EUR ; \t;_ga=1;"], "vary currency=EUR; lang=de"],
  ["a value of its own", ["theme=dark"], "vary theme=dark"],
  ["another value", ["theme=light; lang=de"], "vary lang=de"],
  ["an empty value", ["lang="], "vary lang="],
  ["more equals signs", ["lang=a=b=="], "vary lang=a=b=="],
  ["twice the same", ["lang=de; lang=de", "lang=de"], "vary lang=de"],
  ["twice, of different values", ["lang=de; lang=fr"], "own lang"],
  ["twice, in two fields", ["lang=de", "lang=fr"], "own lang"],
  ["twice, of which one would be ignored", ["theme=light; theme=dark"], "own theme"],
  ["a session", ["session=1"], "bypass session"],
  ["a session among others", ["lang=de; session=1; _ga=2"], "bypass session"],
  ["a session behind what is somebody's own", ["x=1; session=1"], "bypass session"],
  ["a value that bypasses", ["role=admin"], "bypass role"],
  ["another value, of which nothing is said", ["role=user"], "own role"],
  ["twice, of which one bypasses", ["role=user; role=admin"], "bypass role"],
  ["twice, of which the first bypasses", ["role=admin; role=user"], "bypass role"],
  ["a value in quotes that may bypass", ['role="admin"'], "bypass role"],
  ["one of a wildcard", ["dbg7=1"], "bypass dbg7"],
  ["another case", ["Lang=de"], "own Lang"],
  ["a value in quotes", ['lang="de"'], "own lang"],
  ["a comma in a value", ["lang=de,at"], "own lang"],
  ["a blank in a value", ["lang=d e"], "own lang"],
  ["a backslash in a value", ["lang=d\\e"], "own lang"],
  ["NUL in a value", ["lang=d\0e"], "own lang"],
  ["beyond ASCII in a value", ["lang=\u00e9"], "own lang"],
  ["a name behind a comma", ["_ga=1,lang=de"], "own lang"],
  ["a session behind a comma", ["_ga=1,session=2"], "bypass session"],
  ["a session within quotes", ['_ga="1; session=2"'], "bypass session"],
  ["an ignored one within quotes", ['_ga="1; seen_x=2"'], "ignored"],
  ["odd values of ignored ones", ['seen_x={"a":1,"b":2}; lang=de'], "vary lang=de"],
  ["no equals sign", ["lang"], "bypass ?"],
  ["no name", ["=de"], "bypass ?"],
  ["NUL in a name", ["la\0ng=de"], "bypass ?"],
  ["another white space before the name", ["\u00a0lang=de"], "bypass ?"],
  ["a comma before anything", [",lang=de"], "bypass ?"],
  ["an attribute of RFC 2965", ["$Version=1; lang=de"], "own $Version"],
  ["a value as long as may be", [`lang=${long.slice(7)}`], `vary lang=${long.slice(7)}`],
  ["a longer one", [`lang=${long}`], "own lang"],
  ["an ignored one that is long", [`seen_1=${long}${long}; lang=de`], "vary lang=de"],
  ["an ignored one that is compared, and too long", [`mood=${long}${long}`], "own mood"],
])("%s", (_name, values, expected) => {
  expect(wordOf(judge(shop)(fieldsOf(values)))).toBe(expected);
});

describe("where only some lists are given", () => {
  it.each<[string, Lists, string, string]>([
    ["bypass leaves others to their visitor", { bypass: ["session"] }, "x=1", "own x"],
    ["and what may hide one is passed", { bypass: ["session"] }, "session", "bypass ?"],
    ["vary leaves others to their visitor", { vary: ["lang"] }, "lang=de; x=1", "own x"],
    ["and what cannot be read", { vary: ["lang"] }, "lang=de; x", "own ?"],
    ["all ignored but a session", { bypass: ["session"], ignore: ["*"] }, "a=1; b=2", "ignored"],
    ["the session", { bypass: ["session"], ignore: ["*"] }, "a=1; session=2", "bypass session"],
    ["what may hide it", { bypass: ["session"], ignore: ["*"] }, "a=1; odd", "bypass ?"],
    ["all ignored but a choice", { vary: ["lang"], ignore: ["*"] }, "a=1; lang=de", "vary lang=de"],
    ["what may hide that", { vary: ["lang"], ignore: ["*"] }, "a=1; lang", "own ?"],
    ["the list comes last", { bypass: ["_ga"], vary: ["_gid"] }, "_gid=1", "vary _gid=1"],
    ["bypass before the list", { bypass: ["_ga"] }, "_ga=1", "bypass _ga"],
    ["bypass before vary", { bypass: ["a*"], vary: ["ab"] }, "ab=1", "bypass ab"],
    [
      "also behind another value to vary by",
      { bypass: ["a=2"], vary: ["a"] },
      "a=1; a=2",
      "bypass a",
    ],
    ["vary before ignore", { vary: ["ab"], ignore: ["a*"] }, "ab=1; ac=2", "vary ab=1"],
    ["all to vary by", { vary: ["*"] }, "b=2; _ga=1; a=0", "vary _ga=1; a=0; b=2"],
    ["a value ignored", { ignore: ["lang=de"] }, "lang=de", "ignored"],
    ["and no other", { ignore: ["lang=de"] }, "lang=fr", "own lang"],
    ["a value by wildcard", { ignore: ["c=*ads*"] }, "c=no-ads-1", "ignored"],
    ["that is in quotes", { ignore: ["c=*ads*"] }, 'c="ads"', "own c"],
  ])("%s", (_name, rule, value, expected) => {
    expect(wordOf(judge(rule)([["cookie", value]]))).toBe(expected);
  });
});

it("tells at most so much, and no name's value to whoever explains it", () => {
  const many = Array.from({ length: 100 }, (_, n) => `cur${n}=secret`).join("; ");
  const use = judge(shop)([["Cookie", many]]);
  expect(use.kind).toBe("own");
  expect(JSON.stringify(use)).not.toContain("secret");
  expect(toldToShare(use)).toBeUndefined();
});

it.each([
  ["cookies to vary by", "cur1=1;".repeat(4_000)],
  ["different ones", Array.from({ length: 4_000 }, (_, n) => `cur${n}=`).join(";")],
  ["a long one", `cur=${"x".repeat(32_000)}`],
  ["one that is nearly ignored", `mood=${"ab".repeat(16_000)}`],
  ["commas", `lang=${",lang=".repeat(5_000)}`],
  ["quotes", `lang=${'"'.repeat(32_000)}`],
  ["blanks", `lang=${" ".repeat(16_000)}x${" ".repeat(16_000)}`],
])("long ones are read once: %s", (_name, value) => {
  const ask = judge({ ...shop, ignore: ["mood=*a*b*c*d*e*f", "*_*_*_*y"] });
  for (let n = 0; n < 100; n++) expect(ask([["Cookie", value]]).kind).toMatch(/own|vary/);
});

it.each<[string, string, boolean]>([
  ["another", "sid=1; Path=/", false],
  ["one to vary by", "lang=de; Path=/", true],
  ["of any value, though the rule names one", "theme=light", true],
  ["by wildcard", "currency=; Max-Age=0", true],
  ["with blanks", " lang =de", true],
  ["behind a comma", "sid=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT, lang=de", true],
  ["its name as another's value", "sid=lang", false],
  ["without a value", "lang", true],
])("an answer sets %s", (_name, line, sets) => {
  expect(setsVaryCookie([["Set-Cookie", "a=b"], ["set-cookie", line]], { vary: shop.vary ?? [] })).toBe(sets); // prettier-ignore
  expect(setsVaryCookie([["Set-Cookie", line]], { vary: [] })).toBe(false);
});

/** An item in words of a regular expression; nothing here is how the rule is compiled. */
const expressionOf = (item: string): RegExp =>
  new RegExp(
    `^${item
      .split("*")
      .map((part) => RegExp.escape(part))
      .join(".*")}$`,
    "s",
  );

type Pair = readonly [name: string, value: string];

function isIn(rows: readonly string[] = [], [name, value]: Pair): boolean {
  return rows.some((row) => {
    const [ofName = "", ofValue = "*"] = row.split("=");
    return expressionOf(ofName).test(name) && expressionOf(ofValue).test(value);
  });
}

/** What is right for cookies that every server reads alike. */
function rightFor(rule: Lists, pairs: readonly Pair[]): string {
  const told = new Map<string, string>();
  let own = false;
  const isOfVary = (name: string): boolean =>
    (rule.vary ?? []).some((item) => expressionOf(item.split("=")[0] ?? "").test(name));
  const values = Map.groupBy(pairs, ([name]) => name);
  for (const pair of pairs) {
    const [name, value] = pair;
    if (isIn(rule.bypass, pair)) return "bypass";
    const others = new Set((values.get(name) ?? []).map(([, one]) => one));
    if (isIn(rule.vary, pair)) told.set(name, value);
    else if (!isIn(rule.ignore, pair) && !isListedCookie(name)) own = true;
    if (isOfVary(name) && others.size > 1) own = true;
  }
  const text = [...told].map((pair) => pair.join("=")).toSorted().join("; "); // prettier-ignore
  if (own || text.length + 2 > toldCharsMax) return "own";
  return pairs.length === 0 ? "none" : text === "" ? "ignored" : `vary ${text}`;
}

const items = ["a", "b", "ab", "a*", "*b", "_ga", "a=1", "a=2", "b=*1", "ab=1*2", "*=1", "c", "*"];
const ruleOf = fc.record({
  bypass: fc.subarray(items, { maxLength: 2 }),
  vary: fc.subarray(items, { maxLength: 3 }),
  ignore: fc.subarray(items, { maxLength: 3 }),
});
const pairOf = fc.tuple(
  fc.constantFrom("a", "b", "ab", "aab", "_ga", "_gid", "c", "d", "A"),
  fc.constantFrom("1", "2", "12", "", "11", "a=1", "%31"),
);
const separator = fc.constantFrom(";", "; ", " ; ", ";\t", ";;");

it("says what is right for cookies that every server reads alike", () => {
  const met = new Map<string, number>();
  fc.assert(
    fc.property(
      ruleOf,
      fc.array(pairOf, { maxLength: 6 }),
      fc.array(fc.tuple(fc.boolean(), separator), { minLength: 6, maxLength: 6 }),
      (rule, pairs, places) => {
        const values: string[] = [];
        for (const [at, pair] of pairs.entries()) {
          const [isAnother = false, between = ";"] = places[at] ?? [];
          const text = pair.join("=");
          const last = values.pop();
          if (last === undefined) values.push(text);
          else if (isAnother) values.push(last, text);
          else values.push(`${last}${between}${text}`);
        }
        const use = judge(rule)(fieldsOf(values));
        const said = use.kind === "own" || use.kind === "bypass" ? use.kind : wordOf(use);
        expect(said).toBe(rightFor(rule, pairs));
        met.set(use.kind, (met.get(use.kind) ?? 0) + 1);
      },
    ),
    { numRuns: 5_000 },
  );
  for (const kind of ["none", "ignored", "vary", "own", "bypass"])
    expect([kind, (met.get(kind) ?? 0) > 100]).toEqual([kind, true]);
});

/** What servers find: by RFC 6265; with quotes that hide a semicolon, as RFC 2109 has it; with commas that end a cookie. */
const readers: readonly ((text: string) => readonly string[])[] = [
  (text) => text.split(";"),
  (text) => text.match(/(?:[^;"]|"(?:[^"\\]|\\.)*"|")+/g) ?? [],
  (text) => text.split(/[;,]/),
];

function found(read: (typeof readers)[number], values: readonly string[]): readonly Pair[] {
  return read(values.join("; "))
    .filter((piece) => piece.includes("="))
    .map((piece): Pair => {
      const equals = piece.indexOf("=");
      return [piece.slice(0, equals).trim(), piece.slice(equals + 1).trim()];
    });
}

const characters = [
  "a",
  "b",
  "=",
  "_",
  "g",
  ";",
  ";",
  ",",
  " ",
  "\t",
  '"',
  "1",
  "\\",
  "\0",
  "\u00e9",
];
const odd = fc.string({ unit: fc.constantFrom(...characters), maxLength: 24 });
const known = fc.constantFrom("a=1", "b=1", "_ga=1", 'b="1', "b=1,a=1", '"; b=2', "a", "b=1; b=1");

it("what is shared of odd fields hides from no server that reads them", () => {
  let shared = 0;
  const rule = { bypass: ["a", "bb=1"], vary: ["b*"], ignore: ["gg", "_*"] };
  const ask = judge(rule);
  fc.assert(
    fc.property(fc.array(fc.oneof(odd, known, known), { minLength: 1, maxLength: 4 }), (values) => {
      const told = toldToShare(ask(fieldsOf(values)));
      if (told === undefined) return;
      shared++;
      for (const read of readers) {
        const all = found(read, values);
        // No cookie that bypasses, and none of which the rule says nothing.
        for (const pair of all) {
          expect(isIn(rule.bypass, pair)).toBe(false);
          expect([...rule.vary, ...rule.ignore, "_ga"].some((item) => expressionOf(item).test(pair[0]))).toBe(true); // prettier-ignore
        }
      }
      // What is told is what all found of the cookies to vary by, and is read alike by all.
      const chosen = found(readers[0] ?? (() => []), values).filter(([name]) =>
        name.startsWith("b"),
      );
      const canonical = [...new Set(chosen.map((pair) => pair.join("=")))].toSorted().join("; ");
      expect(told).toBe(canonical);
      for (const read of readers) expect(found(read, [told])).toEqual(found(readers[0] ?? read, [told])); // prettier-ignore
    }),
    { numRuns: 20_000 },
  );
  expect(shared).toBeGreaterThan(1_000);
});
