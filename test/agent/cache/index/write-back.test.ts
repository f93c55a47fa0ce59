// What is written back behind commits: the WAL by the checkpointer thread, the keys of entries that are gone in steps of their own.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite, type Sqlite } from "../../../../src/base/sqlite.ts";
import { Checkpointer } from "../../../../src/agent/cache/index/checkpointer.ts";
import { Checkpoints, type WalLengths } from "../../../../src/agent/cache/index/checkpoints.ts";
import { ensureDirectory } from "../../../../src/base/durable-file.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { clear, isHit, keyOf, openedRig, store, tamper } from "../rig.ts";

const checkpointerEntry = new URL("../../../../src/agent/checkpointer.ts", import.meta.url);
const pageBytes = 4_096;

/** A file by the name of the index, written by nobody else. */
function openPages(directory: string): Sqlite {
  const db = openSqlite(join(directory, "index.db"), { sync: "normal" });
  db.exec("CREATE TABLE page (id INTEGER PRIMARY KEY, bytes BLOB)");
  return db;
}

/** Pages for the WAL: so many in one commit. */
function writePages(db: Sqlite, count: number): void {
  db.prepare<[number]>("INSERT INTO page (bytes) VALUES (zeroblob(?))").run(count * pageBytes);
}

const lengths = (db: Sqlite): WalLengths | undefined =>
  db.prepare<[], WalLengths>("PRAGMA wal_checkpoint(NOOP)").get();

test("a long WAL is written back beside commits, background work waits meanwhile, and the WAL begins anew", async () => {
  using dir = tempDir();
  await ensureDirectory(dir.path);
  await using thread = new Checkpointer(checkpointerEntry);
  using db = closing(openPages(dir.path));
  let ended = 0;
  const checkpoints = new Checkpoints(db.db, {
    run: () => thread.run(dir.path),
    onEnd: () => void ended++,
  });
  writePages(db.db, 16_300);
  expect(checkpoints.mustWait()).toBe(false);
  writePages(db.db, 300);
  expect(checkpoints.mustWait()).toBe(true);
  await until("the run has ended", () => ended === 1);
  await until("nothing is waited for", () => !checkpoints.mustWait());
  expect(ended).toBeLessThanOrEqual(2);
  writePages(db.db, 1);
  expect(lengths(db.db)?.log).toBeLessThan(100);
});

test("a reader that stays, and a thread that fails, hold nothing up for good", async () => {
  using dir = tempDir();
  await ensureDirectory(dir.path);
  using db = closing(openPages(dir.path));
  const runs: PromiseWithResolvers<WalLengths | undefined>[] = [];
  let ended = 0;
  const checkpoints = new Checkpoints(db.db, {
    run: () => {
      runs.push(Promise.withResolvers());
      return runs.at(-1)?.promise ?? Promise.resolve(undefined);
    },
    onEnd: () => void ended++,
  });
  writePages(db.db, 33_000);
  expect(checkpoints.mustWait()).toBe(true);
  runs[0]?.resolve({ log: 33_100, checkpointed: 7 });
  await until("the held run has ended", () => ended === 1);
  expect(checkpoints.mustWait()).toBe(false);
  expect(runs).toHaveLength(1);
  writePages(db.db, 16_600);
  expect(checkpoints.mustWait()).toBe(true);
  runs[1]?.resolve(undefined);
  await until("the failed run has ended", () => ended === 2);
  expect(checkpoints.mustWait()).toBe(false);
  expect(runs).toHaveLength(2);
});

test("a reader that has left holds nothing up: the WAL that began anew is written back when it is long", async () => {
  using dir = tempDir();
  await ensureDirectory(dir.path);
  using db = closing(openPages(dir.path));
  let runs = 0;
  let ended = 0;
  const checkpoints = new Checkpoints(db.db, {
    run: async () => {
      runs++;
      return undefined;
    },
    onEnd: () => void ended++,
  });
  writePages(db.db, 33_000);
  checkpoints.mustWait();
  await until("the run has failed", () => ended === 1);
  db.db.pragma("wal_checkpoint(RESTART)");
  writePages(db.db, 1);
  checkpoints.mustWait();
  writePages(db.db, 16_600);
  checkpoints.mustWait();
  expect(runs).toBe(2);
});

test("a checkpointer that cannot be started fails its run, and the next", async () => {
  using dir = tempDir();
  await using thread = new Checkpointer(new URL("../nothing-is-here.ts", import.meta.url));
  expect(await thread.run(dir.path)).toBe(undefined);
  expect(await thread.run(dir.path)).toBe(undefined);
});

test("the keys of what is gone go too, also those that a crash had left", async () => {
  using dir = tempDir();
  const key = keyOf({ path: "/kept" });
  {
    await using rig = await openedRig(dir.path);
    for (let no = 0; no < 300; no++) await store(rig.cache, keyOf({ path: `/x/${no}` }));
    await store(rig.cache, key);
    await clear(rig, ["path:x"]).gone;
    await until("no key is without its entry", () => strays(dir.path) === 0);
    expect(isHit(rig.cache, key)).toBe(true);
  }
  tamper(dir.path, "INSERT INTO entry_key SELECT key, id + 1000 FROM entry");
  expect(strays(dir.path)).toBeGreaterThan(0);
  await using rig = await openedRig(dir.path);
  await until("those that were left are gone", () => strays(dir.path) === 0);
  expect(isHit(rig.cache, key)).toBe(true);
  expect((await rig.client.check()).problems).toEqual([]);
  tamper(dir.path, "DELETE FROM entry_key");
  expect((await rig.client.check()).problems.join()).toContain("not found by their keys");
});

function strays(stateDir: string): number {
  using index = closing(
    openSqlite(join(stateDir, "cache/index.db"), { sync: "normal", readonly: true }),
  );
  const sql = "SELECT count(*) FROM entry_key WHERE id NOT IN (SELECT id FROM entry)";
  return index.db.prepare<[], number>(sql).pluck().get() ?? 0;
}

function closing(db: Sqlite): { readonly db: Sqlite } & Disposable {
  return { db, [Symbol.dispose]: () => db.close() };
}
