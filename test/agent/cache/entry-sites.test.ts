// Whose each entry is: what index.db would say.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { EntrySites } from "../../../src/agent/cache/entry-sites.ts";
import { inScope } from "../../../src/agent/cache/entry.ts";

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
