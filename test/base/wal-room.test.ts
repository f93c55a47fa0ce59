// Room in a WAL: commits need no new block while it lasts, and whatever ends the process, the database is whole.

import { copyFileSync, existsSync, readFileSync, renameSync, statSync } from "node:fs";
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

test("its blocks outlive a closed database, and what SQLite had written there is read by nobody", () => {
  using dir = tempDir();
  const path = join(dir.path, "a.db");
  const inodes: bigint[] = [];
  for (let round = 0; round < 5; round++) {
    const room = new WalRoom(path, 2 * mib);
    room.lay();
    const db = opened(path);
    expect(rows(db)).toBe(round * 2);
    add(db);
    room.take();
    add(db);
    const wal = statSync(`${path}-wal`, { bigint: true });
    expect([wal.size, wal.nlink]).toEqual([BigInt(2 * mib), 2n]);
    inodes.push(wal.ino);
    db.close();
    expect(existsSync(`${path}-wal`)).toBe(false);
    expect(statSync(`${path}.wal-room`).blocks * 512).toBeGreaterThanOrEqual(2 * mib);
  }
  expect(new Set(inodes).size).toBe(1);

  // Somebody puts an older copy of the database back: nothing of the room comes into it.
  const db = opened(join(dir.path, "other.db"));
  add(db);
  db.close();
  renameSync(join(dir.path, "other.db"), path);
  new WalRoom(path, 2 * mib).lay();
  const restored = opened(path);
  expect(rows(restored)).toBe(1);
  restored.close();
});

test("a WAL that a kill left is not touched, and one that is set aside keeps what it has", () => {
  using dir = tempDir();
  const path = join(dir.path, "a.db");
  using stack = new DisposableStack();
  const db = opened(path);
  stack.defer(() => db.close());
  const room = new WalRoom(path, mib);
  room.take();
  add(db);
  const before = readFileSync(`${path}-wal`);
  new WalRoom(path, mib).lay();
  expect(readFileSync(`${path}-wal`).equals(before)).toBe(true);
  renameSync(`${path}-wal`, `${path}.aside`);
  room.leave();
  new WalRoom(path, mib).lay();
  expect(existsSync(`${path}-wal`)).toBe(false);
  expect(readFileSync(`${path}.aside`).equals(before)).toBe(true);
});
