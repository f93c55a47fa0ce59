// Keys of entries that are gone: removed once their deletion is committed, in bounded steps, and looked for where a crash may have left some.

import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { prepareEntrySql, type KeyRow } from "../../../../src/agent/cache/index/entry-sql.ts";
import { StaleKeys } from "../../../../src/agent/cache/index/stale-keys.ts";
import { openSqlite, type Sqlite } from "../../../../src/base/sqlite.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { keyOf, metaOf } from "../rig.ts";
import { openIndexIn } from "../still-index.ts";

/** Of the 48 bits of a key: so far apart are the first keys of two neighbouring buckets. */
const bucketSpan = 2 ** 40;

let dir: ReturnType<typeof tempDir>;
let db: Sqlite;
beforeEach(async () => {
  dir = tempDir();
  {
    await using opened = await openIndexIn(dir.path);
    const meta = metaOf({ sourceNo: opened.index.clears.newest });
    const candidate = { key: keyOf(), meta, body: null, size: 0, invalidationMark: null };
    opened.index.write([{ kind: "commit", candidate }]);
  }
  db = openSqlite(join(dir.path, "index.db"), { sync: "normal" });
});
afterEach(() => {
  db.close();
  dir[Symbol.dispose]();
});

/** Of an entry that is there: no step may touch it. */
const own = 1;

/** Without entries: as they are when the rows have gone. Their ids count from 2. */
function keysOf(count: number, keyAt: (no: number) => number): readonly KeyRow[] {
  const insert = db.prepare<[number, number]>("INSERT INTO entry_key (key, id) VALUES (?, ?)");
  const rows = Array.from({ length: count }, (_, no) => ({ key: keyAt(no), id: no + 2 }));
  db.transaction(() => rows.forEach(({ key, id }) => insert.run(key, id)))();
  return rows;
}
const ids = (): readonly number[] =>
  db.prepare<[], number>("SELECT id FROM entry_key ORDER BY id").pluck().all();
const run = (action: () => void): void => action();

test("the keys of a deletion that was committed go, those of one that was taken back stay", () => {
  const rows = keysOf(6, (no) => no * bucketSpan);
  const keys = new StaleKeys(prepareEntrySql(db), false);
  keys.add(rows.slice(0, 2));
  keys.settle(false);
  expect(keys.isEmpty).toBe(true);
  keys.step(run);
  expect(ids()).toEqual([own, 2, 3, 4, 5, 6, 7]);
  keys.add(rows.slice(2, 4));
  keys.add(rows.slice(5));
  expect(keys.isEmpty).toBe(true); // Not before the commit.
  keys.settle(true);
  expect(keys.isEmpty).toBe(false);
  keys.settle(true); // Those of before do not count again.
  keys.step(run);
  expect(ids()).toEqual([own, 2, 3, 6]);
  expect(keys.isEmpty).toBe(true);
});

test("a step whose commit fails forgets nothing", () => {
  const keys = new StaleKeys(prepareEntrySql(db), false);
  keys.add(keysOf(10, (no) => no));
  keys.settle(true);
  const fails = (): void => {
    throw new Error("the disk is full");
  };
  expect(() => keys.step(fails)).toThrow("the disk is full");
  expect(ids()).toHaveLength(1 + 10);
  expect(keys.isEmpty).toBe(false);
  keys.step(run);
  expect([ids(), keys.isEmpty]).toEqual([[own], true]);
});

describe("a step", () => {
  test("removes two thousand, of one bucket after the other, until none is left", () => {
    const keys = new StaleKeys(prepareEntrySql(db), false);
    // Three to a bucket at a time, so that the buckets fill side by side.
    keys.add(keysOf(4_500, (no) => (no % 3) * bucketSpan + no));
    keys.settle(true);
    const left: number[] = [];
    const bucketsLeft: number[] = [];
    while (!keys.isEmpty) {
      keys.step(run);
      const waiting = ids().filter((id) => id !== own);
      left.push(waiting.length);
      bucketsLeft.push(new Set(waiting.map((id) => id % 3)).size);
    }
    expect(left).toEqual([2_500, 500, 0]);
    expect(bucketsLeft).toEqual([2, 1, 0]);
  });

  test("looks through two thousand where there may be strays, and all of them go", () => {
    keysOf(4_100, (no) => no * 1_000);
    const keys = new StaleKeys(prepareEntrySql(db), true);
    let steps = 0;
    for (; !keys.isEmpty; steps++) keys.step(run);
    expect(ids()).toEqual([own]);
    expect(steps).toBe(6); // Two thousand are looked at, then removed; so are the next, and the rest.
  });
});

test("a million that wait are as many as there may be", () => {
  const keys = new StaleKeys(prepareEntrySql(db), false);
  const row = { key: 1, id: 1 };
  keys.add(Array.from({ length: 999_999 }, () => row));
  keys.settle(true);
  expect(keys.isFull).toBe(false);
  keys.add([row]);
  keys.settle(true);
  expect(keys.isFull).toBe(true);
});
