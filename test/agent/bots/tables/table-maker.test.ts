// Tables in two arenas: what is written anew, what is copied, what is shared, and where the ranges come from.

import { expect, test } from "vitest";
import { SetStore } from "../../../../src/agent/bots/sets/set-store.ts";
import {
  builtTables,
  openArenas,
  TableMaker,
  type BuiltTables,
} from "../../../../src/agent/bots/tables/table-maker.ts";
import { openAgentDb, type AgentDb } from "../../../../src/agent/link/agent-db.ts";
import { AddressReader } from "../../../../src/core/addresses/address-reader.ts";
import { AddressTable } from "../../../../src/core/addresses/address-table.ts";
import { parseSha256 } from "../../../../src/core/ids.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../../src/core/addresses/set-digest.ts";
import { batches } from "../../../support/bot-tables.ts";

const one = { bot: "one", range: "192.0.2.0/24" };
const two = { bot: "two", range: "192.0.2.7" };
const six = { bot: "six", range: "2001:db8::/32" };

class Rig implements Disposable {
  readonly db: AgentDb = openAgentDb(":memory:", "/nowhere");
  readonly arenas = openArenas(2 ** 20);
  maker = new TableMaker(this.db.sqlite, this.arenas);
  readonly store = new SetStore(this.db.sqlite, (delta) => this.maker.note(delta));
  inForce: 0 | 1 = 0;
  readonly #elements = new Map<string, readonly SetElement[]>();

  change(host: string, added: readonly SetElement[], removed: readonly SetElement[] = []): void {
    const before = this.#elements.get(host) ?? [];
    const after = [...before.filter((element) => !removed.includes(element)), ...added];
    this.#elements.set(host, after);
    const version = this.store.list().find((set) => set.host === host)?.version ?? 0;
    const digest = parseSha256(changedSetDigest(emptySetDigest, after, []));
    if (digest === undefined) throw new Error("no digest");
    const { kind } = this.store.applyDelta({
      domain: host,
      set: "bad",
      from_version: version,
      to_version: version + 1,
      added: [...added],
      removed: [...removed],
      count: after.length,
      digest,
      shrink_meant: false,
    });
    expect(kind).toBe("applied");
  }

  build(): BuiltTables {
    const built = builtTables(this.maker.build(this.store.list(), this.inForce), this.arenas);
    this.inForce = built.arena;
    return built;
  }

  [Symbol.dispose](): void {
    this.db[Symbol.dispose]();
  }
}

function holder(built: BuiltTables, host: string, text: string): string | undefined {
  const set = built.sets.get(`bad/${host}`);
  const reader = new AddressReader();
  const family = reader.read(text);
  if (set === undefined || family === 0) return undefined;
  const table = new AddressTable(set.table);
  const owner = table.ownerOf(family, reader.words);
  return owner === 0 ? undefined : table.name(owner);
}

test("each change is written into the other arena, and the one in force is not touched", () => {
  using rig = new Rig();
  rig.change("a.example", [one]);
  const first = rig.build();
  const kept = Buffer.from(new Uint8Array(rig.arenas[first.arena])).toString("hex");
  rig.change("a.example", [two]);
  const second = rig.build();
  expect(second.arena).not.toBe(first.arena);
  expect(Buffer.from(new Uint8Array(rig.arenas[first.arena])).toString("hex")).toBe(kept);
  expect(holder(first, "a.example", "192.0.2.7")).toBe("one");
  expect(holder(second, "a.example", "192.0.2.7")).toBe("two");
  rig.change("a.example", [], [two]);
  expect(rig.build().arena).toBe(first.arena);
});

test("what has not changed is copied, and nothing is written where nothing has", () => {
  using rig = new Rig();
  rig.change("a.example", [one]);
  rig.change("b.example", [two, six]);
  const first = rig.build();
  expect(rig.build()).toEqual(first);
  rig.change("a.example", [six]);
  const second = rig.build();
  expect(second.arena).not.toBe(first.arena);
  expect(holder(second, "b.example", "192.0.2.7")).toBe("two");
  expect(holder(second, "b.example", "2001:db8::9")).toBe("six");
  expect(holder(second, "a.example", "2001:db8::9")).toBe("six");
});

test("equal sets lie there once; an empty one has no table", () => {
  using rig = new Rig();
  rig.change("a.example", [one, six]);
  rig.change("b.example", [six, one]);
  const first = rig.build();
  const [a, b] = ["a", "b"].map((name) => first.sets.get(`bad/${name}.example`));
  expect(a?.table.at).toBe(b?.table.at);
  rig.change("a.example", [], [one, six]);
  const second = rig.build();
  expect(second.sets.has("bad/a.example")).toBe(false);
  expect(second.arena).toBe(first.arena); // The other one lies here already.
});

test("a change is spliced into the set that is held; after a restart the set is read", () => {
  using rig = new Rig();
  rig.change("a.example", [one]);
  rig.build();
  rig.change("a.example", [two]);
  rig.change("a.example", [six], [two]);
  rig.change("a.example", [two]);
  rig.db.sqlite.exec("DELETE FROM bot_range WHERE bot <> 'six'"); // Whoever reads would find only this.
  expect(holder(rig.build(), "a.example", "192.0.2.7")).toBe("two");
  rig.maker = new TableMaker(rig.db.sqlite, rig.arenas);
  const read = rig.build();
  expect(holder(read, "a.example", "192.0.2.7")).toBeUndefined();
  expect(holder(read, "a.example", "2001:db8::1")).toBe("six");
});

const numbered = (count: number, from = 0): readonly SetElement[] =>
  Array.from({ length: count }, (_, i) => {
    const no = from + i;
    return { bot: "many", range: `10.${no >> 16}.${(no >> 8) & 255}.${no & 255}` };
  });

// What is added and what is removed, counted together.
test.each([
  [20_000, 0, "spliced"],
  [20_001, 0, "read anew"],
  [10_000, 10_000, "spliced"],
  [10_000, 10_001, "read anew"],
])(
  "a change of %i elements that come and %i that go is %s; the next small one is spliced again",
  (coming, going, how) => {
    using rig = new Rig();
    const gone = numbered(going, 100_000);
    rig.change("a.example", [one, ...gone]);
    rig.build();
    rig.change("a.example", numbered(coming), gone);
    rig.db.sqlite.exec("DELETE FROM bot_range WHERE bot = 'many'"); // Whoever reads would not find them.
    const built = rig.build();
    expect(holder(built, "a.example", "192.0.2.9")).toBe("one");
    expect(holder(built, "a.example", "10.0.0.9")).toBe(how === "spliced" ? "many" : undefined);
    expect(holder(built, "a.example", "10.1.134.160")).toBeUndefined();
    rig.change("a.example", [two]);
    rig.db.sqlite.exec("DELETE FROM bot_range WHERE bot = 'two'");
    expect(holder(rig.build(), "a.example", "192.0.2.7")).toBe("two");
  },
);

test("of many changes the oldest are forgotten first: what is left of them leads to no set that is held, which is read", () => {
  using rig = new Rig();
  rig.change("a.example", [one]);
  rig.build();
  rig.change("a.example", [two]);
  rig.change("a.example", numbered(20_000));
  rig.db.sqlite.exec("DELETE FROM bot_range WHERE bot <> 'one'");
  const built = rig.build();
  expect(holder(built, "a.example", "192.0.2.9")).toBe("one");
  expect(holder(built, "a.example", "10.0.0.9")).toBeUndefined();
});

test("what has not changed is copied from the arena in force, not from where it lay in the other one before", () => {
  using rig = new Rig();
  rig.change("a.example", [one]);
  rig.change("b.example", [two, six]);
  const first = rig.build();
  rig.change("a.example", [six]);
  rig.build();
  rig.change("a.example", numbered(2_000)); // Written where the other set lay in the first build.
  const third = rig.build();
  expect(third.arena).toBe(first.arena);
  expect(holder(third, "a.example", "10.0.0.9")).toBe("many");
  expect(holder(third, "b.example", "192.0.2.7")).toBe("two");
  expect(holder(third, "b.example", "2001:db8::9")).toBe("six");
});

test("a whole set takes the place of one that was held", async () => {
  using rig = new Rig();
  rig.change("a.example", [one, two]);
  rig.build();
  const digest = changedSetDigest(emptySetDigest, [six], []);
  const want = { host: "a.example", kind: "bad" as const, version: 40, count: 1, digest };
  await rig.store.replace(want, batches([six]), new AbortController().signal);
  const built = rig.build();
  expect(built.sets.get("bad/a.example")?.version).toBe(40);
  expect(holder(built, "a.example", "192.0.2.7")).toBeUndefined();
  expect(holder(built, "a.example", "2001:db8::1")).toBe("six");
});

test("sets that do not fit are refused; those in force stay, and the next that fit are built", () => {
  using rig = new Rig();
  rig.change("a.example", [one]);
  const first = rig.build();
  const many = Array.from({ length: 26_000 }, (_, i) => ({
    bot: "many",
    range: `2001:db8:${(i >> 8).toString(16)}:${(i & 255).toString(16)}::1`,
  }));
  rig.change("b.example", many);
  expect(() => rig.build()).toThrow(expect.objectContaining({ code: "SETS_NOT_COMPILED" }));
  expect(holder(first, "a.example", "192.0.2.9")).toBe("one");
  rig.store.keepOnly(new Set(["a.example"]));
  rig.change("a.example", [two]);
  expect(holder(rig.build(), "a.example", "192.0.2.7")).toBe("two");
});

test("whoever builds many ranges is called out of it again and again, for the whole set and for a change", () => {
  using rig = new Rig();
  let calls = 0;
  const many = Array.from({ length: 20_000 }, (_, i) => ({
    bot: `bot-${i % 7}`,
    range: i % 2 === 0 ? `10.${i >> 8}.${i & 255}.8/30` : `2001:db8:${i.toString(16)}::/48`,
  }));
  rig.change("a", many);
  rig.maker = new TableMaker(rig.db.sqlite, rig.arenas, () => calls++);
  rig.build();
  // Each 128th row that is read; after that 4,096 steps in each of many loops.
  expect(calls).toBeGreaterThan(20_000 / 128 + 50);
  calls = 0;
  rig.change("a", [one], many.slice(0, 1));
  const built = rig.build();
  expect(calls).toBeGreaterThan(20);
  expect(holder(built, "a", "192.0.2.9")).toBe("one");
  expect(holder(built, "a", "10.0.0.9")).toBeUndefined();
  expect(holder(built, "a", "2001:db8:1::9")).toBe("bot-1");
});
