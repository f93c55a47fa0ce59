// Addresses of pages: whatever stands in one is read again as it was.

import fc from "fast-check";
import { expect, test } from "vitest";
import { hrefTo, routeOf } from "../../src/console/route.ts";

const word = fc.string({ unit: "grapheme", minLength: 1 });

test("parts and query come back as they were put in", () => {
  fc.assert(
    fc.property(fc.array(word, { maxLength: 4 }), fc.dictionary(word, word), (parts, query) => {
      const route = routeOf(hrefTo(parts, query));
      expect(route.parts).toEqual(parts);
      expect(new Map(route.query)).toEqual(new Map(Object.entries(query)));
    }),
  );
});

test("what is undefined or empty is left out", () => {
  expect(hrefTo(["d", "www.example.com"], { since: 5, until: undefined, path: "" })).toBe(
    "#/d/www.example.com?since=5",
  );
  expect(hrefTo([""])).toBe("#/");
});

test("an address that somebody wrote by hand", () => {
  expect(routeOf("")).toEqual({ parts: [], query: new URLSearchParams() });
  expect(routeOf("#/d//a%zz/").parts).toEqual(["d", "a%zz"]);
  expect(routeOf("#/logs?path=/a?b=c").query.get("path")).toBe("/a?b=c");
});
