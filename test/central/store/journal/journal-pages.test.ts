// Pages of several journals read together: each gets its own entries, with the bodies that they share; one whose body is gone is not told without it.

import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { appendJournal } from "../../../../src/central/store/journal/journal.ts";
import { JournalPages } from "../../../../src/central/store/journal/journal-pages.ts";
import { seedSite } from "../../../support/agent-side.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date("2031-05-06T07:08:09.010Z");

async function open() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const store = stack.use(await openStore(join(dir, "central.db"), now));
  const { siteId: one } = await seedSite(store, "00000000000000a1");
  const { siteId: other } = await seedSite(store, "00000000000000b2");
  const append = async (siteIds: readonly number[], name: string): Promise<void> => {
    const body = { domains: [{ name, sub_domains: [] }] };
    await store
      .transaction()
      .execute(async (tx) =>
        appendJournal(tx, siteIds, "domains.changed", body, now().toISOString()),
      );
  };
  const held = stack.move();
  return { store, one, other, append, [Symbol.asyncDispose]: async () => held.disposeAsync() };
}

const told = (entries: readonly { readonly seq: number; readonly body: unknown }[]) =>
  entries.map(({ seq, body }) => [seq, Object(body)["domains"][0].name] as const);

test("those who ask at once get each what is behind their own place", async () => {
  await using rig = await open();
  await rig.append([rig.one, rig.other], "both.test");
  await rig.append([rig.other], "other.test");
  const pages = new JournalPages(rig.store);
  const [all, rest, none] = await Promise.all([
    pages.after(rig.other, 0),
    pages.after(rig.other, 1),
    pages.after(rig.one, 1),
  ]);
  const own = await pages.after(rig.one, 0);
  expect([told(all.entries), told(rest.entries), told(none.entries), told(own.entries)]).toEqual([
    [
      [1, "both.test"],
      [2, "other.test"],
    ],
    [[2, "other.test"]],
    [],
    [[1, "both.test"]],
  ]);
  expect([all, rest, none, own].every(({ isLast }) => isLast)).toBe(true);
});

test("an entry whose body the store has lost is not told without it", async () => {
  await using rig = await open();
  await rig.append([rig.one], "one.test");
  await rig.append([rig.other], "other.test");
  await sql`PRAGMA foreign_keys = OFF`.execute(rig.store);
  await rig.store.deleteFrom("journal_bodies").where("body", "like", "%one.test%").execute();
  const pages = new JournalPages(rig.store);
  await expect(pages.after(rig.one, 0)).rejects.toThrow(
    /^the journal lacks the body [0-9a-f]{64}$/,
  );
  expect(told((await pages.after(rig.other, 0)).entries)).toEqual([[1, "other.test"]]);
});
