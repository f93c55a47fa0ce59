// What is heard in a Cache-Control or CDN-Cache-Control that is not spelled as it should be.

import { describe, expect, it } from "vitest";
import {
  plainRequest as plain,
  planStore,
  staleRules,
  type StoreRequest,
} from "../../../src/core/http/http-cache.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { CACHE_DEFAULTS } from "../../../src/core/serving/cache-defaults.ts";

type Settings = Parameters<typeof planStore>[2];
const byOrigin: Settings = CACHE_DEFAULTS;
const validator: Field = ["ETag", '"1"'];

/** The lifetime, or why it is not stored. */
function fresh(
  fields: readonly Field[],
  settings: Partial<Settings> = {},
  request: StoreRequest = plain,
): number | string {
  const response = { status: 200, fields, requestedAtMs: 0, receivedAtMs: 0 };
  const plan = planStore(request, response, { ...byOrigin, ...settings });
  return plan.store ? plan.freshForS : plan.reason;
}

describe("directives without their commas", () => {
  it.each<[string, number | string]>([
    ["private; max-age=60", "private"],
    ["max-age=60; private", "private"],
    ["private max-age=60", "private"],
    ["max-age=60 Private", "private"],
    ['"private"', "private"],
    ['private="set-cookie"; max-age=60', "private"],
    ['max-age="60, private, x="1"', "private"],
    ["no-cache; no-store; must-revalidate", "no-store"],
    ["no-store;", "no-store"],
    ["no-store no-cache", "no-store"],
    ['ext="a; private", x-private; y, not-private z', 60],
    ["public; max-age=9", 60],
  ])("what forbids is heard in %s, whatever stands between", (value, expected) => {
    const settings = { ttl_s: 60, stale_if_error_s: 60 };
    expect(fresh([["Cache-Control", value]], settings)).toBe(expected);
    const withoutRule = fresh([["Cache-Control", value], validator], { stale_if_error_s: 60 });
    expect(withoutRule).toBe(expected === 60 ? 0 : expected);
  });

  it("what allows, and a lifetime, is not heard there", () => {
    const request = { ...plain, isAuthorized: true };
    for (const value of ["x; must-revalidate", "max-age=60; public", "x s-maxage=60"])
      expect(fresh([["Cache-Control", value]], {}, request)).toBe("authorization");
    // What begins with the directive, and is confirmed at each use, would be confirmed for others too.
    for (const value of [
      "s-maxage=60; stale-if-error=9",
      "public=1; x",
      "must-revalidate=x y",
      "s-maxage=9, s-maxage=9; x",
    ])
      expect(fresh([["Cache-Control", value], validator], {}, request)).toBe("authorization");
    expect(
      fresh([["Cache-Control", "public=1; x"], validator], {}, { ...plain, hasCookies: true }),
    ).toBe("cookie");
    expect(fresh([["Cache-Control", "public; max-age=60"]])).toBe("no freshness");
    const mangled = staleRules([["Cache-Control", "max-age=60; must-revalidate"]], byOrigin);
    expect(mangled.isForbidden).toBe(true);
  });

  it.each([
    ["max-age=60; private", "private"],
    ["no-cache; no-store", "no-store"],
    ["private max-age=60", "private"],
    ["no-store;", "no-store"],
    ["max-age=60;x=1", 60],
  ])("nor is CDN-Cache-Control: %s taken for an allowance", (value, expected) => {
    expect(fresh([["CDN-Cache-Control", value]], { ttl_s: 60 })).toBe(expected);
  });
});
