// Who may purge what: addresses for a host, keys for every domain that names them.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { keyOf, PurgeRights } from "../../../src/core/purge/purge-rights.ts";
import { effectiveDevlove } from "../../../src/core/serving/effective-devlove.ts";
import type { Devlove } from "../../../src/core/serving/devlove.ts";
import type { ServedDomain } from "../../../src/core/serving/serving-state.ts";

const digest = (key: string): string => createHash("sha256").update(key).digest("hex");
const bots: ServedDomain["hosts"][number]["bots"] = {
  mode: "enforce",
  unknownBotsCanAccess: null,
  allow: new Set(),
  deny: new Set(),
  vip: [],
  bad: [],
};

function served(main: string, subs: readonly string[], domains: Devlove["domains"]): ServedDomain {
  const hosts = [main, ...subs].map((name) => {
    const sub = name === main ? null : { name, share_views_and_views_dir_with_main_domain: true };
    const site = effectiveDevlove({ domains }, main, sub);
    return { name, site, views: { kind: "none" as const }, bots };
  });
  return { name: main, hosts, manifest: null };
}

const rights = new PurgeRights([
  served("www.example.com", ["img.example.com", "own.example.com"], {
    "www.example.com": { purge: { addresses: ["192.0.2.0/24"], keys: [digest("one")] } },
    "own.example.com": {
      purge: { addresses: ["198.51.100.7"], keys: [digest("one"), digest("own")] },
    },
  }),
  served("www.example.org", [], {
    "www.example.org": { purge: { keys: [digest("one")] } },
  }),
  served("www.example.net", [], {}),
]);

test("a key names its domains; a main domain stands for its sub-domains", () => {
  expect(rights.ofKey("one")).toEqual([
    { domain: "www.example.com", host: null },
    { domain: "www.example.org", host: null },
  ]);
  expect(rights.ofKey("own")).toEqual([{ domain: "www.example.com", host: "own.example.com" }]);
  expect(rights.ofKey("two")).toEqual([]);
  expect(rights.ofKey(digest("one"))).toEqual([]);
});

test("an address may clear the host that it names", () => {
  const main = { domain: "www.example.com", host: null };
  expect(rights.ofAddress("www.example.com", "192.0.2.9")).toEqual(main);
  expect(rights.ofAddress("www.example.com", "192.0.3.9")).toBeUndefined();
  expect(rights.ofAddress("img.example.com", "192.0.2.9")).toEqual({
    ...main,
    host: "img.example.com",
  });
  expect(rights.ofAddress("own.example.com", "192.0.2.9")).toBeUndefined();
  expect(rights.ofAddress("own.example.com", "198.51.100.7")).toEqual({
    ...main,
    host: "own.example.com",
  });
  expect(rights.ofAddress("www.example.net", "192.0.2.9")).toBeUndefined();
  expect(rights.ofAddress("www.example.com", "not an address")).toBeUndefined();
});

test("a host without the section takes none", () => {
  expect(rights.isOpen("www.example.com")).toBe(true);
  expect(rights.isOpen("www.example.org")).toBe(true);
  expect(rights.isOpen("www.example.net")).toBe(false);
});

test.each<[readonly Field[], string | undefined]>([
  [[["Authorization", "Bearer one"]], "one"],
  [[["authorization", "bearer  one"]], "one"],
  [[["X-Purge-Key", "one"]], "one"],
  [[["X-VC-Purge-Key", "one"]], "one"],
  [[["Authorization", "Basic b25lOg=="]], undefined],
  [[["Authorization", "Bearer "]], undefined],
  [[], undefined],
])("%j offers %j", (fields, key) => {
  expect(keyOf(fields)).toBe(key);
});
