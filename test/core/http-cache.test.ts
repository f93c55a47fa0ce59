// What may be stored, how long it is fresh, which variant answers.

import { describe, expect, it } from "vitest";
import type { Field } from "../../src/core/http-fields.ts";
import { formatHttpDate } from "../../src/core/http-date.ts";
import {
  currentAgeS,
  isFresh,
  isVariantFor,
  normalAcceptEncoding,
  planStore,
  variantOf,
  type StorePlan,
} from "../../src/core/http-cache.ts";

const now = Date.UTC(2026, 0, 1);
const after = (seconds: number): string => formatHttpDate(now + seconds * 1_000);

type Settings = Parameters<typeof planStore>[2];
const byOrigin: Settings = { ttl_s: null, ignore_set_cookie: false };

function plan(
  fields: readonly Field[],
  options: { settings?: Partial<Settings>; request?: readonly Field[]; status?: number } = {},
): StorePlan {
  return planStore(
    options.request ?? [],
    { status: options.status ?? 200, fields, requestedAtMs: now, receivedAtMs: now },
    { ...byOrigin, ...options.settings },
  );
}

const fresh = (storePlan: StorePlan): number | string =>
  storePlan.store ? storePlan.freshForS : storePlan.reason;

describe("freshness by the origin's headers", () => {
  it.each<[string, readonly Field[], number | string]>([
    ["nothing said: no heuristics", [["Last-Modified", after(-9_999_999)]], "no freshness"],
    ["max-age", [["Cache-Control", "max-age=60"]], 60],
    ["s-maxage before max-age", [["Cache-Control", "max-age=60, s-maxage=10"]], 10],
    ["s-maxage=0", [["Cache-Control", "max-age=60, s-maxage=0"]], "no freshness"],
    ["in quotes", [["Cache-Control", 'max-age="60"']], 60],
    ["any case", [["cache-control", "MAX-AGE=60"]], 60],
    [
      "twice: the lesser",
      [
        ["Cache-Control", "max-age=60"],
        ["Cache-Control", "max-age=30"],
      ],
      30,
    ],
    ["invalid is stale", [["Cache-Control", "max-age=6x"]], "no freshness"],
    ["negative is stale", [["Cache-Control", "max-age=-1"]], "no freshness"],
    ["without value is stale", [["Cache-Control", "max-age"]], "no freshness"],
    ["huge is capped", [["Cache-Control", "max-age=99999999999"]], 2 ** 31],
    ["within another's quotes", [["Cache-Control", 'ext="max-age=60"']], "no freshness"],
    [
      "expires",
      [
        ["Expires", after(60)],
        ["Date", after(0)],
      ],
      60,
    ],
    ["expires in the past", [["Expires", after(-60)]], "no freshness"],
    ["expires: 0", [["Expires", "0"]], "no freshness"],
    [
      "max-age beats expires",
      [
        ["Expires", after(-60)],
        ["Cache-Control", "max-age=5"],
      ],
      5,
    ],
    ["no-cache", [["Cache-Control", "no-cache, max-age=60"]], "no-cache"],
    ["private", [["Cache-Control", 'private="x", max-age=60']], "private"],
    ["no-store", [["Cache-Control", "max-age=60, No-Store"]], "no-store"],
    [
      "set-cookie",
      [
        ["Cache-Control", "max-age=60"],
        ["Set-Cookie", "a=b"],
      ],
      "set-cookie",
    ],
    [
      "vary *",
      [
        ["Cache-Control", "max-age=60"],
        ["Vary", "accept, *"],
      ],
      "vary",
    ],
    [
      "age already spent",
      [
        ["Cache-Control", "max-age=60"],
        ["Age", "60"],
      ],
      "no freshness",
    ],
    [
      "date long ago",
      [
        ["Cache-Control", "max-age=60"],
        ["Date", after(-90)],
      ],
      "no freshness",
    ],
  ])("%s", (_name, fields, expected) => {
    expect(fresh(plan(fields))).toBe(expected);
  });

  it.each<[string, string, number | string]>([
    ["overrides Cache-Control", "max-age=100", 100],
    ["forbids", "no-store", "no-store"],
    ["with parameters", "max-age=7;x=1", 7],
    ["malformed: as if absent", "max-age=100,", 60],
    ["upper case is malformed", "Max-Age=100", 60],
    ["empty: as if absent", "", 60],
    ["a string is no number", 'max-age="100"', "no freshness"],
    ["the last of two", "max-age=1, max-age=2", 2],
    ["?0 is absent", "max-age=9, private=?0", 9],
  ])("CDN-Cache-Control %s", (_name, value, expected) => {
    expect(
      fresh(
        plan([
          ["Cache-Control", "max-age=60"],
          ["CDN-Cache-Control", value],
        ]),
      ),
    ).toBe(expected);
    expect(
      fresh(
        plan([
          ["Cache-Control", "private, max-age=60"],
          ["CDN-Cache-Control", value],
        ]),
      ),
    ).toBe(expected === 60 ? "private" : expected);
  });

  it("without lifetime does not fall back to Expires", () => {
    expect(
      fresh(
        plan([
          ["Expires", after(60)],
          ["CDN-Cache-Control", "public"],
        ]),
      ),
    ).toBe("no freshness");
  });

  it.each([206, 301, 304, 404, 500])("status %d is not stored", (status) => {
    expect(fresh(plan([["Cache-Control", "max-age=60"]], { status }))).toBe("status");
  });

  it.each<[Field, string]>([
    [["Authorization", "Basic eA=="], "authorization"],
    [["Cache-Control", "no-store"], "request no-store"],
  ])("request with %j is not stored", (field, reason) => {
    expect(fresh(plan([["Cache-Control", "public, s-maxage=60"]], { request: [field] }))).toBe(
      reason,
    );
  });
});

describe("freshness by the rule's ttl_s", () => {
  const settings = { ttl_s: 30 };
  it.each<[string, readonly Field[], number | string]>([
    ["nothing said", [], 30],
    ["shorter than the origin's", [["Cache-Control", "max-age=600"]], 30],
    ["over no-cache", [["Cache-Control", "no-cache, max-age=0"]], 30],
    ["as long from now on, whatever the age", [["Age", "1000"]], 1_030],
    ["never over private", [["Cache-Control", "private"]], "private"],
    ["never over no-store", [["Cache-Control", "no-store"]], "no-store"],
    ["never over Set-Cookie", [["Set-Cookie", "a=b"]], "set-cookie"],
  ])("%s", (_name, fields, expected) => {
    expect(fresh(plan(fields, { settings }))).toBe(expected);
  });

  it("0 stores nothing; ignore_set_cookie lifts the cookie's ban", () => {
    expect(fresh(plan([], { settings: { ttl_s: 0 } }))).toBe("stale");
    expect(
      fresh(plan([["Set-Cookie", "a=b"]], { settings: { ttl_s: 30, ignore_set_cookie: true } })),
    ).toBe(30);
  });
});

describe("age", () => {
  const stored = { storedAtMs: now, initialAgeS: 5, freshForS: 10 };
  it.each([
    [now, 5, true],
    [now + 4_999, 9, true],
    [now + 5_000, 10, false],
    [now - 1, Infinity, false],
  ])("at %d", (at, age, isStillFresh) => {
    expect(currentAgeS(stored, at)).toBe(age);
    expect(isFresh(stored, at)).toBe(isStillFresh);
  });

  it("counts the time that the answer took", () => {
    const facts = {
      status: 200,
      fields: [
        ["Cache-Control", "max-age=60"],
        ["Age", "2"],
      ] as const,
    };
    const slow = planStore(
      [],
      { ...facts, requestedAtMs: now - 3_000, receivedAtMs: now },
      byOrigin,
    );
    expect(slow).toMatchObject({ store: true, initialAgeS: 5 });
  });
});

describe("variants", () => {
  it("are what Vary names, an encoded body always by Accept-Encoding", () => {
    const planned = plan([
      ["Cache-Control", "max-age=60"],
      ["Vary", "Accept-Language, X-B"],
      ["vary", "x-b"],
      ["Content-Encoding", "gzip"],
    ]);
    expect(planned).toMatchObject({ varyNames: ["accept-encoding", "accept-language", "x-b"] });
  });

  it("answer requests with the same values only", () => {
    const request: readonly Field[] = [["Accept-Language", "de"]];
    const vary = variantOf(["accept-language", "x-b"], request);
    expect(vary).toEqual({ "accept-language": "de", "x-b": "" });
    expect(isVariantFor(vary, request)).toBe(true);
    expect(isVariantFor(vary, [["accept-language", " de "]])).toBe(true);
    expect(isVariantFor(vary, [["Accept-Language", "en"]])).toBe(false);
    expect(isVariantFor(vary, [...request, ["X-B", "1"]])).toBe(false);
    expect(isVariantFor(variantOf([], request), [])).toBe(true);
  });

  it.each([
    [undefined, ""],
    ["gzip, deflate, br, zstd", "br, gzip, zstd"],
    ["zstd;q=0.5, br;q=0, x-gzip", "gzip, zstd"],
    ["BR;q=0.001", "br"],
    ["identity, *", ""],
  ])("Accept-Encoding %j is %j", (value, expected) => {
    expect(normalAcceptEncoding(value)).toBe(expected);
  });
});
