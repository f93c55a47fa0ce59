// A store of before bots had digests of their own: each bot is counted and digested with all of its elements, however many pages they are.

import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { changedSetDigest, emptySetDigest } from "../../../../src/core/addresses/set-digest.ts";
import { storeBefore } from "../../../support/store-before.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date("2031-05-06T07:00:00.000Z");

test("bots keep their elements, and know how many and which they are", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  const before = await storeBefore(path, "0006-bot-elements-by-set");
  await sql`INSERT INTO customers (id, name, when_created) VALUES (1, 'one', '')`.execute(before);
  await sql`INSERT INTO domains (id, customer_id, created_by_user_id, name, when_created)
    VALUES (1, 1, 1, 'a.test', '')`.execute(before);
  await sql`INSERT INTO bot_sets (id, domain_id, host, kind, version, count, digest)
    VALUES (1, 1, 'a.test', 'bad', 7, 0, '')`.execute(before);
  // One and a half pages, a page exactly, one element, none.
  const counts = [15_000, 10_000, 1, 0];
  const rangeOf = (no: number): string => `10.${no >> 16}.${(no >> 8) & 255}.${no & 255}`;
  for (const [at, count] of counts.entries()) {
    await sql`INSERT INTO bots (id, bot_set_id, name) VALUES (${at + 1}, 1, ${`bot-${at}`})`.execute(
      before,
    );
    const ranges = JSON.stringify(Array.from({ length: count }, (_, no) => rangeOf(no)));
    await sql`INSERT INTO bot_elements (bot_id, range, family, first, last, bot_set_id)
      SELECT ${at + 1}, value, 4, x'00', x'00', 1 FROM json_each(${ranges})`.execute(before);
  }
  await before.destroy();

  await using store = await openStore(path, now);
  const bots = await store
    .selectFrom("bots")
    .select(["name", "count", "digest"])
    .orderBy("id")
    .execute();
  expect(bots).toEqual(
    counts.map((count, at) => {
      const bot = `bot-${at}`;
      const elements = Array.from({ length: count }, (_, no) => ({ bot, range: rangeOf(no) }));
      return { name: bot, count, digest: changedSetDigest(emptySetDigest, elements, []) };
    }),
  );
  const { left } = await store
    .selectFrom("bot_elements")
    .select((select) => select.fn.countAll<number>().as("left"))
    .executeTakeFirstOrThrow();
  expect(left).toBe(25_001);
  // What the journals were told before is not told anew.
  const set = store.selectFrom("bot_sets").select(["version", "journaled_version", "pending"]);
  expect(await set.execute()).toEqual([{ version: 7, journaled_version: 7, pending: 0 }]);
});
