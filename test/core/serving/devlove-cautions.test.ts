// Rules that are valid and would share pages of those who are logged in.

import { expect, it } from "vitest";
import {
  cautionsMax,
  devloveCautions,
  loginCookies,
} from "../../../src/core/serving/devlove-cautions.ts";
import type { CacheInput, SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { ignoring } from "../../../src/core/http/request-cookies.ts";

const domain = "a.example";

/** Where below the rule, and the words before the colon. */
const said = (rule: CacheInput, path?: string): readonly string[] => {
  const cache = path === undefined ? { default: rule } : { rules: [{ path, ...rule }] };
  return devloveCautions({ domains: { [domain]: { cache } } }).map(
    (one) => `${one.path.slice(path === undefined ? 4 : 5).join(".")}: ${one.message}`,
  );
};

const ignoringAll = { cookies: { ignore: ["*"] } };
const ttl = { ttl_s: 60 };
const unsaid = /^ignore_set_cookie: .* does not say what the cookies of visitors mean/;
const opened = /^ignore_set_cookie: with `ttl_s` a page that opens a session/;

it.each<[string, CacheInput, readonly RegExp[]]>([
  ["nothing ignored", ttl, []],
  [
    "what is no login",
    { ...ttl, cookies: { ignore: ["ab_*", "seen_banner", "theme", "_ga*", "x-*-y", "userlang", "author", "cartoon_mode"] } },
    [],
  ],
  ["names of the list", { ...ttl, cookies: { ignore: ["_hjSession_*", "didomi_token"] } }, []],
  ["all", { ...ttl, ...ignoringAll }, [/^cookies.ignore.0: all cookies are ignored: visitors who/]],
  ["all, where the origin decides", ignoringAll, [/^cookies.ignore.0: all cookies/]],
  ["all names", { cookies: { ignore: ["ab", "**"] } }, [/^cookies.ignore.1: all cookies/]],
  ["a session", { ...ttl, cookies: { ignore: ["PHPSESSID"] } }, [/"PHPSESSID" looks like/]],
  ["a login", { ...ttl, cookies: { ignore: ["wordpress_logged_in_*"] } }, [/_\*" looks like/]],
  ["a session among others", { ...ttl, cookies: { ignore: ["P*D"] } }, [/"P\*D" covers the cookie "PHPSESSID"/]],
  ["what begins with _", { ...ttl, cookies: { ignore: ["_*"] } }, [/"_\*" covers the cookie "_app_session"/]],
  ["cookies stripped", { ...ttl, ignore_set_cookie: true }, [unsaid, opened]],
  ["cookies stripped where the origin decides", { ignore_set_cookie: true }, [unsaid]],
  ["cookies stripped, and what cookies mean", { ignore_set_cookie: true, cookies: { bypass: ["sid"] } }, []],
  ["cookies stripped, and that cookies mean nothing", { ignore_set_cookie: true, cookies: {} }, []],
  ["cookies stripped under ttl_s, and what cookies mean", { ...ttl, ignore_set_cookie: true, cookies: { bypass: ["sid"] } }, [opened]],
  ["a login passed, and all else ignored", { ...ttl, cookies: { bypass: ["sid"], ignore: ["*"] } }, []],
  ["a session passed, and taken in by what is ignored", { cookies: { bypass: ["PHP*"], ignore: ["P*D"] } }, []],
  ["another session than the one that is passed", { cookies: { bypass: ["sid"], ignore: ["PHPSESSID"] } }, [/^cookies.ignore.0: "PHPSESSID" looks like/]],
  ["one value of what looks like a login", { cookies: { ignore: ["logged_in=no"] } }, []],
  ["every value of it", { cookies: { ignore: ["logged_in=*"] } }, [/^cookies.ignore.0: "logged_in" looks like/]],
  ["a choice", { ...ttl, cookies: { vary: ["lang", "currency=E*", "ab_*"] } }, []],
  ["a session for each visitor", { ...ttl, cookies: { vary: ["lang", "PHPSESSID"] } }, [/^cookies.vary.1: "PHPSESSID" looks like .* a login belongs in `bypass`/]],
  ["what analytics set", { cookies: { vary: ["_ga*"] } }, [/^cookies.vary.0: "_ga\*" is a cookie of analytics/]],
  ["everything", { cookies: { vary: ["*"] } }, [/^cookies.vary.0: every cookie tells answers apart/]],
  [
    "cookies stripped and ignored",
    { ...ignoringAll, ignore_set_cookie: true },
    [/^cookies/, /^ignore_set_cookie: .*nobody can log in/],
  ],
  ["pages in browsers", { ...ttl, browser_ttl_s: 60, cookies: { ignore: ["ab_*"] } }, []],
  ["pages in browsers that a cookie chooses", { browser_ttl_s: 60, cookies: { vary: ["lang"] } }, [/^browser_ttl_s: a browser does not know/]],
  ["for who logs in", { browser_ttl_s: 60, cookies: { bypass: ["sid"] } }, [/^browser_ttl_s: a browser does not know/]],
  ["not kept there", { browser_ttl_s: 0, cookies: { vary: ["lang"] } }, []],
  ["what begins like the name of an author", { cookies: { ignore: ["authorization"] } }, [/"authorization" looks like/]],
  ["a pattern of headers", { ...ttl, vary: ["*"] }, [/^vary.0: "\*" is taken for the name of a header/]],
  ["no query", { ...ttl, query: { ignore: ["utm_*", "*"] } }, [/^query.ignore: every query of a path has the same answer/]],
  ["none kept", { query: { keep: [] } }, [/^query.keep: every query/]],
  ["some", { query: { ignore: ["utm_*"], sort: true } }, []],
  ["headers", { headers: { response: { set: { "X-A": "1" }, remove: ["X-B"] } } }, []],
  ["a bypass", { bypass: true, ...ignoringAll, ignore_set_cookie: true }, []],
])("%s", (_name, rule, expected) => {
  for (const path of [undefined, "/**", "/shop/*", "/a.php"]) {
    const cautions = said(rule, path);
    expect(cautions.length).toBe(expected.length);
    for (const [at, words] of expected.entries()) expect(cautions[at]).toMatch(words);
  }
  expect(said(rule, "/**/*.png")).toEqual([]);
}); // prettier-ignore

it("warns of each cookie of a login, named or taken in", () => {
  for (const name of loginCookies) {
    const middle = `${name.slice(0, 1)}*${name.slice(-1)}`;
    for (const pattern of [name, middle])
      expect([pattern, said({ cookies: { ignore: [pattern] } }).length]).toEqual([pattern, 1]);
    // It would be a visitor's own but for the rule.
    expect(ignoring([])(name)).toBe(false);
  }
});

it("stops where nobody reads on", () => {
  const domains = Object.fromEntries(
    Array.from({ length: 200 }, (_, n) => [`d${n}.example`, { cache: { default: ignoringAll } }]),
  );
  const cautions = devloveCautions({ domains });
  expect(cautions.length).toBe(cautionsMax + 1);
  expect(cautions.at(-1)?.message).toBe(`there are more than ${cautionsMax} such rules`);
});

it.each([
  [
    { ttl_s: 60, override: ["no-cache"] },
    /^override: what the application wants to be asked about/,
  ],
  [
    { negative_ttl_s: 60, override: ["max-age"] },
    /^override: what the application wants to be asked/,
  ],
  [{ override: ["max-age"] }, /^override: nothing is overridden without/],
] as const)("%j", (rule, message) => {
  expect(said(rule)).toEqual([expect.stringMatching(message)]);
});

it("a rule behind one that takes every path", () => {
  const told = (...rules: NonNullable<NonNullable<SiteInput["cache"]>["rules"]>) =>
    devloveCautions({ domains: { [domain]: { cache: { rules } } } });
  const cart = { path: "/cart/**", bypass: true };
  expect(told({ path: "/**", ttl_s: 60 }, cart)).toEqual([
    {
      path: ["domains", domain, "cache", "rules", 1],
      message: "no request reaches this rule: rule 0 comes before it and takes every path",
    },
  ]);
  expect(told(cart, { path: "/**", ttl_s: 60 })).toEqual([]);
  expect(told({ path: "/**", match: { query: ["preview"] }, bypass: true }, cart)).toEqual([]);
});

it("a preset behind one that takes every path", () => {
  const cache = {
    presets: [
      { name: "drupal", base: "/shop" },
      { name: "wordpress" },
      { name: "drupal", base: "/d" },
    ],
  } as const;
  expect(devloveCautions({ domains: { [domain]: { cache } } })).toEqual([
    {
      path: ["domains", domain, "cache", "presets", 2],
      message: "no request reaches this preset: preset 1 comes before it and takes every path",
    },
  ]);
});

it.each<[string, CacheInput, RegExp]>([
  ["a cookie for all", { headers: { response: { set: { "set-cookie": "a=1" } } } }, /^headers.response.set.set-cookie: every visitor is given the same cookie with every answer/],
  ["a cookie for all who are passed on", { bypass: true, headers: { response: { set: { "Set-Cookie": "a=1" } } } }, /^headers.response.set.Set-Cookie: every visitor is given the same cookie, in place/],
  ["cookies removed", { headers: { response: { remove: ["X-A", "SET-COOKIE"] } } }, /^headers.response.remove.1: cookies that the application sets reach no visitor/],
])("%s, also of files", (_name, rule, expected) => {
  for (const path of [undefined, "/**", "/**/*.png"]) {
    const cautions = said(rule, path);
    expect(cautions.length).toBe(1);
    expect(cautions[0]).toMatch(expected);
  }
}); // prettier-ignore

it.each<[string, readonly string[], readonly RegExp[]]>([
  ["files", ["image/*", "TEXT/css", "font/woff2"], []],
  ["pages among them", ["image/*", "text/html"], [/from all answers of these media types/, opened]],
  ["text of any kind", ["text/*"], [/from all answers of these media types/, opened]],
])("cookies removed by media type: %s", (_name, types, expected) => {
  const rule = { path: "/**", match: { media_type: types }, ttl_s: 60, ignore_set_cookie: true };
  const cautions = devloveCautions({ domains: { [domain]: { cache: { rules: [rule] } } } });
  expect(cautions.map(({ message }) => `ignore_set_cookie: ${message}`)).toEqual(
    expected.map((one) => expect.stringMatching(one)),
  );
});

it.each<[string, object, number]>([
  ["few at once, of every path", { path: "/**", rate: 20 }, 1],
  ["of every path, in another spelling", { path: "**", rate: 1, per_s: 2, burst: 49 }, 1],
  ["room for a page", { path: "/**", rate: 1, per_s: 2, burst: 50 }, 0],
  ["a narrower path", { path: "/login", rate: 1 }, 0],
  ["no page", { path: "/**", methods: ["POST"], rate: 1 }, 0],
  ["only watched", { path: "/**", rate: 1, mode: "monitor" }, 0],
])("limits of requests: %s", (_, rule, count) => {
  const limits = { requests: [rule] } as NonNullable<SiteInput["limits"]>;
  const cautions = devloveCautions({ domains: { [domain]: { limits } } });
  expect(cautions.map(({ path }) => path.join("."))).toEqual(
    Array.from({ length: count }, () => `domains.${domain}.limits.requests.0`),
  );
  for (const { message } of cautions)
    expect(message).toMatch(/^every path counts, and only \d+ req/);
});

it.each<[string, NonNullable<SiteInput["images"]>, readonly string[]]>([
  ["as they are meant", { optimize: true, formats: ["webp"], widths: [640], quality: 70 }, []],
  ["off", { optimize: false }, []],
  [
    "off, with all the rest",
    { formats: [], quality: 5, widths: [640], variants_per_day_max: 5 },
    ["formats", "quality", "widths", "variants_per_day_max"],
  ],
  ["in no format", { optimize: true, formats: [] }, ["formats"]],
  ["in no format, but narrower", { optimize: true, formats: [], widths: [640] }, []],
  ["none a day", { optimize: true, variants_per_day_max: 0 }, ["variants_per_day_max"]],
])("images: %s", (_, images, keys) => {
  const cautions = devloveCautions({ domains: { [domain]: { images } } });
  expect(cautions.map(({ path }) => path.join("."))).toEqual(
    keys.map((key) => `domains.${domain}.images.${key}`),
  );
  for (const { message } of cautions) expect(message).toMatch(/nothing is made of images/);
});
