// What may be stored and how long it is fresh.

import { describe, expect, it } from "vitest";
import type { Field } from "../../src/core/http-fields.ts";
import { formatHttpDate } from "../../src/core/http-date.ts";
import {
  mayServeAuthorized,
  plainRequest as plain,
  planStore,
  staleRules,
  type StorePlan,
  type StoreRequest,
} from "../../src/core/http-cache.ts";

const now = Date.UTC(2026, 0, 1);
const after = (seconds: number): string => formatHttpDate(now + seconds * 1_000);

type Settings = Parameters<typeof planStore>[2];
const byOrigin: Settings = {
  ttl_s: null,
  ignore_set_cookie: false,
  stale_while_revalidate_s: 0,
  stale_if_error_s: 0,
};

function plan(
  fields: readonly Field[],
  options: { settings?: Partial<Settings>; request?: StoreRequest; status?: number } = {},
): StorePlan {
  return planStore(
    options.request ?? plain,
    { status: options.status ?? 200, fields, requestedAtMs: now, receivedAtMs: now },
    { ...byOrigin, ...options.settings },
  );
}

const fresh = (storePlan: StorePlan): number | string =>
  storePlan.store ? storePlan.freshForS : storePlan.reason;

describe("freshness by the origin's headers", () => {
  it.each<[string, readonly Field[], number | string]>([
    [
      "nothing said: no heuristics, asked about at each use",
      [["Last-Modified", after(-9_999_999)]],
      0,
    ],
    ["max-age", [["Cache-Control", "max-age=60"]], 60],
    ["s-maxage before max-age", [["Cache-Control", "max-age=60, s-maxage=10"]], 10],
    ["s-maxage=0", [["Cache-Control", "max-age=60, s-maxage=0"]], "stale"],
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
    ["invalid is stale", [["Cache-Control", "max-age=6x"]], "stale"],
    ["negative is stale", [["Cache-Control", "max-age=-1"]], "stale"],
    ["without value is stale", [["Cache-Control", "max-age"]], "stale"],
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
    ["expires in the past", [["Expires", after(-60)]], "stale"],
    ["expires: 0", [["Expires", "0"]], "stale"],
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
      "stale",
    ],
    [
      "date long ago",
      [
        ["Cache-Control", "max-age=60"],
        ["Date", after(-90)],
      ],
      "stale",
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
    ["a string is no number", 'max-age="100"', "stale"],
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

  it.each([206, 304, 416, 101])("status %d is not stored", (status) => {
    expect(fresh(plan([["Cache-Control", "max-age=60"]], { status }))).toBe("status");
  });

  it.each([200, 203, 204, 299, 301, 302, 307, 404, 499, 500, 503, 599])(
    "status %d is stored by its own word only",
    (status) => {
      expect(fresh(plan([["Cache-Control", "max-age=60"]], { status }))).toBe(60);
      expect(fresh(plan([], { status }))).toBe("no freshness");
    },
  );

  it("must-understand", () => {
    const fields: readonly Field[] = [["Cache-Control", "max-age=60, no-store, must-understand"]];
    expect(fresh(plan(fields))).toBe(60);
    expect(fresh(plan(fields, { status: 599 }))).toBe("must-understand");
  });

  it.each([
    ["max-age=60", "authorization", false],
    ["max-age=60, public", 60, true],
    ["max-age=60, must-revalidate", 60, true],
    ["s-maxage=60", 60, true],
  ])("an answer to a request with Authorization: %s", (value, expected, isForAll) => {
    const fields: readonly Field[] = [["Cache-Control", value]];
    expect(fresh(plan(fields, { request: { ...plain, isAuthorized: true } }))).toBe(expected);
    expect(mayServeAuthorized(fields)).toBe(isForAll);
  });

  it.each([
    [200, 60],
    [301, 60],
    [400, "range"],
    [404, "range"],
    [503, "range"],
  ])("%i to a request for a part: %s", (status, expected) => {
    const request = { ...plain, isRanged: true };
    expect(fresh(plan([["Cache-Control", "max-age=60"]], { status, request }))).toBe(expected);
  });

  it("an answer to a request with no-store is not stored", () => {
    const request = { ...plain, noStore: true };
    expect(fresh(plan([["Cache-Control", "public, max-age=60"]], { request }))).toBe(
      "request no-store",
    );
  });
});

describe("what is not fresh is stored", () => {
  const etag: Field = ["ETag", '"a"'];
  const modified: Field = ["Last-Modified", after(-100)];
  it.each<[string, readonly Field[], number | string]>([
    ["with a tag, to be asked about", [etag], 0],
    ["with a date, to be asked about", [modified], 0],
    ["with a date that is none: not", [["Last-Modified", "yesterday"]], "no freshness"],
    ["though no-cache", [["Cache-Control", "no-cache, max-age=60"], etag], 0],
    ["though stale on arrival", [["Cache-Control", "max-age=9"], ["Age", "10"], etag], 9],
    [
      "for a time in which stale is allowed",
      [["Cache-Control", "max-age=0, stale-while-revalidate=9"]],
      0,
    ],
    [
      "not where that is forbidden",
      [["Cache-Control", "s-maxage=0, stale-while-revalidate=9"]],
      "stale",
    ],
  ])("%s", (_name, fields, expected) => {
    expect(fresh(plan(fields))).toBe(expected);
  });

  it("but a 404 is never asked about", () => {
    expect(fresh(plan([etag], { status: 404 }))).toBe("no freshness");
  });
});

describe("stale rules", () => {
  const by = (value: string, settings: Partial<Settings> = {}) =>
    staleRules([["Cache-Control", value]], { ...byOrigin, ...settings });
  it("are the origin's, or the site's where it speaks", () => {
    const value = "max-age=1, stale-while-revalidate=2, stale-if-error=3";
    expect(by(value)).toEqual({ isForbidden: false, whileRevalidateS: 2, ifErrorS: 3 });
    const settings = { stale_while_revalidate_s: 20, stale_if_error_s: 30 };
    expect(by(value, settings)).toEqual({ isForbidden: false, whileRevalidateS: 20, ifErrorS: 30 });
  });
  it.each(["must-revalidate", "proxy-revalidate", "s-maxage=1", "no-cache"])(
    "%s forbids, whoever allows",
    (value) => {
      expect(by(`max-age=1, ${value}`, { stale_if_error_s: 30 }).isForbidden).toBe(true);
    },
  );
});

describe("freshness by the rule's ttl_s", () => {
  const settings = { ttl_s: 30 };
  it.each<[string, readonly Field[], number | string, number?]>([
    ["nothing said", [], 30],
    ["shorter than the origin's", [["Cache-Control", "max-age=600"]], 30],
    ["over no-cache", [["Cache-Control", "no-cache, max-age=0"]], 30],
    ["as long from now on, whatever the age", [["Age", "1000"]], 1_030],
    ["never over private", [["Cache-Control", "private"]], "private"],
    ["never over no-store", [["Cache-Control", "no-store"]], "no-store"],
    ["never over Set-Cookie", [["Set-Cookie", "a=b"]], "set-cookie"],
    ["and not for errors", [], "no freshness", 404],
  ])("%s", (_name, fields, expected, status = 200) => {
    expect(fresh(plan(fields, { settings, status }))).toBe(expected);
  });

  it("0 stores nothing; ignore_set_cookie lifts the cookie's ban", () => {
    expect(fresh(plan([], { settings: { ttl_s: 0 } }))).toBe("stale");
    expect(
      fresh(plan([["Set-Cookie", "a=b"]], { settings: { ttl_s: 30, ignore_set_cookie: true } })),
    ).toBe(30);
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
});
