// Bot sets in agent.db against a Map: complete or not applied, whatever arrives in whatever order.

import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { SetStore } from "../../../../src/agent/bots/sets/set-store.ts";
import { openAgentDb, type AgentDb } from "../../../../src/agent/link/agent-db.ts";
import { parseSha256, type Sha256 } from "../../../../src/core/ids.ts";
import { parseIp, parseRange } from "../../../../src/core/addresses/ip.ts";
import {
  changedSetDigest,
  elementKey,
  emptySetDigest,
  type SetElement,
} from "../../../../src/core/addresses/set-digest.ts";
import type { JournalBody } from "../../../../src/wire/journal.ts";
import { batches, KeptTables } from "../../../support/bot-tables.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const never = new AbortController().signal;

type Delta = JournalBody<"bots.changed">;

const host = "www.example.com";
const ranges = ["192.0.2.0/24", "192.0.2.0/28", "192.0.2.7", "2001:db8::/32", "2001:db8::1"];
const universe = ["a", "b", "c"].flatMap((bot) =>
  ranges.map((range): SetElement => ({ bot, range })),
);

function openDb(dir: string): AgentDb {
  const db = openAgentDb(join(dir, "agent.db"), "/nowhere");
  db.sqlite.pragma("synchronous = off"); // Thousands of commits whose durability is not what is tested here.
  return db;
}

/** What central would send for a set that goes from one state to the other. */
function delta(
  from: { readonly version: number; readonly elements: readonly SetElement[] },
  added: readonly SetElement[],
  removed: readonly SetElement[],
): Delta {
  const before = changedSetDigest(emptySetDigest, from.elements, []);
  return {
    domain: host,
    set: "bad",
    from_version: from.version,
    to_version: from.version + 1,
    added: [...added],
    removed: [...removed],
    count: from.elements.length + added.length - removed.length,
    digest: parsed(changedSetDigest(before, added, removed)),
    shrink_meant: false,
  };
}

function parsed(hex: string): Sha256 {
  const sha256 = parseSha256(hex);
  if (sha256 === undefined) throw new Error(hex);
  return sha256;
}

const nothing = { version: 0, elements: [] };
const many = Array.from({ length: 120 }, (_, i): SetElement => ({
  bot: "x",
  range: `10.0.0.${i}`,
}));

/** The slow way: the longest of all ranges that hold the address; of equal ones the bot that sorts first. */
function holderOf(elements: Iterable<SetElement>, text: string): string | undefined {
  const address = parseIp(text);
  const holding = [...elements].flatMap(({ bot, range }) => {
    const parsed = parseRange(range);
    if (!parsed.ok || address === undefined || parsed.range.family !== address.family) return [];
    const { first, last } = parsed.range;
    return first <= address.value && address.value <= last ? [{ bot, size: last - first }] : [];
  });
  holding.sort((x, y) => (x.size === y.size ? (x.bot < y.bot ? -1 : 1) : x.size < y.size ? -1 : 1));
  return holding[0]?.bot;
}

const subset = fc.subarray(universe);
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("delta" as const), add: subset, remove: subset }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("whole" as const),
      elements: subset,
      version: fc.nat(50),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reopen" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("wrong" as const),
      how: fc.constantFrom("from", "digest", "count", "present", "absent", "twice", "no range"),
      element: fc.constantFrom(...universe),
    }),
  },
);

/** A change that must not be applied; undefined where the set leaves no room for that fault. */
function wrong(
  how: string,
  element: SetElement,
  now: { version: number; elements: readonly SetElement[] },
): Delta | undefined {
  const isIn = now.elements.some((own) => elementKey(own) === elementKey(element));
  if (how === "present") return isIn ? delta(now, [element], []) : undefined;
  if (isIn) return undefined;
  if (how === "absent") return now.elements.length === 0 ? undefined : delta(now, [], [element]);
  if (how === "twice") return delta(now, [element, element], []);
  if (how === "no range") return delta(now, [{ bot: "a", range: "192.0.2.1/24" }], []);
  const good = delta(now, [element], []);
  if (how === "from")
    return { ...good, from_version: now.version + 1, to_version: now.version + 2 };
  if (how === "digest") return { ...good, digest: parsed("f".repeat(64)) };
  return { ...good, count: good.count + 1 };
}

test("property: the store holds what the applied changes say, and nothing of the others", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      using dir = tempDir();
      using db = openDb(dir.path);
      let tables = new KeptTables(db.sqlite);
      let { store } = tables;
      let version = 0;
      let oracle = new Map<string, SetElement>();
      let exists = false;
      for (const one of steps) {
        const now = { version, elements: [...oracle.values()] };
        if (one.kind === "delta") {
          const added = one.add.filter((element) => !oracle.has(elementKey(element)));
          const removed = one.remove.filter((element) => oracle.has(elementKey(element)));
          const body = delta(now, added, removed);
          expect(store.applyDelta(body).kind).toBe("applied");
          expect(store.applyDelta(body).kind).toBe("known");
          for (const element of removed) oracle.delete(elementKey(element));
          for (const element of added) oracle.set(elementKey(element), element);
          version++;
          exists = true;
        } else if (one.kind === "whole") {
          version = one.version;
          oracle = new Map(one.elements.map((element) => [elementKey(element), element]));
          const digest = changedSetDigest(emptySetDigest, one.elements, []);
          await store.replace(
            { host, kind: "bad", version, count: one.elements.length, digest },
            batches(one.elements),
            never,
          );
          exists = true;
        } else if (one.kind === "reopen") ({ store } = tables = new KeptTables(db.sqlite));
        else if (one.kind === "forget") {
          store.keepOnly(new Set(["other.example.com"]));
          [version, oracle, exists] = [0, new Map(), false];
        } else {
          const body = wrong(one.how, one.element, now);
          if (body !== undefined)
            expect([one.how, store.applyDelta(body).kind]).toEqual([one.how, "mismatch"]);
        }
        const digest = changedSetDigest(emptySetDigest, oracle.values(), []);
        expect(store.list()).toEqual(
          exists ? [{ host, kind: "bad", version, count: oracle.size, digest }] : [],
        );
        for (const text of [
          "192.0.2.7",
          "192.0.2.1",
          "192.0.2.99",
          "198.51.100.1",
          "2001:db8::1",
          "2001:db8::2",
        ]) {
          expect(tables.holder(host, text)).toBe(holderOf(oracle.values(), text));
        }
      }
    }),
    { numRuns: 40 },
  );
});

test("sets of other hosts and kinds are apart", () => {
  using dir = tempDir();
  using db = openDb(dir.path);
  const store = new SetStore(db.sqlite);
  const element = { bot: "a", range: "192.0.2.1" };
  for (const domain of ["a.example", "b.example"])
    for (const set of ["bad", "vip"] as const)
      expect(store.applyDelta({ ...delta(nothing, [element], []), domain, set }).kind).toBe(
        "applied",
      );
  store.keepOnly(new Set(["b.example"]));
  expect(store.list().map((set) => `${set.kind} ${set.host}`)).toEqual([
    "bad b.example",
    "vip b.example",
  ]);
  expect(db.sqlite.prepare("SELECT count(*) FROM bot_element").pluck().get()).toBe(2);
});

test.each([
  [61, false, "applied"],
  [60, false, "applied"],
  [59, false, "shrunk"],
  [0, false, "shrunk"],
  [0, true, "applied"],
])("of 120 elements %i stay, meant: %s → %s", (stay, isMeant, outcome) => {
  using dir = tempDir();
  using db = openDb(dir.path);
  const store = new SetStore(db.sqlite);
  store.applyDelta(delta(nothing, many, []));
  const body = {
    ...delta({ version: 1, elements: many }, [], many.slice(stay)),
    shrink_meant: isMeant,
  };
  expect(store.applyDelta(body).kind).toBe(outcome);
  expect(store.list()[0]?.count).toBe(outcome === "applied" ? stay : 120);
});

test("a small set may shrink as it likes", () => {
  using dir = tempDir();
  using db = openDb(dir.path);
  const store = new SetStore(db.sqlite);
  const few = many.slice(0, 99);
  store.applyDelta(delta(nothing, few, []));
  expect(store.applyDelta(delta({ version: 1, elements: few }, [], few)).kind).toBe("applied");
});

test.each([
  ["another count", { count: 2 }, [{ bot: "b", range: "192.0.2.2" }]],
  ["another digest", { digest: "f".repeat(64) }, [{ bot: "b", range: "192.0.2.2" }]],
  [
    "an element twice",
    { count: 2 },
    [
      { bot: "b", range: "192.0.2.2" },
      { bot: "b", range: "192.0.2.2" },
    ],
  ],
  ["no range", {}, [{ bot: "b", range: "everything" }]],
])(
  "a whole set with %s changes nothing: the last good one stays in force",
  async (_name, lie, elements) => {
    using dir = tempDir();
    using db = openDb(dir.path);
    const tables = new KeptTables(db.sqlite);
    const { store } = tables;
    store.applyDelta(delta(nothing, [{ bot: "a", range: "192.0.2.1" }], []));
    const before = store.list();
    const digest = changedSetDigest(emptySetDigest, elements, []);
    const want = { host, kind: "bad" as const, version: 9, count: 1, digest, ...lie };
    await expect(store.replace(want, batches(elements), never)).rejects.toMatchObject({
      code: "SET_MISMATCH",
    });
    expect(store.list()).toEqual(before);
    expect(tables.holder(host, "192.0.2.1")).toBe("a");
  },
);

test("a change that fails in the middle is rolled back whole", () => {
  using dir = tempDir();
  using db = openDb(dir.path);
  const store = new SetStore(db.sqlite);
  store.applyDelta(delta(nothing, [{ bot: "a", range: "192.0.2.1" }], []));
  db.sqlite.exec(
    "CREATE TRIGGER full BEFORE INSERT ON bot_range WHEN new.bot = 'last' BEGIN SELECT raise(ABORT, 'disk full'); END",
  );
  const now = { version: 1, elements: [{ bot: "a", range: "192.0.2.1" }] };
  const body = delta(
    now,
    [
      { bot: "b", range: "192.0.2.2" },
      { bot: "last", range: "192.0.2.3" },
    ],
    now.elements,
  );
  expect(() => store.applyDelta(body)).toThrow("disk full");
  expect(db.sqlite.prepare("SELECT bot FROM bot_element").pluck().all()).toEqual(["a"]);
  expect(store.list()[0]?.version).toBe(1);
});

test("hosts that are no longer served lose all their sets at once, or none where that fails", () => {
  using dir = tempDir();
  using db = openDb(dir.path);
  const store = new SetStore(db.sqlite);
  for (const domain of ["a.example", "b.example", "c.example"])
    store.applyDelta({ ...delta(nothing, [{ bot: "a", range: "192.0.2.1" }], []), domain });
  db.sqlite.exec(
    "CREATE TRIGGER stuck BEFORE DELETE ON bot_set WHEN old.host = 'b.example' BEGIN SELECT raise(ABORT, 'disk full'); END",
  );
  const hosts = (): readonly string[] => store.list().map(({ host: name }) => name);
  expect(() => store.keepOnly(new Set(["c.example"]))).toThrow("disk full");
  expect(hosts()).toEqual(["a.example", "b.example", "c.example"]);
  db.sqlite.exec("DROP TRIGGER stuck");
  store.keepOnly(new Set(["c.example"]));
  expect(hosts()).toEqual(["c.example"]);
});
