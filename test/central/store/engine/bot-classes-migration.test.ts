// A store of before policies had classes of bots: what was said stays, and nothing is said of classes.

import { join } from "node:path";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { migrations } from "../../../../src/central/store/engine/migrations.ts";
import { PacedSqliteDialect } from "../../../../src/central/store/engine/paced-dialect.ts";
import { storedAccess } from "../../../../src/central/store/journal/site-state.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date("2031-05-06T07:00:00.000Z");

test("policies stay as they are, and no site was told of classes", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  const before = new Kysely<unknown>({
    dialect: new PacedSqliteDialect({ database: openSqlite(path, { sync: "full" }) }),
  });
  const migrator = new Migrator({
    db: before,
    provider: { getMigrations: async () => ({ ...migrations }) },
  });
  expect((await migrator.migrateTo("0028-acme")).error).toBeUndefined();
  await sql`INSERT INTO customers (id, name, when_created)
    VALUES (1, 'a', ${now().toISOString()}), (2, 'b', ${now().toISOString()})`.execute(before);
  await sql`INSERT INTO general_policies VALUES (1, 1), (2, NULL)`.execute(before);
  await sql`INSERT INTO domain_policies VALUES (1, 'a.org', 0)`.execute(before);
  await before.destroy();

  await using store = await openStore(path, now);
  expect(await storedAccess(store, 1)).toEqual({
    general: 1,
    perDomain: new Map([["a.org", 0]]),
    classes: { general: {}, perDomain: new Map([["a.org", {}]]) },
  });
  expect(await storedAccess(store, 2)).toMatchObject({ general: null, perDomain: new Map() });
  expect(await store.selectFrom("told_classes").selectAll().execute()).toEqual([]);
});
