// Which requests are passed on, and in which words it is told.

import { expect, it } from "vitest";
import { effectiveDevlove, type CacheInput } from "../../../src/core/serving/effective-devlove.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { passReason, passSaid, type PassRequest } from "../../../src/core/http/http-pass.ts";
import { compileSite } from "../../../src/core/serving/site-routes.ts";
import { ruleMet } from "../../support/rule-met.ts";

const plain: PassRequest = { method: "GET", fields: [], hasBody: false, hasLoneMark: false };
const sid: readonly Field[] = [["Cookie", "_ga=1; sid=2"]];
const ofList: readonly Field[] = [["Cookie", "_ga=1"]];
const lang: readonly Field[] = [["Cookie", "_ga=1; lang=de"]];
const both: readonly Field[] = [["Cookie", "lang=de; sid=2"]];

it.each<[string, CacheInput, Partial<PassRequest>, string | undefined]>([
  ["nothing", { ttl_s: 9 }, {}, undefined],
  ["a method", { ttl_s: 9 }, { method: "POST", fields: sid }, "method"],
  ["a rule", { bypass: true }, { fields: sid }, "bypass"],
  ["a cookie under ttl_s", { ttl_s: 9 }, { fields: sid }, "cookie"],
  ["a cookie with HEAD", { ttl_s: 9 }, { fields: sid, method: "HEAD" }, "cookie"],
  ["a cookie under a ttl_s of nothing", { ttl_s: 0 }, { fields: sid }, "cookie"],
  ["a cookie of the list", { ttl_s: 9 }, { fields: ofList }, undefined],
  ["a cookie that the rule ignores", { ttl_s: 9, cookies: { ignore: ["s*d"] } }, { fields: sid }, undefined],
  ["a cookie where the origin decides", { stale_if_error_s: 9 }, { fields: sid }, undefined],
  ["a cookie that bypasses", { ttl_s: 9, cookies: { bypass: ["sid"] } }, { fields: sid }, "bypass_cookie"],
  ["and where the origin decides", { cookies: { bypass: ["sid"] } }, { fields: sid }, "bypass_cookie"],
  ["under a rule that bypasses all", { bypass: true, cookies: { bypass: ["sid"] } }, { fields: sid }, "bypass"],
  ["another than the one that bypasses", { cookies: { bypass: ["x"] } }, { fields: sid }, undefined],
  ["the same under ttl_s", { ttl_s: 9, cookies: { bypass: ["x"] } }, { fields: sid }, "cookie"],
  ["a cookie to vary by", { ttl_s: 9, cookies: { vary: ["lang"] } }, { fields: lang }, undefined],
  ["and another", { ttl_s: 9, cookies: { vary: ["lang"] } }, { fields: both }, "cookie"],
  ["and another, where the origin decides", { cookies: { vary: ["lang"] } }, { fields: both }, "cookie"],
  ["a body", { ttl_s: 9 }, { hasBody: true }, "request"],
  ["a lone mark", {}, { hasLoneMark: true }, "request"],
  ["a writer's condition", {}, { fields: [["If-Match", '"a"']] }, "request"],
])("%s", (_name, rule, request, expected) => {
  const config = effectiveDevlove({ domains: { "a.example": { cache: { default: rule } } } }, "a.example", null);
  const reason = passReason({ ...plain, ...request }, ruleMet(compileSite(config), "/"));
  expect(reason).toBe(expected);
}); // prettier-ignore

it("is told as a part of the configuration where a rule is why (RFC 9211 §2.2)", () => {
  expect(passSaid.cookie).toBe("fwd=bypass; detail=cookie");
  expect(passSaid.bypass_cookie).toBe("fwd=bypass; detail=cookie");
});
