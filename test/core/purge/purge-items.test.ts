// Purge items joined, divided among scopes, and told apart.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  countItems,
  filterItems,
  itemKeys,
  joinItems,
  scopeOf,
  sharesOf,
  type PurgeItems,
  type PurgeScope,
} from "../../../src/core/purge/purge-items.ts";

const some: fc.Arbitrary<PurgeItems> = fc.record(
  {
    urls: fc.uniqueArray(fc.constantFrom("/a", "/b", "https://www.example.com/a"), {
      minLength: 1,
    }),
    tags: fc.uniqueArray(fc.constantFrom("a", "b", "c"), { minLength: 1 }),
    hosts: fc.uniqueArray(fc.constantFrom("www.example.com", "img.example.com"), { minLength: 1 }),
  },
  { requiredKeys: [] },
);

test("joining loses nothing and counts equal items once", () => {
  fc.assert(
    fc.property(some, some, (one, other) => {
      const all = new Set([...itemKeys(one), ...itemKeys(other)]);
      const joined = joinItems(one, other);
      expect(new Set(itemKeys(joined))).toEqual(all);
      expect(countItems(joined)).toBe(all.size);
    }),
  );
});

test("a filter and its opposite divide the items", () => {
  fc.assert(
    fc.property(some, fc.func(fc.boolean()), (items, takes) => {
      const kept = filterItems(items, takes);
      const left = filterItems(items, (key) => !takes(key));
      expect(new Set([...itemKeys(kept), ...itemKeys(left)])).toEqual(new Set(itemKeys(items)));
    }),
  );
});

test("what is joined is soft only if all of it is", () => {
  const soft: PurgeItems = { tags: ["a"], soft: true };
  expect(joinItems({}, soft)).toEqual(soft);
  expect(joinItems(soft, { tags: ["b"], soft: true })).toEqual({ tags: ["a", "b"], soft: true });
  expect(joinItems(soft, { tags: ["a"] })).toEqual({ tags: ["a"] });
  expect(joinItems({ everything: true }, soft)).toEqual({ everything: true });
});

test("a soft purge is another item than a purge, and stays soft when it is filtered or divided", () => {
  const soft: PurgeItems = { tags: ["a"], urls: ["/a"], soft: true };
  const [first] = itemKeys(soft);
  expect(itemKeys({ tags: ["a"], urls: ["/a"] })).not.toContain(first);
  const { tags: _tags, ...urls } = soft;
  expect(filterItems(soft, (key) => key === first)).toEqual(urls);
  expect(sharesOf(soft, { scopes: [com] }, () => undefined)).toEqual([{ scope: com, items: soft }]);
});

test("too many items are everything", () => {
  const many = (prefix: string): PurgeItems => ({
    urls: Array.from({ length: 600 }, (_, at) => `/${prefix}${at}`),
  });
  expect(joinItems(many("a"), many("b"))).toEqual({ everything: true });
  expect(joinItems({ everything: true }, { tags: ["a"] })).toEqual({ everything: true });
});

const domains: ReadonlyMap<string, string> = new Map([
  ["www.example.com", "www.example.com"],
  ["img.example.com", "www.example.com"],
  ["www.example.org", "www.example.org"],
]);
const com: PurgeScope = { domain: "www.example.com", host: null };
const img: PurgeScope = { domain: "www.example.com", host: "img.example.com" };
const org: PurgeScope = { domain: "www.example.org", host: null };

test.each<[PurgeItems, readonly PurgeScope[], unknown]>([
  [
    { tags: ["a"] },
    [com, org],
    [
      { scope: com, items: { tags: ["a"] } },
      { scope: org, items: { tags: ["a"] } },
    ],
  ],
  [
    { urls: ["https://img.example.com/a", "https://www.example.org/b", "/c"] },
    [com, org],
    [
      { scope: com, items: { urls: ["https://img.example.com/a", "/c"] } },
      { scope: org, items: { urls: ["https://www.example.org/b", "/c"] } },
    ],
  ],
  [
    { hosts: ["IMG.example.com"] },
    [com, org],
    [{ scope: com, items: { hosts: ["IMG.example.com"] } }],
  ],
  [{ urls: ["https://www.example.com/"] }, [img], "www.example.com"],
  [{ urls: ["https://www.example.net/"] }, [com, org], "www.example.net"],
  [{ hosts: ["nothing"] }, [com], "nothing"],
  [{ everything: true }, [img], [{ scope: img, items: { everything: true } }]],
])("%j among %j", (items, scopes, shares) => {
  expect(sharesOf(items, { scopes }, (host) => domains.get(host))).toEqual(shares);
});

test("everything is that of the domain whose host is named, and all that the sender may clear where none is", () => {
  const domainOf = (host: string): string | undefined => domains.get(host);
  const items = { everything: true };
  const named = scopeOf("img.example.com", [org, com], domainOf);
  expect(named).toEqual(com);
  expect(sharesOf(items, { scopes: [org, com], named: com }, domainOf)).toEqual([
    { scope: com, items },
  ]);
  expect(sharesOf(items, { scopes: [org, com] }, domainOf)).toHaveLength(2);
  expect(scopeOf("www.example.net", [org, com], domainOf)).toBeUndefined();
});
