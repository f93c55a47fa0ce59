// A store of before variants were counted: what was told of days on which they were held back stays told.

import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { storeBefore } from "../../../support/store-before.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date("2031-05-06T07:00:00.000Z");

test("days of before have their numbers, and whether they were told", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  const before = await storeBefore(path, "0029-policy-classes");
  const at = now().toISOString();
  await sql`INSERT INTO customers (id, name, when_created) VALUES (1, 'ada', ${at})`.execute(
    before,
  );
  await sql`INSERT INTO domains (id, customer_id, created_by_user_id, name, when_created)
    VALUES (1, 1, 1, 'www.example.com', ${at})`.execute(before);
  await sql`INSERT INTO image_blocks VALUES (1, '2031-05-05', 7, ${at}), (1, '2031-05-06', 3, NULL)`.execute(
    before,
  );
  await before.destroy();

  await using store = await openStore(path, now);
  const rows = store.selectFrom("image_days").selectAll().orderBy("day");
  expect(await rows.execute()).toEqual([
    { domain_id: 1, day: "2031-05-05", made: 0, blocked: 7, when_told: at },
    { domain_id: 1, day: "2031-05-06", made: 0, blocked: 3, when_told: null },
  ]);
});
