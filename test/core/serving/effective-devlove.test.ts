// What a host is served with: defaults, inheritance, and which folder of the viewset is its own.

import { expect, test } from "vitest";
import { CACHE_DEFAULTS } from "../../../src/core/serving/cache-defaults.ts";
import { cacheKeys } from "../../../src/core/serving/devlove-cache.ts";
import { DomainSchema } from "../../../src/core/serving/devlove.ts";
import { SITE_DEFAULTS, effectiveDevlove } from "../../../src/core/serving/effective-devlove.ts";

const main = "www.example.com";
const sub = (share: boolean) => ({
  name: "static.example.com",
  share_views_and_views_dir_with_main_domain: share,
});

test("an empty domain is the defaults", () => {
  const expected = { host: main, main_domain: main, said_of: main, ...SITE_DEFAULTS };
  expect(effectiveDevlove({ domains: { [main]: {} } }, main, null)).toEqual(expected);
  expect(effectiveDevlove({ domains: {} }, main, null)).toEqual(expected);
});

test("every key has a value in force where nothing is said", () => {
  const valueless = ([, value]: readonly [string, unknown]): boolean => value === undefined;
  const keys = Object.keys(DomainSchema.properties);
  expect(Object.keys(SITE_DEFAULTS).toSorted()).toEqual(keys.toSorted());
  expect(Object.entries(SITE_DEFAULTS).filter(valueless)).toEqual([]);
  expect(Object.keys(CACHE_DEFAULTS).toSorted()).toEqual(Object.keys(cacheKeys).toSorted());
  expect(Object.entries(CACHE_DEFAULTS).filter(valueless)).toEqual([]);
});

test("what is said replaces the default, what is not said beside it stays", () => {
  const site = effectiveDevlove(
    {
      domains: {
        [main]: {
          views_dir: "./public/",
          single_page: "/app.html",
          headers: { set: { "X-A": "1" } },
          backend: { urls: ["http://127.0.0.1:8081"], response_timeout_s: 7 },
          cache: {
            rules: [
              { path: "/a", ttl_s: 0 },
              { path: "/b", query: { keep: ["id"] } },
            ],
            default: { bypass: true },
          },
          bots: { mode: "monitor" },
          images: {},
        },
      },
    },
    main,
    null,
  );
  expect(site).toEqual({
    ...SITE_DEFAULTS,
    host: main,
    main_domain: main,
    said_of: main,
    views_dir: "public",
    single_page: "app.html",
    headers: { set: { "X-A": "1" }, remove: [] },
    backend: {
      urls: ["http://127.0.0.1:8081"],
      host: "preserve",
      connect_timeout_s: 5,
      response_timeout_s: 7,
      idle_timeout_s: 60,
      retries: 1,
      stream_request_body: false,
      health: null,
    },
    cache: {
      paused_until: null,
      rules: [
        { ...CACHE_DEFAULTS, path: "/a", match: null, ttl_s: 0 },
        { ...CACHE_DEFAULTS, path: "/b", match: null, query: { keep: ["id"], sort: false } },
      ],
      default: { ...CACHE_DEFAULTS, bypass: true },
    },
    bots: { mode: "monitor" },
  });
  expect(JSON.parse(JSON.stringify(site))).toEqual(site);
});

test("a sub-domain that is not named has the main domain's configuration", () => {
  const devlove = { domains: { [main]: { views_dir: "public", compression: false } } };
  expect(effectiveDevlove(devlove, main, sub(true))).toEqual({
    ...effectiveDevlove(devlove, main, null),
    host: "static.example.com",
  });
});

test("a sub-domain that is named has its own, and defaults for the rest", () => {
  const devlove = {
    domains: { [main]: { compression: false }, "static.example.com": { index: [] } },
  };
  const site = effectiveDevlove(devlove, main, sub(true));
  expect(site).toMatchObject({
    host: "static.example.com",
    main_domain: main,
    said_of: "static.example.com",
    index: [],
    compression: true,
  });
});

test.each([
  [{}, true, "public"],
  [{}, false, "static.example.com"],
  [{ "static.example.com": {} }, true, "public"],
  [{ "static.example.com": {} }, false, "static.example.com"],
  [{ "static.example.com": { views_dir: "st" } }, true, "st"],
  [{ "static.example.com": { views_dir: "st" } }, false, "st"],
  [{ "static.example.com": { views_dir: "." } }, false, "."],
])("views_dir of a sub-domain: %j, shared %s: %s", (own, shared, folder) => {
  const devlove = { domains: { [main]: { views_dir: "public" }, ...own } };
  expect(effectiveDevlove(devlove, main, sub(shared)).views_dir).toBe(folder);
});

test("names of Object's own members are no domains", () => {
  const odd = { name: "constructor", share_views_and_views_dir_with_main_domain: true };
  expect(effectiveDevlove({ domains: {} }, main, odd)).toMatchObject({
    views_dir: ".",
    backend: null,
  });
});

test.each([
  ["query", {}, { ignore: [], sort: false }],
  ["query", { keep: ["id"] }, { keep: ["id"], sort: false }],
  ["query", { ignore: ["u"] }, { ignore: ["u"], sort: false }],
  ["query", { sort: true }, { sort: true }],
  ["cookies", {}, { bypass: [], vary: [], ignore: [] }],
  ["cookies", { vary: ["lang"] }, { bypass: [], vary: ["lang"], ignore: [] }],
])("cache.default.%s: %j is %j", (key, said, inForce) => {
  const devlove = { domains: { [main]: { cache: { default: { [key]: said } } } } };
  const { cache } = effectiveDevlove(devlove, main, null);
  expect(cache.default).toEqual({ ...CACHE_DEFAULTS, [key]: inForce });
  const rules = { domains: { [main]: { cache: { rules: [{ path: "/a", [key]: said }] } } } };
  expect(effectiveDevlove(rules, main, null).cache.rules[0]).toMatchObject({ [key]: inForce });
});
