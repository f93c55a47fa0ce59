// Opening and migrating: each step once, a newer file untouched, damage told apart from other errors.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isCorruption, migrate, openSqlite, type Migration } from "../../src/base/sqlite.ts";
import { tempDir } from "../support/temp-dir.ts";

const first: Migration = (db) => void db.exec("CREATE TABLE a (x INTEGER)");
const second: Migration = (db) => void db.exec("ALTER TABLE a ADD COLUMN y INTEGER");
const broken: Migration = (db) => {
  db.exec("CREATE TABLE half (x INTEGER)");
  throw new Error("interrupted");
};

function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("every store is WAL, without mmap, with foreign keys, at the level asked for", () => {
  using dir = tempDir();
  const levels = [
    ["full", 2],
    ["normal", 1],
  ] as const;
  for (const [sync, level] of levels) {
    const db = openSqlite(join(dir.path, `${sync}.db`), { sync });
    const pragma = (name: string): unknown => db.pragma(name, { simple: true });
    expect([
      pragma("journal_mode"),
      pragma("synchronous"),
      pragma("mmap_size"),
      pragma("foreign_keys"),
    ]).toEqual(["wal", level, 0, 1]);
    db.close();
  }
});

test("migrations run once each, in order", () => {
  using dir = tempDir();
  const path = join(dir.path, "x.db");
  const older = openSqlite(path, { sync: "full" });
  migrate(older, [first]);
  older.exec("INSERT INTO a VALUES (7)");
  older.close();
  const newer = openSqlite(path, { sync: "full" });
  migrate(newer, [first, second]);
  migrate(newer, [first, second]);
  expect(newer.pragma("user_version", { simple: true })).toBe(2);
  expect(newer.prepare("SELECT x, y FROM a").all()).toEqual([{ x: 7, y: null }]);
  newer.close();
});

test("a migration that fails leaves nothing of itself, the ones before stay", () => {
  using dir = tempDir();
  const db = openSqlite(join(dir.path, "x.db"), { sync: "full" });
  expect(() => migrate(db, [first, broken])).toThrow("interrupted");
  expect(db.pragma("user_version", { simple: true })).toBe(1);
  expect(db.prepare("SELECT name FROM sqlite_schema").pluck().all()).toEqual(["a"]);
  migrate(db, [first, second]);
  expect(db.pragma("user_version", { simple: true })).toBe(2);
  db.close();
});

test("a file of a newer release is refused, untouched", () => {
  using dir = tempDir();
  const path = join(dir.path, "x.db");
  const newer = openSqlite(path, { sync: "full" });
  migrate(newer, [first, second]);
  newer.close();
  const before = readFileSync(path);
  const older = openSqlite(path, { sync: "full" });
  expect(thrownBy(() => migrate(older, [first]))).toMatchObject({ code: "DATABASE_NEWER" });
  older.close();
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("read-only: reads beside a writer, writes nothing, makes no file", () => {
  using dir = tempDir();
  const path = join(dir.path, "x.db");
  expect(() => openSqlite(path, { sync: "normal", readonly: true })).toThrow();
  const writer = openSqlite(path, { sync: "normal" });
  migrate(writer, [first]);
  const reader = openSqlite(path, { sync: "normal", readonly: true });
  writer.exec("INSERT INTO a VALUES (7)");
  expect(reader.prepare("SELECT x FROM a").pluck().get()).toBe(7);
  expect(() => reader.exec("INSERT INTO a VALUES (8)")).toThrow(/readonly/);
  reader.close();
  writer.close();
});

test("damage is told apart from other errors", () => {
  using dir = tempDir();
  const garbage = join(dir.path, "garbage.db");
  writeFileSync(garbage, "no database at all, ".repeat(400));
  expect(isCorruption(thrownBy(() => openSqlite(garbage, { sync: "full" })))).toBe(true);

  const torn = join(dir.path, "torn.db");
  const db = openSqlite(torn, { sync: "full" });
  migrate(db, [first]);
  db.exec(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) INSERT INTO a SELECT i FROM n",
  );
  db.close();
  const bytes = readFileSync(torn);
  writeFileSync(torn, bytes.fill(0xff, 4_096, bytes.length));
  const damaged = openSqlite(torn, { sync: "full" });
  expect(isCorruption(thrownBy(() => damaged.prepare("SELECT sum(x) FROM a").get()))).toBe(true);
  expect(isCorruption(thrownBy(() => damaged.exec("SELECT * FROM nowhere")))).toBe(false);
  expect(isCorruption(new Error("other"))).toBe(false);
  expect(isCorruption("text")).toBe(false);
  damaged.close();
});
