// Whose each entry is: what index.db would say.

import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { EntrySites } from "../../../../src/agent/cache/index/entry-sites.ts";
import { inScope } from "../../../../src/agent/cache/entry.ts";
import { until } from "../../../support/until.ts";

const siteOf = fc.record({
  domain: fc.constantFrom("a.test", "b.test"),
  host: fc.constantFrom("a.test", "shop.test"),
});
const scopeOf = fc.record({
  domain: fc.constantFrom(null, "a.test", "c.test"),
  host: fc.constantFrom(null, "shop.test"),
});

test("entries are found in the scopes of their sites until they are gone", () => {
  const entries = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 5_000 }), siteOf), {
    selector: ([id]) => id,
  });
  const gone = fc.array(fc.integer({ min: 1, max: 5_000 }));
  fc.assert(
    fc.property(entries, gone, scopeOf, (added, removed, scope) => {
      const sites = new EntrySites();
      for (const [id, site] of added) sites.set([id], site);
      for (const id of removed) sites.unset(id);
      const asked = Float64Array.from({ length: 5_001 }, (_, id) => id);
      const expected = added
        .filter(([id, site]) => !removed.includes(id) && inScope(scope, site))
        .map(([id]) => id)
        .toSorted((a, b) => a - b);
      expect([...sites.among(asked, scope)]).toEqual(expected);
    }),
  );
});

test("the memory of entries goes with them, but not while one of their thousand is left", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const held = (): number => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  const scope = { domain: null, host: null };
  const among = (ids: readonly number[]) => [...sites.among(Float64Array.from(ids), scope)];
  const sites = new EntrySites();
  // What earlier tests left is given back a little later than it is collected.
  let before = held();
  for (let last = Infinity; before < last; before = held()) {
    last = before;
    await sleep(20);
  }
  const ids = Array.from({ length: 2_000_000 }, (_, id) => id);
  sites.set(ids, { domain: "a.test", host: "a.test" });
  const mib = 2 ** 20;
  expect(held() - before).toBeGreaterThan(7 * mib);
  for (const id of ids) if (id !== 1_500_000) sites.unset(id);
  for (const id of ids) if (id !== 1_500_000) sites.unset(id); // Once more changes nothing.
  await until("the memory is given back", () => held() - before < mib, 5_000);
  expect(among([1_499_999, 1_500_000, 1_500_001])).toEqual([1_500_000]);
  sites.unset(1_500_000);
  expect(among([1_500_000])).toEqual([]);
});
