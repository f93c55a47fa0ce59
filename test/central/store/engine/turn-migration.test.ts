// A store of before releases were known by instance: what its agents run is told to nobody as a change.

import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { storeBefore } from "../../../support/store-before.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date("2031-05-06T07:00:00.000Z");

test("each instance is known with what it runs", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  const before = await storeBefore(path, "0014-held-bots");
  const at = now().toISOString();
  await sql`INSERT INTO deployment_sites
    (id, customer_id, created_by_user_id, name16, secret_sealed, when_created, journal_head, journal_chain)
    VALUES (1, 1, 1, 'name16', '', ${at}, 0, '')`.execute(before);
  const instances = [
    [1, "one", "1.0.0"],
    [1, "two", "1.1.0"],
    [1, "unknown", ""],
    [9, "of a site that is gone", "1.0.0"],
  ] as const;
  for (const [site, id, version] of instances)
    await sql`INSERT INTO instances
      (deployment_site_id, instance_id, agent_version, applied_seq, last_seen)
      VALUES (${site}, ${id}, ${version}, 0, ${at})`.execute(before);
  await sql`INSERT INTO site_versions VALUES (1, '1.1.0', ${at})`.execute(before);
  await before.destroy();

  await using store = await openStore(path, now);
  const rows = store.selectFrom("instance_versions").selectAll().orderBy("instance_id");
  expect(await rows.execute()).toEqual([
    { deployment_site_id: 1, instance_id: "one", version: "1.0.0", when_seen: at },
    { deployment_site_id: 1, instance_id: "two", version: "1.1.0", when_seen: at },
  ]);
});
