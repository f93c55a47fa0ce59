// Which redirect and cache rule a path meets, and what a query rule leaves.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { effectiveDevlove } from "../../src/core/effective-devlove.ts";
import type { SiteInput } from "../../src/core/effective-devlove.ts";
import { compileSite } from "../../src/core/site-routes.ts";

function site(input: SiteInput) {
  return effectiveDevlove({ domains: { "a.example": input } }, "a.example", null);
}

const normalizeQuery = (query: string, rule: { query: object }): string =>
  compileSite(site({ cache: { default: rule } }))
    .cache("/")
    .normalizeQuery(query);

test("the first rule that matches wins, exact or not", () => {
  const cached = site({
    cache: {
      rules: [
        { path: "/a/exact", ttl_s: 1 },
        { path: "/a/**", ttl_s: 2 },
        { path: "/a/late", ttl_s: 3 },
        { path: "/b", ttl_s: 4 },
        { path: "/**.png", ttl_s: 5 },
      ],
      default: { ttl_s: 9 },
    },
  });
  const routes = compileSite(cached);
  const rows = [
    ["/a/exact", 1],
    ["/a/late", 2],
    ["/b", 4],
    ["/b.png", 5],
    ["/a/x.png", 2],
    ["/c", 9],
    ["/%61/x", 2],
  ] as const;
  for (const [path, ttl] of rows) {
    expect([path, routes.cache(path).settings.ttl_s]).toEqual([path, ttl]);
  }
});

test("redirects: the first that matches, or none", () => {
  const redirected = site({
    redirects: [
      { from: "/old/*", to: "/new", status: 301 },
      { from: "/old/a", to: "/never", status: 302 },
      { from: "/x", to: "https://example.com/", status: 308 },
    ],
  });
  expect(compileSite(redirected).redirect("/old/a")?.to).toBe("/new");
  expect(compileSite(redirected).redirect("/old/a/b")).toBeUndefined();
  expect(compileSite(redirected).redirect("/x")).toEqual({
    from: "/x",
    to: "https://example.com/",
    status: 308,
  });
});

test("a map of exact patterns answers as trying one by one does", () => {
  const pattern = fc.constantFrom("/a", "/b", "/a/b", "/*", "/**", "/a/*", "/**/b");
  fc.assert(
    fc.property(
      fc.array(pattern, { maxLength: 8 }),
      fc.constantFrom("/a", "/b", "/a/b", "/c", "/c/b"),
      (patterns, path) => {
        const redirects = patterns.map((from, at) => ({
          from,
          to: `/${at}`,
          status: 301 as const,
        }));
        const slow = redirects.find(
          (one) => compileSite(site({ redirects: [one] })).redirect(path) !== undefined,
        );
        expect(compileSite(site({ redirects })).redirect(path)).toEqual(slow);
      },
    ),
  );
});

test.each([
  ["a=1&utm_source=x&b=2", { ignore: ["utm_*"] }, "a=1&b=2"],
  ["utm_source=x", { ignore: ["utm_*"] }, ""],
  ["b=2&a=1&b=1", { ignore: ["a"] }, "b=2&b=1"],
  ["a=%7e&b=+%2B", { ignore: ["c"] }, "a=%7e&b=+%2B"],
  ["a&b&", { ignore: ["b"] }, "a&"],
  ["%75tm_x=1&a=1", { ignore: ["utm_*"] }, "a=1"],
  ["a=1&&b=2", { ignore: [] }, "a=1&&b=2"],
  ["id=1&x=2", { keep: ["id"] }, "id=1"],
  ["x=2&%69d=7", { keep: ["id"] }, "%69d=7"],
  ["x=2", { keep: [] }, ""],
  ["ids=1&id[]=2", { keep: ["id*"] }, "ids=1&id[]=2"],
  ["", { ignore: ["a"] }, ""],
  ["", { keep: ["a"] }, ""],
  ["a==b=c", { keep: ["a"] }, "a==b=c"],
])("%j with %j leaves %j", (query, rule, left) => {
  expect(normalizeQuery(query, { query: rule })).toBe(left);
});

test("what is left is the query's own pieces in their order, and a second time changes nothing", () => {
  const piece = fc.string({
    unit: fc.constantFrom("a", "b", "=", "%61", "%", "+", "*"),
    maxLength: 4,
  });
  const patterns = fc.array(fc.constantFrom("a", "b*", "*a", "*"), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), patterns, (pieces, names) => {
      const query = pieces.join("&");
      const kept = normalizeQuery(query, { query: { keep: names } });
      const rest = normalizeQuery(query, { query: { ignore: names } });
      for (const left of [kept, rest]) {
        let from = 0;
        for (const part of left === "" ? [] : left.split("&")) {
          const at = query.split("&").indexOf(part, from);
          expect(at).toBeGreaterThanOrEqual(from);
          from = at + 1;
        }
      }
      expect(normalizeQuery(kept, { query: { keep: names } })).toBe(kept);
      expect(normalizeQuery(rest, { query: { ignore: names } })).toBe(rest);
      const count = (text: string): number => text.split("&").filter((part) => part !== "").length;
      expect(count(kept) + count(rest)).toBe(count(query));
    }),
  );
});
