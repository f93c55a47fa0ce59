// A store of before each rotated secret16 had a grace of its own: the one that it knows goes on being accepted.

import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { storeBefore } from "../../../support/store-before.ts";
import { tempDir } from "../../../support/temp-dir.ts";

test("the secret before stays with its grace; a site that was never rotated has none", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  const before = await storeBefore(path, "0020-enrolments");
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
