// Small writes together: durable when told so, and one that fails harms no other. And queries that leave the event loop its turns.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { SharedCommits } from "../../../../src/central/store/engine/shared-commits.ts";
import { tempDir } from "../../../support/temp-dir.ts";

test("many are written in one transaction; the one that fails is told, the others are kept", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  await using store = await openStore(path, () => new Date());
  await using other = await openStore(path, () => new Date());
  const commits = new SharedCommits(store);
  const transactions = new Set<unknown>();
  const put = async (no: number): Promise<void> =>
    commits.run(async (tx) => {
      transactions.add(tx);
      await tx.insertInto("dead_bots").values({ bot_id: no }).execute();
    });
  // On SQLite also those share it that are on the list of READ COMMITTED.
  const listed = commits.run(async (tx) => void transactions.add(tx), "reports");
  await Promise.all([...[1, 2, 3].map(put), listed]);
  expect(transactions.size).toBe(1);
  const outcomes = await Promise.allSettled([4, 5, 2, 6].map(put));
  expect(outcomes.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "fulfilled",
  ]);
  const rows = await other.selectFrom("dead_bots").selectAll().orderBy("bot_id").execute();
  expect(rows.map(({ bot_id: id }) => id)).toEqual([1, 2, 3, 4, 5, 6]);
});

test("thousands of queries that wait for each other do not hold up a timer", async () => {
  using dir = tempDir();
  await using store = await openStore(join(dir.path, "central.db"), () => new Date());
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const began = performance.now();
  const ask = async (): Promise<void> => {
    while (performance.now() - began < 1_500)
      await store.selectFrom("domains").selectAll().execute();
  };
  await Promise.all(Array.from({ length: 50 }, ask));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(5);
});
