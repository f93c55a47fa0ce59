// A store of before each rotated secret16 had a grace of its own: the one that it knows goes on being accepted.

import { join } from "node:path";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { migrations } from "../../../../src/central/store/engine/migrations.ts";
import { PacedSqliteDialect } from "../../../../src/central/store/engine/paced-dialect.ts";
import { tempDir } from "../../../support/temp-dir.ts";

test("the secret before stays with its grace; a site that was never rotated has none", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  const before = new Kysely<unknown>({
    dialect: new PacedSqliteDialect({ database: openSqlite(path, { sync: "full" }) }),
  });
  const migrator = new Migrator({
    db: before,
    provider: { getMigrations: async () => ({ ...migrations }) },
  });
  expect((await migrator.migrateTo("0020-enrolments")).error).toBeUndefined();
  const at = "2031-05-06T07:00:00.000Z";
  for (const [id, old, until] of [
    [1, "sealed", at],
    [2, null, null],
  ] as const)
    await sql`INSERT INTO deployment_sites
      (id, customer_id, created_by_user_id, name16, secret_sealed, secret_old_sealed, secret_old_until,
        when_created, journal_head, journal_chain)
      VALUES (${id}, 1, 1, ${`name${id}`}, 'now', ${old}, ${until}, ${at}, 0, '')`.execute(before);
  await before.destroy();

  await using store = await openStore(path, () => new Date(at));
  expect(await store.selectFrom("old_secrets").selectAll().execute()).toEqual([
    { id: 1, deployment_site_id: 1, secret_sealed: "sealed", until: at },
  ]);
  const sites = store.selectFrom("deployment_sites").select(["id", "secret_sealed"]).orderBy("id");
  expect(await sites.execute()).toEqual([
    { id: 1, secret_sealed: "now" },
    { id: 2, secret_sealed: "now" },
  ]);
});
