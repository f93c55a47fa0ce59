// A store of before policies had classes of bots: what was said stays, and nothing is said of classes.

import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { storedAccess } from "../../../../src/central/store/journal/site-state.ts";
import { storeBefore } from "../../../support/store-before.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date("2031-05-06T07:00:00.000Z");

test("policies stay as they are, and no site was told of classes", async () => {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  const before = await storeBefore(path, "0028-acme");
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
