// Paths that applications read in several ways: the rule that they meet.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { effectiveDevlove } from "../../../src/core/serving/effective-devlove.ts";
import type { SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { canonicalPath } from "../../../src/core/serving/path-pattern.ts";
import { compileSite } from "../../../src/core/serving/site-routes.ts";
import { cpuMs } from "../../support/cpu-time.ts";
import { ruleMet } from "../../support/rule-met.ts";

const site = (input: SiteInput) =>
  effectiveDevlove({ domains: { "a.example": input } }, "a.example", null);

test.each([
  ["/shop%2f1", true],
  ["/shop/..%2fother", true],
  ["/other%2f1", false],
  ["/shop/1", false],
])("of %s: where a rule that tells cookies apart may hold, a cookie passes its request on: %s", (path, passes) => {
  const rules = [{ path: "/shop/**", cookies: { vary: ["lang"] } }, { path: "/other/**", ttl_s: 9 }];
  const { settings, cookies } = ruleMet(compileSite(site({ cache: { rules } })), path);
  const { kind } = cookies([["Cookie", "_ga=1"]]);
  expect([settings.ttl_s, kind === "bypass"]).toEqual([null, passes]);
}); // prettier-ignore

describe("a path that applications read in several ways", () => {
  const routes = compileSite(
    site({
      cache: {
        rules: [
          { path: "/cart/**", bypass: true },
          { path: "/static/**", ttl_s: 3_600, stale_if_error_s: 60, ignore_set_cookie: true },
          { path: "/**.css", ttl_s: 600 },
        ],
        default: { ttl_s: 60 },
      },
    }),
  );
  const met = (path: string): string => {
    const { ttl_s, bypass, ...rest } = ruleMet(routes, path).settings;
    if (ttl_s !== null) return String(ttl_s);
    if (!bypass) expect(rest).toMatchObject({ stale_if_error_s: 0, ignore_set_cookie: false });
    return bypass ? "bypass" : "the origin's word";
  };

  test.each([
    "/cart/1", "//cart/1", "/%63art/1", "/./cart/1", "/cart%2f1", "/cart%2F1", "/cart%252f1", "/x/..%2fcart/1", "/cart%5c1", "/cart\\1",
    "/cart;x/1", "/cart%3bx/1", "/cart/..%2fstatic/a", "/cart/..;/static/a", "/static/..;/cart/1", "/static/%252e%252e/cart/1", "/x;%2fy/../cart/1",
    "/static/.%2e%2fcart/a.css", "/%2563art/1",
  ])("%s passes the cache by", (path) => {
    expect(met(path)).toBe("bypass");
  }); // prettier-ignore

  test.each([
    "/static/..%2faccount", "/static/%2e%2e%2faccount", "/static/..%5caccount", "/static/..\\account", "/static/..;/account",
    "/static/%252e%252e/account", "/static/%25252525252525252e./account", "/static/%%32e./account", "/account/%2e%2e/static/x",
    "/account/..%2fstatic/x", "/account;.css", "/account;%2fx.css", "/account%3f.css", "/account%23.css", "/account%00.css", "/account%0a.css",
    "/static/..%3b/account", "/static/..%00/account", "/account/..;x/static/y",
  ])("%s has no rule", (path) => {
    expect(met(path)).toBe("the origin's word");
  }); // prettier-ignore

  test.each([
    ["/static/a%2Fb", "3600"],
    ["/static/100%25", "3600"],
    ["/static/who%3F", "3600"],
    ["/static/a;v=2/b.css", "3600"],
    ["/static/..a/b", "3600"],
    ["/a;v=2/b.css", "600"],
    ["/wiki/AC%2FDC", "60"],
    ["/caf%C3%A9;x", "60"],
    ["/100%", "60"],
  ])("%s has the rule that all its readings meet", (path, ttl) => {
    expect(met(path)).toBe(ttl);
  });

  test("however it is written, what a bypass rule matches plainly is never cached", () => {
    const piece = fc.constantFrom(
      "/",
      "a",
      ".",
      "..",
      ";",
      "%2f",
      "%5C",
      "%2e",
      "%25",
      "%3b",
      "cart",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (parts) => {
        const path = `/${parts.join("")}`;
        if (canonicalPath(path).startsWith("/cart/")) expect(met(path)).toBe("bypass");
      }),
      { numRuns: 1_000 },
    );
  });

  test("has no rule where it is encoded more often than anybody does", () => {
    let path = "%41";
    for (let times = 0; times < 6; times++)
      path = path.replaceAll(/[0-9]/g, (digit) => `%3${digit}`);
    expect(met(`/static/${path}`)).toBe("the origin's word");
  });

  test("takes no longer the oftener it is encoded", () => {
    const began = cpuMs();
    for (const unit of ["%25", "%2", "%%", ";", "/..;", "%2525%32", "\\", "%3f"])
      ruleMet(routes, `/${unit.repeat(8_190 / unit.length)}`);
    expect(cpuMs(began)).toBeLessThan(500);
  });
});
