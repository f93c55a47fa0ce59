// Room in a WAL: commits need no new block while it lasts, and whatever ends the process, the database is whole.

import { copyFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite, type Sqlite } from "../../src/base/sqlite.ts";
import { WalRoom } from "../../src/base/wal-room.ts";
import { tempDir } from "../support/temp-dir.ts";

const mib = 2 ** 20;

function opened(path: string): Sqlite {
  const db = openSqlite(path, { sync: "full" });
  db.exec("CREATE TABLE IF NOT EXISTS t (no INTEGER PRIMARY KEY, text TEXT)");
  return db;
}
const add = (db: Sqlite): unknown => db.prepare("INSERT INTO t (text) VALUES (?)").run("words");
const rows = (db: Sqlite): number => Number(db.prepare("SELECT count(*) FROM t").pluck().get());

test("commits are written over its blocks, and a process that is killed then leaves all of them", () => {
  using dir = tempDir();
  const path = join(dir.path, "a.db");
  using stack = new DisposableStack();
  const db = opened(path);
  stack.defer(() => db.close());
  add(db);
  new WalRoom(path, 2 * mib).take();
  const before = statSync(`${path}-wal`);
  expect([before.size, before.blocks * 512 >= 2 * mib]).toEqual([2 * mib, true]);
  for (let no = 0; no < 100; no++) add(db);
  const after = statSync(`${path}-wal`);
  expect([after.size, after.blocks]).toEqual([before.size, before.blocks]);

  // What is on the disk now, as a kill leaves it: zeros behind the last frame.
  const left = join(dir.path, "left.db");
  for (const end of ["", "-wal"]) copyFileSync(`${path}${end}`, `${left}${end}`);
  const next = opened(left);
  stack.defer(() => next.close());
  expect(rows(next)).toBe(101);
  expect(next.pragma("quick_check(1)", { simple: true })).toBe("ok");
});

test("it is looked at once a minute, and taken only where the disk has much more", () => {
  using dir = tempDir();
  const path = join(dir.path, "a.db");
  using stack = new DisposableStack();
  const db = opened(path);
  stack.defer(() => db.close());
  add(db);
  const { size } = statSync(`${path}-wal`);
  new WalRoom(path, 2 ** 50).take();
  expect(statSync(`${path}-wal`).size).toBe(size);
  const room = new WalRoom(path, mib);
  room.take(0);
  db.pragma("wal_checkpoint(TRUNCATE)");
  add(db);
  room.take(59_000);
  expect(statSync(`${path}-wal`).size).toBeLessThan(mib);
  room.take(60_000);
  expect(statSync(`${path}-wal`).size).toBe(mib);
  new WalRoom(join(dir.path, "missing/a.db"), mib).take();
});
