// Copies of SQLite files: consistent, private, whole in one file; what is damaged is not called a copy.

import { closeSync, existsSync, openSync, readdirSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { copySqlite } from "../../src/base/sqlite-copy.ts";
import { openSqlite } from "../../src/base/sqlite.ts";
import { tempDir } from "../support/temp-dir.ts";

const never = new AbortController().signal;
const rows = 2_000;

function filled(path: string): void {
  const db = openSqlite(path, { sync: "full" });
  db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT); CREATE INDEX by_word ON t (word)");
  const insert = db.prepare<[string]>("INSERT INTO t (word) VALUES (?)");
  db.transaction(() => {
    for (let no = 0; no < rows; no++) insert.run(`word ${no}`.padEnd(100));
  })();
  db.close();
}

function count(path: string): unknown {
  const db = openSqlite(path, { sync: "full", readonly: true });
  try {
    return db.prepare("SELECT count(*) FROM t").pluck().get();
  } finally {
    db.close();
  }
}

test.each([true, false])(
  "a sound file is copied as it was when it began, checked %s",
  async (checked) => {
    using dir = tempDir();
    const [from, to] = [join(dir.path, "from.db"), join(dir.path, "to.db")];
    filled(from);
    const writer = openSqlite(from, { sync: "full" });
    const copying = copySqlite(from, to, { checked, stop: never });
    writer.exec("DELETE FROM t");
    await copying;
    writer.close();
    expect(count(to)).toBe(rows);
    expect(statSync(to).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir.path).filter((name) => name.startsWith("to.db"))).toEqual(["to.db"]);
  },
);

test("a damaged file is told where it is looked at", async () => {
  using dir = tempDir();
  const from = join(dir.path, "from.db");
  filled(from);
  const file = openSync(from, "r+");
  // Pages of the table and of its index.
  for (let page = 5; page < 40; page++)
    writeSync(file, Buffer.alloc(512, 0xa5), 0, 512, page * 4_096);
  closeSync(file);
  const copied = copySqlite(from, join(dir.path, "one.db"), { checked: true, stop: never });
  await expect(copied).rejects.toMatchObject({ code: "STORE_DAMAGED" });
  await copySqlite(from, join(dir.path, "two.db"), { checked: false, stop: never });
  expect(existsSync(join(dir.path, "two.db"))).toBe(true);
});

test("it ends early where it is told to, and a file that is not there is not made", async () => {
  using dir = tempDir();
  const from = join(dir.path, "from.db");
  filled(from);
  const stop = AbortSignal.abort(new Error("enough"));
  await expect(copySqlite(from, join(dir.path, "to.db"), { checked: true, stop })).rejects.toThrow(
    "enough",
  );
  const none = join(dir.path, "none.db");
  const copied = copySqlite(none, join(dir.path, "x.db"), { checked: true, stop: never });
  await expect(copied).rejects.toThrow("unable to open");
  expect(existsSync(none)).toBe(false);
});
