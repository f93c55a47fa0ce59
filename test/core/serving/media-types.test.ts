// Rules chosen by the media type of the answer: which types hold, in which order rules are asked, and where none is.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { compileMediaTypes, mediaTypeFault } from "../../../src/core/serving/media-types.ts";
import { compileSite } from "../../../src/core/serving/site-routes.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { ruleMet } from "../../support/rule-met.ts";

type Cache = NonNullable<SiteInput["cache"]>;
const routesOf = (cache: Cache, headers: SiteInput["headers"] = {}) =>
  compileSite(
    effectiveDevlove({ domains: { "a.example": { cache, headers } } }, "a.example", null),
  );
const typeOf = (type: string): readonly Field[] => [["Content-Type", type]];

describe("the types of a rule", () => {
  const { holds } = compileMediaTypes(["image/*", "Text/CSS", "application/ld+json"]);

  test.each([
    "image/png", "IMAGE/SVG+XML", "image/png; charset=x", "text/css", "text/CSS;charset=utf-8", " text/css ", "application/ld+json ;a=b",
  ])("%j is one of them", (type) => {
    expect(holds(typeOf(type))).toBe(true);
  }); // prettier-ignore

  test.each([
    "text/html", "text/cssx", "ximage/png", "image", "image/", "/png", "image/png, text/html", "text/html; a=text/css", "css", "", "*/*",
    "image/*", "image/p ng", "application/json", "image/png/x",
  ])("%j is not", (type) => {
    expect(holds(typeOf(type))).toBe(false);
  }); // prettier-ignore

  test("no Content-Type is no type, and two lines that differ are none that can be read", () => {
    expect(holds([])).toBe(false);
    expect(holds([["X-Content-Type", "image/png"]])).toBe(false);
    expect(holds([...typeOf("image/png"), ...typeOf("image/gif")])).toBe(false);
    expect(holds([["content-TYPE", "image/png"]])).toBe(true);
  });
});

describe("what a rule may ask for", () => {
  test.each(["image/*", "text/css", "Image/PNG", "application/vnd.a+json", "x/y"])("%s", (type) => {
    expect(mediaTypeFault(type)).toBeUndefined();
  });

  test.each([
    ["*/*", /every media type/], ["*", /every media type/], ["text/html; charset=utf-8", /parameters/], ["image", /not a media type/],
    ["image/", /not a media type/], ["*/png", /not a media type/], ["image/p*", /not a media type/], ["im*/png", /not a media type/],
    ["", /not a media type/], ["image/*/*", /not a media type/], ["a b/c", /not a media type/], [`a/${"b".repeat(126)}`, /not a media type/],
  ])("not %s", (type, fault) => {
    expect(mediaTypeFault(type)).toMatch(fault);
  }); // prettier-ignore

  test("what is accepted holds for what it names", () => {
    const token = fc.stringMatching(/^[!#$%&'+.^_`|~0-9A-Za-z-]{1,20}$/);
    fc.assert(
      fc.property(token, token, fc.boolean(), (kind, sub, isKind) => {
        const named = `${kind}/${isKind ? "*" : sub}`;
        expect(mediaTypeFault(named)).toBeUndefined();
        const { holds } = compileMediaTypes([named]);
        expect(holds(typeOf(`${kind}/${sub}; q=1`))).toBe(true);
        expect(holds(typeOf(`x${kind}/${sub}`))).toBe(false);
      }),
    );
  });
});

const image = { match: { media_type: ["image/*"] } };
const png = typeOf("image/png");
const html = typeOf("text/html");
/** Lifetimes of an answer that is an image, of one that is a page, and of one that says no type. */
const lifetimes = (cache: Cache, path = "/a", asked: Parameters<typeof ruleMet>[2] = {}) => {
  const route = ruleMet(routesOf(cache), path, asked);
  return [png, html, []].map((fields) => route.forAnswer(fields).settings.ttl_s);
};

describe("the order of rules", () => {
  test.each<[string, NonNullable<Cache["rules"]>, readonly (number | null)[]]>([
    ["the first that holds, of both kinds", [{ path: "/a", ...image, ttl_s: 1 }, { path: "/a", ttl_s: 2 }], [1, 2, 2]],
    ["none after a rule for all answers", [{ path: "/a", ttl_s: 2 }, { path: "/*", ...image, ttl_s: 1 }], [2, 2, 2]],
    ["default where no other holds", [{ path: "/a", ...image, ttl_s: 1 }], [1, 9, 9]],
    ["not on other paths", [{ path: "/b", ...image, ttl_s: 1 }], [9, 9, 9]],
    ["the first of several by type", [{ path: "/*", ...image, ttl_s: 1 }, { path: "/a", match: { media_type: ["image/png", "text/html"] }, ttl_s: 3 }], [1, 3, 9]],
    ["a key that it does not say is not the next rule's", [{ path: "/a", ...image }], [null, 9, 9]],
    ["nor is one by method that the request has not", [{ path: "/a", match: { method: ["POST"], media_type: ["image/*"] }, headers: {} }], [9, 9, 9]],
    ["an empty list asks nothing of the answer", [{ path: "/a", match: { method: ["GET"], media_type: [] }, ttl_s: 4 }], [4, 4, 4]],
  ])("%s", (_name, rules, expected) => {
    expect(lifetimes({ rules, default: { ttl_s: 9 } })).toEqual(expected);
  }); // prettier-ignore

  test("a query and a header must hold too, and what a header decided is kept with the entry", () => {
    const cache: Cache = {
      rules: [{ path: "/a", match: { query: ["big"], header: { "X-A": "1" }, media_type: ["image/*"] }, ttl_s: 1 }],
      default: { ttl_s: 9 },
    }; // prettier-ignore
    const fields: readonly Field[] = [["X-A", "1"]];
    expect(lifetimes(cache, "/a", { query: "big", fields })).toEqual([1, 9, 9]);
    expect(lifetimes(cache, "/a", { fields })).toEqual([9, 9, 9]);
    expect(lifetimes(cache, "/a", { query: "big" })).toEqual([9, 9, 9]);
    const routes = routesOf(cache);
    const choices = [[], fields].map(
      (f) => ruleMet(routes, "/a", { query: "big", fields: f }).choice,
    );
    expect(new Set([...choices, ""]).size).toBe(3);
  });

  test("where it is not sure that a rule is meant, the origin's own word counts", () => {
    const rules = [{ path: "/a/**", ...image, ttl_s: 1 }];
    const cache: Cache = { rules, default: { ttl_s: 9 } };
    expect(lifetimes(cache, "/a/b")).toEqual([1, 9, 9]);
    for (const path of ["/a%2fb", "/a;x/b", "/x/..%2fa/b"])
      expect([path, ...lifetimes(cache, path)]).toEqual([path, null, null, null]);
    const byQuery: Cache = {
      rules: [{ path: "/a", match: { query: ["big"], media_type: ["image/*"] }, ttl_s: 1 }],
      default: { ttl_s: 9, query: { ignore: ["x"] } },
    };
    expect(lifetimes(byQuery, "/a", { query: "Big" })).toEqual([null, null, null]);
    const queries = (rawQuery: string) =>
      routesOf(byQuery).storedQueries({ rawPath: "/a", rawQuery });
    expect(queries("x=1&Big")).toEqual(["Big", "x=1&Big"]);
    expect(queries("x=1&big")).toEqual(["big"]);
  });
});

test("what decides before the origin answers is as the rule of the request says it", () => {
  const { forAnswer, ...route } = ruleMet(
    routesOf({
      rules: [{ path: "/**", ...image, ttl_s: 1, browser_ttl_s: 2, ignore_set_cookie: true, override: ["no-cache"] }],
      default: { ttl_s: 9, query: { keep: ["id"] }, cookies: { vary: ["lang"] }, vary: ["X-A"], headers: { request: { remove: ["X-B"] } } },
    }),
    "/a",
  ); // prettier-ignore
  const { settings, mediaTypes } = forAnswer(png);
  const { query, cookies, vary, headers, bypass } = route.settings;
  expect(settings).toMatchObject({ query, cookies, vary, bypass, headers: { request: headers.request } });
  expect(settings).toMatchObject({ ttl_s: 1, browser_ttl_s: 2, ignore_set_cookie: true, override: ["no-cache"] });
  expect(mediaTypes).toEqual(["image/*"]);
  expect(forAnswer(html)).toMatchObject({ mediaTypes: undefined, settings: { ttl_s: 9, cookies, override: [] } });
  expect([route.normalizeQuery("id=1&b=2"), route.varyNames, [...route.toldAlike]]).toEqual(["id=1", ["x-a"], ["x-b"]]);
  expect(route.requestEdits).not.toBe("");
}); // prettier-ignore

test("headers of the rule, then of the site; before the answer what any of them says is left out", () => {
  const headersOf = (name: string) => ({ response: { set: { [name]: "1", "X-Site": "rule" }, remove: [`${name}-Gone`] } });
  const route = ruleMet(
    routesOf(
      { rules: [{ path: "/**", ...image, headers: headersOf("X-Image") }], default: { headers: headersOf("X-Rest") } },
      { set: { "X-Site": "site" } },
    ),
    "/a",
  ); // prettier-ignore
  expect(route.forAnswer(png).answerEdits(200).set).toEqual({ "X-Image": "1", "X-Site": "site" });
  expect(route.forAnswer(html).answerEdits(200).set).toEqual({ "X-Rest": "1", "X-Site": "site" });
  const { set, remove } = route.earlyEdits;
  const early = new Set([...Object.keys(set), ...remove]);
  for (const name of ["X-Image", "X-Image-Gone", "X-Rest", "X-Rest-Gone", "X-Site"]) expect(early).toContain(name);
}); // prettier-ignore

test("requests that meet the same rules have the same settings, and others have others", () => {
  const routes = routesOf({
    rules: [
      { path: "/a/*", ...image, ttl_s: 1 },
      { path: "/**", match: { query: ["b"], media_type: ["text/css"] }, ttl_s: 2 },
    ],
  });
  const settingsOf = (path: string, query = "") => ruleMet(routes, path, { query }).settings;
  expect(settingsOf("/a/1")).toBe(settingsOf("/a/2"));
  expect(settingsOf("/a/1", "b")).not.toBe(settingsOf("/a/1"));
  expect(settingsOf("/c", "b")).not.toBe(settingsOf("/c"));
  expect(settingsOf("/c")).not.toBe(settingsOf("/a/1"));
});

test("the rules that visitors can combine are not all remembered", () => {
  const rules = Array.from({ length: 12 }, (_, at) => ({
    path: "/**",
    match: { query: [`p${at}`], media_type: [`x/y${at}`] },
    ttl_s: at,
  }));
  const routes = routesOf({ rules, default: { ttl_s: 99 } });
  const queryOf = (bits: number) =>
    rules.flatMap((_, at) => (bits & (1 << at) ? [`p${at}`] : [])).join("&");
  const first = ruleMet(routes, "/", { query: "p0" }).settings;
  for (let bits = 1; bits < 2 ** 12; bits++) {
    const route = ruleMet(routes, "/", { query: queryOf(bits) });
    expect(route.forAnswer(typeOf("x/y3")).settings.ttl_s).toBe(bits & 8 ? 3 : 99);
  }
  expect(ruleMet(routes, "/", { query: "p0" }).settings).not.toBe(first);
});
