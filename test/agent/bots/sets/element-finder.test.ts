// The element of a set that holds an address, found in agent.db against trying every element.

import fc from "fast-check";
import { expect, test } from "vitest";
import { ElementFinder } from "../../../../src/agent/bots/sets/element-finder.ts";
import { openAgentDb } from "../../../../src/agent/link/agent-db.ts";
import { formatRange, parseIp, parseRange } from "../../../../src/core/addresses/ip.ts";

test("the element found is the most specific one of the bot that holds the address", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  const finder = new ElementFinder(db.sqlite);
  const insert = db.sqlite.prepare("INSERT INTO bot_range (list, bot, range) VALUES (1, 'b', ?)");
  db.sqlite
    .prepare(
      "INSERT INTO bot_set (host, kind, version, count, digest, list) VALUES ('h', 'bad', 1, 1, '', 1)",
    )
    .run();
  const range = fc.oneof(
    fc.tuple(fc.bigInt(0n, 255n), fc.integer({ min: 24, max: 32 })).map(([last, prefix]) => {
      const below = BigInt(32 - prefix);
      const first = ((0xc000_0200n + last) >> below) << below;
      return formatRange({ family: 4, first, last: first + (1n << below) - 1n });
    }),
    fc.constantFrom("2001:db8::/32", "2001:db8::/127", "2001:db8::1", "::/0", "0.0.0.0/0"),
  );
  const address = fc.oneof(
    fc.nat(255).map((last) => `192.0.2.${last}`),
    fc.constantFrom("2001:db8::1", "2001:db8::2"),
  );
  fc.assert(
    fc.property(fc.uniqueArray(range, { maxLength: 8 }), address, (ranges, ip) => {
      db.sqlite.exec("DELETE FROM bot_range");
      for (const one of ranges) insert.run(one);
      const at = parseIp(ip);
      const holding = ranges.flatMap((text) => {
        const parsed = parseRange(text);
        if (!parsed.ok || at?.family !== parsed.range.family) return [];
        const { first, last } = parsed.range;
        return first <= at.value && at.value <= last ? [{ text, size: last - first }] : [];
      });
      holding.sort((x, y) => (x.size < y.size ? -1 : 1));
      expect(finder.element({ host: "h", kind: "bad" }, "b", ip)?.range).toBe(holding[0]?.text);
      expect(finder.element({ host: "h", kind: "vip" }, "b", ip)).toBeUndefined();
    }),
    { numRuns: 100 },
  );
});

test("since when an element is there and its set is as it is, where that is known", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  const finder = new ElementFinder(db.sqlite);
  db.sqlite.exec(`
    INSERT INTO bot_set (host, kind, version, count, digest, list, changed_at) VALUES
      ('h', 'bad', 3, 2, '', 1, 1900000000), ('h', 'vip', 1, 0, '', 2, NULL);
    INSERT INTO bot_range (list, bot, range, added_at) VALUES
      (1, 'b', '192.0.2.1', 1800000000), (1, 'b', '192.0.2.2', NULL);
  `);
  const bad = { host: "h", kind: "bad" } as const;
  expect(finder.element(bad, "b", "192.0.2.1")).toEqual({
    range: "192.0.2.1",
    since: new Date(1_800_000_000_000),
  });
  expect(finder.element(bad, "b", "192.0.2.2")).toEqual({ range: "192.0.2.2", since: undefined });
  const facts = { ...bad, version: 3, count: 2, changedAt: new Date(1_900_000_000_000) };
  expect(finder.set(bad)).toEqual(facts);
  expect(finder.sets()).toEqual([
    facts,
    { host: "h", kind: "vip", version: 1, count: 0, changedAt: undefined },
  ]);
  expect(finder.set({ host: "other", kind: "bad" })).toBeUndefined();
});
