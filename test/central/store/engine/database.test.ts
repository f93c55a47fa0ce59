// Stores that this release cannot use, and what is said of each.

import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { canMountDisks, SmallDisk } from "../../../support/small-disk.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date(0);

/** With this done to it while it was closed. */
async function reopened(statement: string): Promise<unknown> {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  {
    await using _store = await openStore(path, now);
  }
  const db = openSqlite(path, { sync: "full" });
  db.exec(statement);
  db.close();
  return openStore(path, now).catch((error: unknown) => error);
}

test("a store that knows a migration of a newer release is one of a newer release", async () => {
  expect(
    await reopened("insert into kysely_migration (name, timestamp) values ('9999_later', '2099')"),
  ).toMatchObject({
    code: "DATABASE_NEWER",
    message: expect.stringMatching(
      /central\.db is of a newer release: its schema is at 9999_later, and this release knows \d{4}-[a-z-]+$/,
    ),
    hint: expect.stringMatching(/restore the backup from before the update/),
  });
});

test("a migration that fails by itself is a defect, not a newer release", async () => {
  const last = "(select max(name) from kysely_migration)";
  const error = await reopened(`delete from kysely_migration where name = ${last}`);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toMatchObject({ code: "DATABASE_NEWER" });
});

test.skipIf(!canMountDisks)(
  "a full disk is named by what is refused, and by a start, which works when there is room",
  async () => {
    using dir = tempDir();
    using disk = new SmallDisk("16M");
    disk.mount(join(dir.path, "state"));
    const path = join(disk.at, "central.db");
    {
      await using store = await openStore(path, now);
      disk.fill("for nobody");
      const large = store.transaction().execute(async (tx) => {
        await sql`CREATE TABLE large (content)`.execute(tx);
        await sql`INSERT INTO large VALUES (hex(zeroblob(8000000)))`.execute(tx);
      });
      await expect(large).rejects.toMatchObject({ code: "SQLITE_FULL" });
      disk.clean();
    }
    disk.fill("for nobody");
    await expect(openStore(path, now)).rejects.toMatchObject({
      code: "DISK_FAILED",
      message: expect.stringMatching(
        /^the store .* cannot be opened: .*; its disk is full \(\d+ bytes are free\)$/,
      ),
      hint: expect.stringContaining(`the disk of ${disk.at}`),
    });
    disk.clean();
    await using again = await openStore(path, now);
    expect((await sql`SELECT 1 AS one`.execute(again)).rows).toEqual([{ one: 1 }]);
  },
);
