// What may be stored and how long it is fresh.

import { describe, expect, it } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { formatHttpDate } from "../../../src/core/http/http-date.ts";
import {
  lifetimeUnder,
  mayServeAuthorized,
  mayServeCookies,
  plainRequest as plain,
  planStore,
  staleRules,
  type StorePlan,
  type StoreRequest,
} from "../../../src/core/http/http-cache.ts";
import { CACHE_DEFAULTS } from "../../../src/core/serving/cache-defaults.ts";

const now = Date.UTC(2026, 0, 1);
const after = (seconds: number): string => formatHttpDate(now + seconds * 1_000);

type Settings = Parameters<typeof planStore>[2];
const byOrigin: Settings = CACHE_DEFAULTS;

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
  it("are forbidden by Pragma: no-cache where nothing else is said", () => {
    const settings = { ...byOrigin, stale_if_error_s: 30 };
    expect(staleRules([["Pragma", "no-cache"]], settings).isForbidden).toBe(true);
    const both: readonly Field[] = [
      ["Pragma", "no-cache"],
      ["Cache-Control", "max-age=1"],
    ];
    expect(staleRules(both, settings).isForbidden).toBe(false);
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
    ["longer than the origin's", [["Cache-Control", "max-age=1"]], 30],
    ["over a lifetime of nothing", [["Cache-Control", "max-age=0"]], 30],
    ["over an Expires of the past", [["Expires", "0"]], 30],
    ["over a bound lifetime", [["Cache-Control", "max-age=1, must-revalidate"]], 30],
    ["over one for shared caches", [["Cache-Control", "s-maxage=1"]], 30],
    ["where the origin only wants no stale one", [["Cache-Control", "must-revalidate"]], 30],
    [
      "where it is for shared caches alone that it lasts",
      [["Cache-Control", "max-age=0, s-maxage=9, must-revalidate"]],
      30,
    ],
    [
      "as CDN-Cache-Control allows it",
      [
        ["CDN-Cache-Control", "max-age=9"],
        ["Cache-Control", "no-cache"],
      ],
      30,
    ],
    ["never over no-cache", [["Cache-Control", "no-cache, max-age=0"]], "no-cache"],
    [
      "never over no-cache with a lifetime",
      [["Cache-Control", "max-age=60, no-cache"]],
      "no-cache",
    ],
    ["never over no-cache of a field", [["Cache-Control", 'no-cache="set-cookie"']], "no-cache"],
    [
      "never over must-revalidate, max-age=0",
      [["Cache-Control", "must-revalidate, max-age=0"]],
      "stale",
    ],
    [
      "never over proxy-revalidate, max-age=0",
      [["Cache-Control", "max-age=0, proxy-revalidate"]],
      "stale",
    ],
    ["never over s-maxage=0", [["Cache-Control", "max-age=60, s-maxage=0"]], "stale"],
    [
      "never over must-revalidate with an Expires of the past",
      [
        ["Cache-Control", "must-revalidate"],
        ["Expires", "0"],
      ],
      "stale",
    ],
    ["never over what is no number but binds", [["Cache-Control", "s-maxage=soon"]], "stale"],
    [
      "never over no-cache in CDN-Cache-Control",
      [
        ["CDN-Cache-Control", "no-cache"],
        ["Cache-Control", "max-age=60"],
      ],
      "no-cache",
    ],
    [
      "never over a bound nothing in CDN-Cache-Control",
      [["CDN-Cache-Control", "max-age=0, must-revalidate"]],
      "stale",
    ],
    [
      "never over no-store in Surrogate-Control",
      [
        ["Surrogate-Control", "no-store"],
        ["Cache-Control", "max-age=60"],
      ],
      "no-store",
    ],
    ["never over Pragma: no-cache alone", [["Pragma", "no-cache"]], "no-cache"],
    [
      "as long as Expires says with Pragma: no-cache",
      [
        ["Pragma", "no-cache"],
        ["Expires", after(9)],
      ],
      9,
    ],
    [
      "over Pragma beside Cache-Control, which replaces it",
      [
        ["Pragma", "no-cache"],
        ["Cache-Control", "max-age=1"],
      ],
      30,
    ],
    [
      "what must not be fresh is asked about",
      [
        ["Cache-Control", "no-cache"],
        ["ETag", '"a"'],
      ],
      0,
    ],
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

  it("but not for a cookie that the rule varies by", () => {
    const stripping = {
      ttl_s: 30,
      ignore_set_cookie: true,
      cookies: { bypass: [], vary: ["lang=d*"], ignore: [] },
    };
    const of = (...lines: readonly string[]): number | string =>
      fresh(plan(lines.map((line): Field => ["Set-Cookie", line]), { settings: stripping })); // prettier-ignore
    expect(of("a=b; Path=/", "lang=fr")).toBe("set-cookie");
    expect(of("a=b", "lan=fr")).toBe(30);
    expect(of()).toBe(30);
  });
});

describe("an answer to a request with cookies", () => {
  const request = { ...plain, hasCookies: true };
  it.each<[string, readonly Field[], number | string]>([
    ["with a lifetime is anybody's", [["Cache-Control", "max-age=60"]], 60],
    ["with a lifetime of one second too", [["Cache-Control", "max-age=1"]], 1],
    ["with an Expires", [["Expires", after(60)]], 60],
    ["for shared caches", [["Cache-Control", "max-age=0, s-maxage=60"]], 60],
    [
      "public, to be asked about",
      [
        ["Cache-Control", "public"],
        ["ETag", '"a"'],
      ],
      0,
    ],
    ["to be asked about is its visitor's", [["ETag", '"a"']], "cookie"],
    [
      "nor is it anybody's under no-cache",
      [
        ["Cache-Control", "no-cache"],
        ["ETag", '"a"'],
      ],
      "cookie",
    ],
    [
      "of no lifetime",
      [
        ["Cache-Control", "max-age=0"],
        ["ETag", '"a"'],
      ],
      "cookie",
    ],
    [
      "but for the same cookies",
      [
        ["Vary", "x, Cookie"],
        ["ETag", '"a"'],
      ],
      0,
    ],
    ["private", [["Cache-Control", "private, max-age=60"]], "private"],
  ])("%s", (_name, fields, expected) => {
    expect(fresh(plan(fields, { request }))).toBe(expected);
    expect(fresh(plan(fields, { request, settings: { ttl_s: 30 } }))).toBe(
      expected === "private" ? expected : "cookie",
    );
  });

  it("is what is stored when it says so itself", () => {
    expect(mayServeCookies([["Cache-Control", "public"]])).toBe(true);
    expect(mayServeCookies([["CDN-Cache-Control", "public"]])).toBe(true);
    expect(mayServeCookies([["Vary", "Cookie"]])).toBe(true);
    expect(
      mayServeCookies([
        ["Cache-Control", "no-cache"],
        ["Vary", "X-Cookie"],
      ]),
    ).toBe(false);
  });
});

describe("a lifetime under a rule that came later", () => {
  const storedUnder = (fields: readonly Field[], ttlS: number | null, status = 200): number =>
    lifetimeUnder(
      { status, headers: fields, storedAtMs: now, initialAgeS: 0, freshForS: 30 },
      {
        override: [],
        ...(status === 200
          ? { ttl_s: ttlS, negative_ttl_s: 1 }
          : { ttl_s: 1, negative_ttl_s: ttlS }),
      },
    );
  it.each<[readonly Field[], number | null, number]>([
    [[], 60, 30],
    [[], 20, 20],
    [[], null, 0],
    [[["Cache-Control", "no-cache, must-revalidate, max-age=0"]], 60, 0],
    [[["Pragma", "no-cache"]], 60, 0],
  ])("of what says %j is under %s: %i", (fields, ttlS, expected) => {
    for (const status of [200, 404, 410]) expect(storedUnder(fields, ttlS, status)).toBe(expected);
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
