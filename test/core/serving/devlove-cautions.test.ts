// Rules that are valid and would share pages of those who are logged in.

import { expect, it } from "vitest";
import {
  cautionsMax,
  devloveCautions,
  loginCookies,
} from "../../../src/core/serving/devlove-cautions.ts";
import type { CacheInput } from "../../../src/core/serving/effective-devlove.ts";
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

it.each<[string, CacheInput, readonly RegExp[]]>([
  ["nothing ignored", ttl, []],
  [
    "what is no login",
    { ...ttl, cookies: { ignore: ["ab_*", "seen_banner", "theme", "_ga*", "x-*-y"] } },
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
  ["cookies stripped", { ...ttl, ignore_set_cookie: true }, [/^ignore_set_cookie: with `ttl_s` a page that opens a session/]],
  ["cookies stripped where the origin decides", { ignore_set_cookie: true }, []],
  [
    "cookies stripped and ignored",
    { ...ignoringAll, ignore_set_cookie: true },
    [/^cookies/, /^ignore_set_cookie: .*nobody can log in/],
  ],
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
