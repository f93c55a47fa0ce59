// What browsers are told of a lifetime, where a rule says it.

import { expect, it } from "vitest";
import { forBrowsers, forOutdated } from "../../../src/core/http/browser-lifetime.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";

const told = (fields: readonly Field[], ttl: number | null = 60, ageS = 0, status = 200): string =>
  forBrowsers(fields, { status, ageS, browserTtlS: ttl }).map((field) => field.join(": ")).join("; "); // prettier-ignore
const of = (...lines: readonly string[]): readonly Field[] =>
  lines.map((line): Field => ["Cache-Control", line]);

it.each<[string, readonly Field[], string]>([
  ["nothing", [], "Cache-Control: max-age=60"],
  ["a lifetime", of("max-age=3600"), "Cache-Control: max-age=60"],
  ["a lifetime of nothing", of("max-age=0"), "Cache-Control: max-age=60"],
  ["a lifetime in capitals, in a list", of("public, MAX-AGE = 5, immutable"), "Cache-Control: public, immutable, max-age=60"],
  ["two lines", of("max-age=5", "max-age=6, no-transform"), "Cache-Control: no-transform, max-age=60"],
  ["one for shared caches", of("s-maxage=9, max-age=5"), "Cache-Control: s-maxage=9, max-age=60"],
  ["when it expires", [["Expires", "0"], ["ETag", "x"]], "ETag: x; Cache-Control: max-age=60"],
  ["that it has to be asked about later", of("max-age=5, must-revalidate"), "Cache-Control: must-revalidate, max-age=60"],
])("an origin that says %s", (_name, fields, expected) => {
  expect(told(fields)).toBe(expected);
  // Browsers take its age off.
  expect(told(fields, 60, 40)).toBe(expected.replace("=60", "=100"));
  expect(told(fields, 0, 40)).toBe(expected.replace("=60", "=0"));
}); // prettier-ignore

it.each<[string, readonly Field[]]>([
  ["no-store", of("no-store")],
  ["no-cache", of("max-age=9, no-cache")],
  ["no-cache of a field", of('no-cache="x"')],
  ["private", of("private, max-age=9")],
  ["private behind a slip", of("private; max-age=0")],
  ["a lifetime of nothing that binds", of("max-age=0, must-revalidate")],
  ["Pragma", [["Pragma", "no-cache"]]],
])("an origin that says %s is passed on as it is", (_name, fields) => {
  expect(forBrowsers(fields, { status: 200, ageS: 0, browserTtlS: 60 })).toBe(fields);
});

it("is for answers that a rule gives a lifetime, and where a rule says it", () => {
  expect(told([], 60, 0, 404)).toBe("");
  expect(told([], 60, 0, 302)).toBe("");
  expect(told([], 60, 0, 301)).toBe("Cache-Control: max-age=60");
  expect(told(of("max-age=5"), null)).toBe("Cache-Control: max-age=5");
  expect(told([...of("max-age=5"), ["Pragma", "no-cache"]])).toBe("Pragma: no-cache; Cache-Control: max-age=60");
}); // prettier-ignore

it.each<[stored: string, told: string]>([
  ["Cache-Control: public, max-age=600", "Cache-Control: public, max-age=0"],
  ["Cache-Control: s-maxage=600, Max-Age=60", "Cache-Control: max-age=0"],
  ["Cache-Control: max-age=60, stale-while-revalidate=30", "Cache-Control: max-age=0"],
  ["Cache-Control: private, no-cache", "Cache-Control: private, no-cache, max-age=0"],
  ["Expires: Thu, 01 Jan 2032 00:00:00 GMT", "Cache-Control: max-age=0"],
  ["Last-Modified: x", "Last-Modified: x; Cache-Control: max-age=0"],
  [
    "Cache-Control: max-age=5; CDN-Cache-Control: max-age=600, public",
    "Cache-Control: max-age=0; CDN-Cache-Control: public, max-age=0",
  ],
])("what a soft clear has made stale: %s", (stored, told) => {
  const fields = stored.split("; ").map((line): [string, string] => {
    const [name = "", value = ""] = line.split(": ");
    return [name, value];
  });
  expect(forOutdated(fields).map((field) => field.join(": ")).join("; ")).toBe(told); // prettier-ignore
});
