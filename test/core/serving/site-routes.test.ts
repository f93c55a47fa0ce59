// Which redirect and cache rule a path meets, and what a query rule leaves.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { effectiveDevlove } from "../../../src/core/serving/effective-devlove.ts";
import type { CacheInput, SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { plainRequest, planStore } from "../../../src/core/http/http-cache.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { selectingBy } from "../../../src/core/http/http-vary.ts";
import { compileSite, queryRuleName } from "../../../src/core/serving/site-routes.ts";
import { ruleMet } from "../../support/rule-met.ts";

function site(input: SiteInput) {
  return effectiveDevlove({ domains: { "a.example": input } }, "a.example", null);
}

const normalizeQuery = (query: string, rule: { query: object }): string =>
  ruleMet(compileSite(site({ cache: { default: rule } })), "/").normalizeQuery(query);

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
    expect([path, ruleMet(routes, path).settings.ttl_s]).toEqual([path, ttl]);
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
  // What some origins read as a parameter of its own.
  ["q=shoes&utm_source=x;q=EVIL", { ignore: ["utm_*"] }, "q=shoes&utm_source=x;q=EVIL"],
  ["x=1;q=EVIL&y=2", { keep: ["q"] }, "x=1;q=EVIL"],
  ["utm_source=x%3Bq=1", { ignore: ["utm_*"] }, ""],
  [
    "user.id=1&user%5Bid=2&user+id=3&userid=4",
    { keep: ["user_id"] },
    "user.id=1&user%5Bid=2&user+id=3",
  ],
  [
    "+q=1&q[]=2&q[x][y]=3&q%00z=4&%20.q=5&[q]=6&qq[]=7",
    { keep: ["q"] },
    "+q=1&q[]=2&q[x][y]=3&q%00z=4",
  ],
  ["Q=1&Page=2&R=3", { keep: ["q", "page"] }, "Q=1&Page=2"],
  ["UTM_x=1&utm.x=2&utm_x[]=3", { ignore: ["utm_x"] }, "UTM_x=1&utm.x=2&utm_x[]=3"],
  // Sorted, but for what a framework may read under one name.
  ["b=2&a=1", { sort: true }, "a=1&b=2"],
  ["a=1&b=2", { sort: true }, "a=1&b=2"],
  ["b=2&a=1&b=1&a=2", { sort: true }, "a=1&a=2&b=2&b=1"],
  ["c=1&B=2&b=3&a=4", { sort: true }, "a=4&B=2&b=3&c=1"],
  ["z=1&a[]=2&a=3&a[x][y]=4&%61=5", { sort: true }, "a[]=2&a=3&a[x][y]=4&%61=5&z=1"],
  ["z=1&a%5B%5D=2", { sort: true }, "a%5B%5D=2&z=1"],
  ["c&a&b=", { sort: true }, "a&b=&c"],
  ["b=2&utm_x=1&a=1", { ignore: ["utm_*"], sort: true }, "a=1&b=2"],
  ["page=2&x=1&id=1", { keep: ["id", "page"], sort: true }, "id=1&page=2"],
  ["b=2&a=1", { keep: [], sort: true }, ""],
  ["b=2&a.x=1", { sort: true }, "b=2&a.x=1"],
  ["b=2&a+x=1", { sort: true }, "b=2&a+x=1"],
  ["b=2&a[=1", { sort: true }, "b=2&a[=1"],
  ["b=2;c=3&a=1", { sort: true }, "b=2;c=3&a=1"],
  ["b=2&&a=1", { sort: true }, "b=2&&a=1"],
  ["b=2&%ff=1", { sort: true }, "b=2&%ff=1"],
  ["b=2&a=1", { ignore: [], sort: false }, "b=2&a=1"],
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
      // Under `keep` what frameworks read as the name stays, too: some pieces stay under both.
      expect(count(kept) + count(rest)).toBeGreaterThanOrEqual(count(query));
    }),
  );
});

/** How frameworks name a parameter: PHP, Rails and qs, ASP.NET, and others. Nothing here is how the rule reads names. */
const frameworks: readonly ((name: string) => string)[] = [
  (name) =>
    name
      .replace(/^ +/, "")
      .replace(/\[.*\]$/, "")
      .replaceAll(/[ .[]/g, "_"),
  (name) => name.split("[")[0] ?? "",
  (name) => name.toLowerCase(),
  (name) => name,
];

const nameIn = (piece: string): string => {
  const name = (piece.split("=")[0] ?? "").replaceAll("+", " ");
  return /%(?![0-9a-f]{2})/i.test(name) ? name : decodeURIComponent(name);
};

test("sorting keeps all pieces, and the order of those that a framework reads under one name; of the same it makes the same", () => {
  const names = [
    "a",
    "b",
    "A",
    "a[]",
    "a[b]",
    "a_b",
    "a.b",
    "a+b",
    "%61",
    "a%5B%5D",
    "a[",
    "c-d",
    "",
  ];
  const piece = fc.tuple(fc.constantFrom(...names), fc.constantFrom("1", "2")).map((parts) => parts.join("=")); // prettier-ignore
  const rule = { query: { sort: true } };
  let moved = 0;
  fc.assert(
    fc.property(fc.uniqueArray(piece, { maxLength: 6 }), fc.nat(), (pieces, turn) => {
      const query = pieces.join("&");
      const left = normalizeQuery(query, rule).split("&");
      if (query !== left.join("&")) moved++;
      expect(left.toSorted()).toEqual(query.split("&").toSorted());
      expect(normalizeQuery(left.join("&"), rule)).toBe(left.join("&"));
      for (const [at, one] of pieces.entries())
        for (const other of pieces.slice(at + 1)) {
          const isOne = frameworks.some((read) => read(nameIn(one)) === read(nameIn(other)));
          if (isOne) expect(left.indexOf(one)).toBeLessThan(left.indexOf(other));
        }
      // Two neighbours of plain and different names changed places.
      const at = turn % Math.max(1, pieces.length - 1);
      const [one = "", other = ""] = [pieces[at], pieces[at + 1]];
      if (
        pieces.length < 2 ||
        !pieces.every((each) => /^(?:a|b|c-d)=/.test(each)) ||
        nameIn(one) === nameIn(other)
      )
        return;
      const turned = pieces.with(at, other).with(at + 1, one).join("&"); // prettier-ignore
      expect(normalizeQuery(turned, rule)).toBe(left.join("&"));
    }),
    { numRuns: 3_000 },
  );
  expect(moved).toBeGreaterThan(100);
});

const routeOf = (rule: CacheInput) => ruleMet(compileSite(site({ cache: { default: rule } })), "/");

test.each<[SiteInput, string]>([
  [{}, ""],
  [{ cache: { default: { query: { ignore: [] } } } }, ""],
  [{ cache: { default: { query: { keep: [] } } } }, "keep:"],
  [{ cache: { default: { query: { ignore: ["utm_*", "a,b|"] } } } }, "ignore:utm_*|a%2Cb%7C"],
  [{ cache: { default: { query: { keep: ["\ud800"] } } } }, "keep:%EF%BF%BD"],
  [{ cache: { default: { query: { sort: true } } } }, "sort:"],
  [{ cache: { default: { query: { keep: ["a"], sort: true } } } }, "sort:keep:a"],
  [{ cache: { default: { query: { ignore: ["a"], sort: true } } } }, "sort:ignore:a"],
])("a rule for the query has one name: %j is %j", (input, name) => {
  expect(ruleMet(compileSite(site(input)), "/").queryRule).toBe(name);
  // As it stands among what a response varies by.
  expect(selectingBy(() => name)(queryRuleName)).toBe(name);
});

describe("what is stored lasts", () => {
  const stored = {
    status: 200,
    headers: [["Cache-Control", "max-age=300"]] as readonly Field[],
    storedAtMs: 1_000,
    initialAgeS: 10,
    freshForS: 3_610,
  };

  test.each<[string, CacheInput, Partial<typeof stored>, number]>([
    ["as it was to under the same rule", { ttl_s: 3_600 }, {}, 3_610],
    ["as long as a shorter rule says", { ttl_s: 60 }, {}, 70],
    ["no longer than it was to", { ttl_s: 36_000 }, {}, 3_610],
    ["not at all under a rule of nothing", { ttl_s: 0 }, {}, 0],
    ["as long as the origin said where no rule does", {}, {}, 300],
    ["not at all where nobody says anything", {}, { headers: [] }, 0],
    ["as the origin said where rules do not speak", { ttl_s: 60 }, { status: 404 }, 300],
    ["not at all when it was found to be another", { ttl_s: 60 }, { freshForS: 0 }, 0],
  ])("%s", (_name, rule, other, lasts) => {
    const one = { ...stored, ...other };
    const { inForce } = routeOf(rule).forAnswer(one.headers);
    const now = inForce(one);
    expect(now).toEqual({ ...one, freshForS: lasts });
    expect(inForce(one)).toEqual(now);
    if (lasts === one.freshForS) expect(now).toBe(one);
  });

  test("under the rule that it was stored under as planned", () => {
    const seconds = fc.integer({ min: 0, max: 1_000 });
    const said = fc.constantFrom<Field>(
      ["Cache-Control", "max-age=60"],
      ["Cache-Control", "s-maxage=5, max-age=60"],
      ["CDN-Cache-Control", "max-age=7"],
      ["Cache-Control", "no-cache"],
      ["Expires", "Thu, 01 Jan 1970 00:10:00 GMT"],
      ["Date", "Thu, 01 Jan 1970 00:00:10 GMT"],
    );
    fc.assert(
      fc.property(
        fc.array(said, { maxLength: 3 }),
        fc.option(seconds, { nil: undefined }),
        fc.constantFrom(200, 404),
        (fields, ttl_s, status) => {
          const rule = ttl_s === undefined ? {} : { ttl_s };
          const headers: readonly Field[] = [...fields, ["ETag", '"e"']];
          const { settings, inForce } = routeOf(rule).forAnswer(headers);
          const facts = { status, fields: headers, requestedAtMs: 20_000, receivedAtMs: 20_000 };
          const plan = planStore(plainRequest, facts, settings);
          if (!plan.store) return;
          const { initialAgeS, freshForS } = plan;
          const one = { status, headers, storedAtMs: 20_000, initialAgeS, freshForS };
          expect(inForce(one)).toBe(one);
        },
      ),
    );
  });
});
