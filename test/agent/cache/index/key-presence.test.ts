// Which keys have no entry: never said of one that has, whatever happens in between, and said of what is new.

import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { expect, test } from "vitest";
import { keyNumber } from "../../../../src/agent/cache/index/entry-sql.ts";
import { KeyPresence, PresentKeys } from "../../../../src/agent/cache/index/key-presence.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { keyOf, openedRig, store } from "../rig.ts";
import { openIndexIn } from "../still-index.ts";

const stored = keyOf({ path: "/stored" });
const another = keyOf({ path: "/another" });

test("nothing is known before the keys of the index were read, then what has no entry is", async () => {
  const keys = new KeyPresence(KeyPresence.allocate());
  expect(keys.isAbsent(stored)).toBe(false);
  using dir = tempDir();
  {
    await using rig = await openedRig(dir.path);
    await store(rig.cache, stored);
  }
  await using rig = await openedRig(dir.path);
  const read = new KeyPresence(rig.client.workerInit().init.keys);
  await until("the keys are read", async () => Promise.resolve(read.isAbsent(another)));
  expect(read.isAbsent(stored)).toBe(false);
  expect(rig.cache.find(stored)).toHaveLength(1);
  expect(rig.cache.find(another)).toHaveLength(0);
  await store(rig.cache, another);
  expect(read.isAbsent(another)).toBe(false);
  expect(rig.cache.find(another)).toHaveLength(1);
});

test("an index that takes the place of another begins anew", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  await store(rig.cache, stored);
  const keys = new KeyPresence(rig.client.workerInit().init.keys);
  await until("the keys are read", async () => Promise.resolve(keys.isAbsent(another)));
  keys.beginFilling(); // As the next opening does first.
  expect(keys.isAbsent(another)).toBe(false);
});

test("a filling ends with a commit that is written, though it changes nothing", async () => {
  using dir = tempDir();
  const keys = new KeyPresence(KeyPresence.allocate());
  await using opened = await openIndexIn(dir.path, { keys });
  using other = closing(new Database(join(dir.path, "index.db")));
  const version = (): unknown => other.pragma("data_version", { simple: true });
  const state = (): unknown => other.prepare("SELECT * FROM state").get();
  const before = { version: version(), state: state() };
  // The first step reads the keys, of which there are none.
  opened.index.step();
  expect(keys.isAbsent(another)).toBe(true);
  expect(version()).not.toBe(before.version);
  expect(state()).toEqual(before.state);
});

type Step =
  | { readonly kind: "store" | "remove"; readonly no: number }
  | { readonly kind: "step" | "reopen" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("store" as const), no: fc.nat(15) }),
  fc.record({ kind: fc.constant("remove" as const), no: fc.nat(15) }),
  fc.record({ kind: fc.constant("step" as const) }),
  fc.record({ kind: fc.constant("reopen" as const) }),
);

test("no key with an entry is ever said to have none, nor one whose entry may come back after a loss of power, and filling ends", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: "max" }), (steps) => {
      using db = closing(new Database(":memory:"));
      db.exec(
        "CREATE TABLE entry_key (key INTEGER, id INTEGER, PRIMARY KEY (key, id)) WITHOUT ROWID",
      );
      const keys = new KeyPresence(smallMemory());
      const there = new Set<number>();
      /** What a loss of power may bring back. */
      let mayComeBack = new Set<number>();
      const keyNo = (no: number) => keyOf({ path: `/${no}` });
      // Filled anew as soon as half of eight bits have no entry.
      const open = () =>
        new PresentKeys(keys, db, {
          entriesCount: () => there.size,
          makeDurable: () => void (mayComeBack = new Set(there)),
          fullBits: 8,
        });
      let present = open();
      for (const { kind, ...rest } of steps) {
        const no = "no" in rest ? rest.no : 0;
        const number = keyNumber(keyNo(no));
        if (kind === "store") {
          present.add(keyNo(no));
          db.prepare("INSERT OR IGNORE INTO entry_key VALUES (?, ?)").run(number, no);
          there.add(no);
          mayComeBack.add(no);
        } else if (kind === "remove") {
          db.prepare("DELETE FROM entry_key WHERE key = ?").run(number);
          there.delete(no);
        } else if (kind === "step") present.step();
        else present = open();
        for (const one of mayComeBack) expect(keys.isAbsent(keyNo(one))).toBe(false);
      }
      while (present.step());
      for (const one of mayComeBack) expect(keys.isAbsent(keyNo(one))).toBe(false);
      expect(keys.isAbsent(keyOf({ path: "/never" }))).toBe(true);
    }),
    { numRuns: 30 },
  );
});

const memory = KeyPresence.allocate();

/** Memory that was never used, without 4 MiB for each run. */
function smallMemory(): SharedArrayBuffer {
  new Int32Array(memory).fill(0);
  return memory;
}

function closing(db: Database.Database): Database.Database & Disposable {
  return Object.assign(db, { [Symbol.dispose]: () => void db.close() });
}
