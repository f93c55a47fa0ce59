// What a rule's `override` lifts, and what nothing lifts.

import { expect, test } from "vitest";
import { lifetimeUnder, plainRequest, planStore } from "../../../src/core/http/http-cache.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { CACHE_DEFAULTS } from "../../../src/core/serving/cache-defaults.ts";

const both = ["no-cache", "max-age"] as const;
const tagged: Field = ["ETag", '"1"'];

function plan(override: readonly ("no-cache" | "max-age")[], fields: readonly Field[], status = 200) {
  const response = { status, fields: [tagged, ...fields], requestedAtMs: 0, receivedAtMs: 0 };
  const settings = { ...CACHE_DEFAULTS, ttl_s: 60, negative_ttl_s: 10, override: [...override] };
  const planned = planStore(plainRequest, response, settings);
  if (!planned.store) return planned.reason;
  const stored = { status, headers: response.fields, storedAtMs: 0, initialAgeS: 0, freshForS: 999 };
  expect(Math.min(999, planned.freshForS)).toBe(lifetimeUnder(stored, settings));
  return planned.freshForS;
} // prettier-ignore

const said = (value: string): readonly Field[] => [["Cache-Control", value]];

test.each([
  ["no-cache", [0, 60, 0, 60]],
  ['no-cache="Set-Cookie"', [0, 60, 0, 60]],
  ["no-cache, max-age=30, must-revalidate", [0, 60, 0, 60]],
  ["no-cache, must-revalidate, max-age=0", [0, 0, 0, 60]],
  ["max-age=0, must-revalidate", [0, 0, 60, 60]],
  ["max-age=0, proxy-revalidate", [0, 0, 60, 60]],
  ["s-maxage=0", [0, 0, 0, 0]],
  ["s-maxage=0, max-age=30", [0, 0, 0, 0]],
  ["no-cache, s-maxage=0", [0, 0, 0, 0]],
  ["max-age=0", [60, 60, 60, 60]],
  ["private", ["private", "private", "private", "private"]],
  ["no-cache, private", ["private", "private", "private", "private"]],
  ["no-store, max-age=0", ["no-store", "no-store", "no-store", "no-store"]],
] as const)("%s without, with no-cache, with max-age, with both", (value, expected) => {
  const got = [[], ["no-cache"], ["max-age"], both] as const;
  expect(got.map((override) => plan(override, said(value)))).toEqual(expected);
});

test("Pragma, cookies, and errors", () => {
  expect(plan([], [["Pragma", "no-cache"]])).toBe(0);
  expect(plan(["no-cache"], [["Pragma", "no-cache"]])).toBe(60);
  expect(plan(both, [...said("no-cache"), ["Set-Cookie", "a=b"]])).toBe("set-cookie");
  expect(plan(both, said("no-cache, must-revalidate, max-age=0"), 404)).toBe(10);
  expect(plan(both, said("no-cache"), 500)).toBe("no-cache");
  expect(plan(both, [["CDN-Cache-Control", "no-store"]])).toBe("no-store");
});

test("without a lifetime of the rule nothing is overridden", () => {
  const stored = { status: 200, headers: said("no-cache"), storedAtMs: 0, initialAgeS: 0, freshForS: 60 };
  expect(lifetimeUnder(stored, { ttl_s: null, negative_ttl_s: 5, override: [...both] })).toBe(0);
}); // prettier-ignore
