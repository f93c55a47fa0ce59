// Whether the cookies of a request are its visitor's own: read as any server might, and ignored only where every one of them is.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { compileCookieRule, ignoring } from "../../../src/core/http/request-cookies.ts";

/** A rule that names ignored cookies alone. */
const ignoringOnly = (ignore: readonly string[]) =>
  compileCookieRule({ bypass: [], vary: [], ignore });

const said = (values: readonly string[], ignore: readonly string[] = []): string => {
  const use = ignoringOnly(ignore)(values.map((value): Field => ["Cookie", value]));
  return use.kind === "own" ? `own ${use.name ?? "?"}` : use.kind;
};

describe("cookies", () => {
  it.each<[string, readonly string[], readonly string[], string]>([
    ["none", [], [], "none"],
    ["of the list", ["_ga=GA1.2.3; _fbp=fb.1.2"], [], "ignored"],
    ["a login", ["PHPSESSID=1"], [], "own PHPSESSID"],
    ["a login among those of the list", ["_ga=1; sid=2; _gid=3"], [], "own sid"],
    ["a login in a second field", ["_ga=1", "sid=2"], [], "own sid"],
    ["a login behind a tab", ["_ga=1;\tsid=2"], [], "own sid"],
    ["no blank between", ["_ga=1;sid=2"], [], "own sid"],
    ["empty pieces", ["_ga=1;; ;\t; _gid=2;"], [], "ignored"],
    ["nothing in it", [""], [], "ignored"],
    ["no name", ["=1"], [], "own ?"],
    ["no equals sign", ["_ga"], [], "own ?"],
    ["no equals sign, among others", ["_ga=1; flag; _gid=2"], [], "own ?"],
    ["a quoted value", ['_ga="1"'], [], "ignored"],
    ["a login within quotes", ['_ga="1; sid=2"'], [], "own sid"],
    ["one of the list within quotes", ['_ga="1; _gid=2"'], [], "ignored"],
    ["a login behind a comma", ["_ga=1, sid=2"], [], "own sid"],
    ["a comma within a value", ["cookieyes-consent=consentid:x,consent:yes"], [], "ignored"],
    ["a comma before anything", [",_ga=1"], [], "own ?"],
    ["a comma at the end", ["_ga=1,"], [], "ignored"],
    ["a comma and an equals sign within a value", ["_ga=a,b c=d"], [], "own ?"],
    ["more equals signs", ["_ga=a=b==; _gid=="], [], "ignored"],
    ["an attribute of RFC 2965", ["$Version=1; _ga=1"], [], "own $Version"],
    ["a name with a blank", ["_ga x=1"], [], "own ?"],
    ["another white space before the name", ["_ga=1;\u00a0_gid=1"], [], "own ?"],
    ["a name beyond ASCII", ["_g\u00e4=1"], [], "own ?"],
    ["another case", ["_GA=1"], [], "own _GA"],
    ["named by the rule", ["ab_test=1"], ["ab_test"], "ignored"],
    ["by the rule's wildcard", ["ab_test_7=1; ab_=2"], ["ab_*"], "ignored"],
    ["a wildcard within", ["x-17-y=1"], ["x-*-y"], "ignored"],
    ["not to its end", ["x-17-yz=1"], ["x-*-y"], "own x-17-yz"],
    ["escapes are characters", ["a%62=1"], ["ab"], "own a%62"],
    ["and plus is plus", ["a+b=1"], ["a+b"], "ignored"],
    ["all but what the rule names", ["ab=1; sid=2"], ["ab"], "own sid"],
    ["a name that is none, though a pattern takes it in", ["ab_ x=1"], ["ab_*"], "own ?"],
    ["all", ["sid=1; odd; =x", "\u00e4"], ["*"], "ignored"],
    ["all, where none is", [], ["*"], "none"],
    ["all names", ["sid=1"], ["**"], "ignored"],
    ["all names, but this is none", ["odd"], ["**"], "own ?"],
  ])("%s", (_name, values, ignore, expected) => {
    expect(said(values, ignore)).toBe(expected);
  });

  it("are those of any field of the name, and of no other", () => {
    const judge = ignoringOnly([]);
    expect(judge([["cOOKIE", "sid=1"]]).kind).toBe("own");
    expect(judge([["Cookies", "sid=1"], ["X-Cookie", "sid=1"], ["Cookie2", "x"]]).kind).toBe("none"); // prettier-ignore
  });
});

it("answers the same however often it is asked, and whatever names came between", () => {
  const judge = ignoringOnly(["ab_*"]);
  const ask = (name: string): string => judge([["Cookie", `${name}=1`]]).kind;
  for (let round = 0; round < 3; round++) {
    expect(["_ga", "ab_1", "sid", "a b"].map(ask)).toEqual(["ignored", "ignored", "own", "own"]);
    for (let n = 0; n < 600; n++) expect(ask(`x${n}`)).toBe("own");
    expect(ask("x".repeat(200))).toBe("own");
    expect(ask(`ab_${"x".repeat(200)}`)).toBe("ignored");
  }
});

/** A header may have 32 KiB. What is quadratic in its length takes seconds with each of these, so that a hundred do not end within the test's time. */
it.each([
  ["blanks before a name", `${"\t ".repeat(16_000)}x=1`, "own"],
  ["blanks within a name", `a${" ".repeat(32_000)}b=1`, "own"],
  ["blanks behind a name", `_ga${" ".repeat(32_000)}=1`, "ignored"],
  ["commas", `_ga=${",a".repeat(16_000)}`, "ignored"],
  ["cookies", "_ga=1;".repeat(5_000), "ignored"],
  ["equals signs", `_ga${"=".repeat(32_000)}`, "ignored"],
  ["a name", `${"x".repeat(32_000)}=1`, "own"],
  ["a name that a pattern nearly takes in", `ab_${"ab_x".repeat(8_000)}=1`, "own"],
])("long ones are read once: %s", (_name, long, kind) => {
  const judge = ignoringOnly(["a*b*c*d*e*f", "*_*_*_*y"]);
  for (let n = 0; n < 100; n++) expect(judge([["Cookie", long]]).kind).toBe(kind);
});

const ignore = ["ab_*", "seen"];
const ignoredName = fc.constantFrom(
  "_ga",
  "_gid",
  "_ga_ABC1",
  "_hjSession_1",
  "ab_",
  "ab_x",
  "seen",
);
const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/);
const ownName = fc
  .oneof(
    fc.constantFrom("sid", "PHPSESSID", "_ga_session", "_pk_session", "a", "Seen", "x_ga", "ab"),
    token,
  )
  .filter((name) => !ignoring(ignore)(name));
const value = fc.stringMatching(/^[!#-+\x2d-:<-[\]-~]{0,8}$/);
const characters = ["a", "b", "=", "_", "g", ";", ",", " ", "\t", '"', "$", "*", "\u00e9"];
const odd = fc.string({ unit: fc.constantFrom(...characters), maxLength: 24 });
const between = fc.constantFrom(";", "; ", " ;", ";\t", ";;", "; ;");

/** The same cookies over any number of fields, however they are set apart. */
const written = (pairs: readonly string[]): fc.Arbitrary<readonly string[]> =>
  fc
    .tuple(fc.array(fc.nat(2), { minLength: pairs.length, maxLength: pairs.length }), between)
    .map(([places, separator]) =>
      [0, 1, 2]
        .map((place) => pairs.filter((_, at) => places[at] === place).join(separator))
        .filter((text) => text !== ""),
    );
const pair = (name: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(name, value).map((parts) => parts.join("="));

describe("whatever stands beside it", () => {
  it("one cookie that is not ignored makes the request its visitor's", () => {
    fc.assert(
      fc.property(
        fc
          .tuple(fc.array(pair(ignoredName), { maxLength: 6 }), pair(ownName), fc.nat())
          .chain(([others, one, at]) =>
            written(others.toSpliced(at % (others.length + 1), 0, one)),
          ),
        (values) => {
          expect(said(values, ignore)).toMatch(/^own/);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("and only ignored ones make it anybody's", () => {
    fc.assert(
      fc.property(
        fc.array(pair(ignoredName), { minLength: 1, maxLength: 6 }).chain(written),
        (values) => {
          expect(said(values, ignore)).toBe("ignored");
        },
      ),
    );
  });

  /** What servers find: by RFC 6265; with quotes that hide a semicolon, as RFC 2109 has it; with commas that end a cookie. */
  const readers: readonly ((text: string) => readonly string[])[] = [
    (text) => text.split(";"),
    (text) => text.match(/(?:[^;"]|"(?:[^"\\]|\\.)*"|")+/g) ?? [],
    (text) => text.split(/[;,]/),
  ];

  it("whoever reads odd fields finds no cookie in them that was not seen", () => {
    let found = 0;
    fc.assert(
      fc.property(fc.array(odd, { minLength: 1, maxLength: 3 }), (values) => {
        const names = readers
          .flatMap((read) => read(values.join("; ")))
          .filter((piece) => piece.includes("="))
          .map((piece) => piece.slice(0, piece.indexOf("=")).trim());
        if (!names.some((name) => name !== "" && !ignoring(ignore)(name))) return;
        found++;
        expect(said(values, ignore)).toMatch(/^own/);
      }),
      { numRuns: 5_000 },
    );
    expect(found).toBeGreaterThan(500);
  });
});
