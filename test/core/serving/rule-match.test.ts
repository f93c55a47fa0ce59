// What a rule asks beside its path: method, fields, query; and that what is not sure only ever keeps a request out of the cache.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { compileMatch } from "../../../src/core/serving/rule-match.ts";
import { compileSite } from "../../../src/core/serving/site-routes.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { ruleMet } from "../../support/rule-met.ts";

const routesOf = (cache: NonNullable<SiteInput["cache"]>) =>
  compileSite(effectiveDevlove({ domains: { "a.example": { cache } } }, "a.example", null));

describe("a query", () => {
  const items = ["preview", "add-to-cart", "lang=de", "mode=x*", "adm_*"];
  const { query } = compileMatch({ query: items });

  test.each([
    "preview", "preview=true", "preview=", "a=1&preview", "preview&preview=2", "%70review=1", "p%72eview", "add-to-cart=7",
    "lang=de", "lang=d%65", "x=1&lang=de&lang=de", "mode=x", "mode=xyz", "adm_user=1",
  ])("%s surely has one of them", (text) => {
    expect(query(text)).toBe("yes");
  }); // prettier-ignore

  test.each([
    "Preview=1", "PREVIEW", "preview[]=1", "preview[a]=1", "preview%5B%5D", "+preview=1", "preview%00x=1", ";preview", "a=1;preview=2",
    "preview;a", "Add-To-Cart=7", "lang=fr&lang=de", "lang=de&lang=fr", "lang[]=de", "adm.user=1", "adm+user=1", "a=b;lang=de",
  ])("%s has one to some application", (text) => {
    expect(query(text)).toBe("unsure");
  }); // prettier-ignore

  test.each([
    "", "previe", "previews=1", "xpreview", "a=preview", "lang=fr", "lang", "mode=y", "a=1&b=2", "re%76iew",
  ])("%j has none", (text) => {
    expect(query(text)).toBe("no");
  }); // prettier-ignore
});

describe("a rule with bypass", () => {
  const routes = routesOf({
    rules: [
      { path: "/**", match: { query: ["preview"] }, bypass: true },
      { path: "/**", ttl_s: 60 },
    ],
  });
  const isPassed = (path: string, query = "") => ruleMet(routes, path, { query }).settings.bypass;

  test.each(["preview", "Preview=1", "preview[]", "%70review", ";preview", "a=1;preview"])(
    "keeps ?%s out of the cache",
    (query) => expect(isPassed("/a", query)).toBe(true),
  );

  test.each(["/a%3Fpreview=1", "/a%253fpreview", "/a%3fx=1&preview"])(
    "and %s, which some servers split there",
    (path) => expect(isPassed(path)).toBe(true),
  );

  test("leaves the others to the next rule", () => {
    expect(ruleMet(routes, "/a", { query: "x=preview" }).settings.ttl_s).toBe(60);
    expect(ruleMet(routes, "/a").settings.ttl_s).toBe(60);
  });
});

describe("a rule that shares", () => {
  const routes = routesOf({
    rules: [{ path: "/**", match: { query: ["page"] }, ttl_s: 60 }],
    default: { ttl_s: 5 },
  });
  const ttl = (query: string) => ruleMet(routes, "/a", { query }).settings.ttl_s;

  test("holds where it is surely meant, and is widened by nothing", () => {
    expect([ttl("page=1"), ttl("b=1&%70age"), ttl("x=1"), ttl("")]).toEqual([60, 60, 5, 5]);
    for (const odd of ["Page=1", "page[]=1", "a;page"])
      expect([odd, ttl(odd)]).toEqual([odd, null]);
  });
});

describe("fields", () => {
  const routes = routesOf({
    rules: [
      { path: "/**", match: { header: { "X-Member": "*" } }, bypass: true },
      { path: "/app/**", match: { header: { "X-App": "shop/2.*", "X-Kind": "*" } }, ttl_s: 60 },
      { path: "/app/**", match: { method: ["POST"] } },
      { path: "/other/**", ttl_s: 7 },
    ],
    default: { ttl_s: 5 },
  });
  const met = (path: string, fields: readonly Field[] = [], method = "GET") => {
    const { settings } = ruleMet(routes, path, { fields, method });
    return settings.bypass ? "bypass" : settings.ttl_s;
  };

  test("must all be there, whatever their case", () => {
    expect(met("/app/", [["x-app", "shop/2.7"], ["X-KIND", ""]])).toBe(60);
    expect(met("/app/", [["x-app", "shop/2.7"]])).toBe(5);
    expect(met("/app/", [["x-app", "shop/3"], ["x-kind", "a"]])).toBe(5);
    expect(met("/", [["x-member", "no"]])).toBe("bypass");
  }); // prettier-ignore

  test("a method decides for HEAD as for GET", () => {
    const post = routesOf({ rules: [{ path: "/**", match: { method: ["GET"] }, ttl_s: 1 }] });
    const ttl = (method: string) => ruleMet(post, "/", { method }).settings.ttl_s;
    expect([ttl("GET"), ttl("HEAD"), ttl("POST")]).toEqual([1, 1, null]);
  });

  test("what they decide is a part of the choice, the same for the same and no other", () => {
    const choice = (path: string, fields: readonly Field[]) => ruleMet(routes, path, { fields }).choice;
    const app: readonly Field[] = [["X-App", "shop/2.1"], ["X-Kind", "a"]];
    const plain = choice("/app/", []);
    expect(choice("/app/", [["X-Other", "1"]])).toBe(plain);
    expect(choice("/app/", app)).toBe(choice("/app/", [["X-App", "shop/2.2"], ["X-Kind", "b"]]));
    expect(new Set([plain, choice("/app/", app), choice("/app/", [["X-Member", "1"]]), choice("/other/", [])]).size).toBe(4);
  }); // prettier-ignore

  test("without them the choice is the target's alone", () => {
    const url = routesOf({ rules: [{ path: "/**", match: { query: ["a"] }, ttl_s: 1 }] });
    expect(ruleMet(url, "/", { query: "a=1", fields: [["X-App", "1"]] }).choice).toBe("");
  });
});

test("a change takes what any rule may have stored", () => {
  const routes = routesOf({
    rules: [
      { path: "/**", match: { header: { "X-App": "*" } }, query: { keep: ["id"] } },
      { path: "/**", match: { method: ["POST"] } },
      { path: "/**", query: { ignore: ["utm_*"] } },
    ],
  });
  expect(routes.storedQueries({ rawPath: "/", rawQuery: "id=1&b=2&utm_x=3" }).toSorted()).toEqual([
    "id=1",
    "id=1&b=2",
    "id=1&b=2&utm_x=3",
  ]);
});

test("whatever the spelling, what a rule keeps out is never let in by another", () => {
  const routes = routesOf({
    rules: [
      { path: "/**", match: { query: ["secret"] }, bypass: true },
      { path: "/**", ttl_s: 60 },
    ],
  });
  const spelt = fc.constantFrom("secret", "SECRET", "secret[]", "%73ecret", "secret%00", " secret".replace(" ", "+"));
  const around = fc.constantFrom("", "a=1&", "a;", "b[]=2&c&", "&&");
  fc.assert(
    fc.property(around, spelt, around, (before, name, after) => {
      const query = `${before}${name}=1&${after}`;
      expect(ruleMet(routes, "/", { query }).settings.bypass).toBe(true);
    }),
  );
}); // prettier-ignore
