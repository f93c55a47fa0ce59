// Where there is nothing to look for nothing is asked: `in ()` means "none" to SQLite and is a syntax error to PostgreSQL.

import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from "kysely";
import { expect, test } from "vitest";
import { overlappingElements } from "../../../../src/central/store/bots/bot-checks.ts";
import type { Store, Tx } from "../../../../src/central/store/engine/database.ts";
import type { StoreTables } from "../../../../src/central/store/engine/schema.ts";
import { domainsBody } from "../../../../src/central/store/journal/site-state.ts";
import { parseRange, type IpRange } from "../../../../src/core/addresses/ip.ts";

/** A PostgreSQL that holds nothing, and what it was asked. */
function empty(): { readonly store: Store; readonly asked: string[] } {
  const asked: string[] = [];
  const store = new Kysely<StoreTables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => void asked.push(query.sql),
  });
  return { store, asked };
}

const range = (): IpRange => {
  const parsed = parseRange("192.0.2.0/24");
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.range;
};
const host = { domainId: 1, main: "a.test", host: "www.a.test" };
const inTransaction = async <T>(store: Store, action: (tx: Tx) => Promise<T>): Promise<T> =>
  store.transaction().execute(action);

test.each<readonly [string, (store: Store) => Promise<unknown>]>([
  ["domains of a site that has none", async (store) => domainsBody(store, 1)],
  [
    "overlaps where the other list has nothing",
    async (store) =>
      inTransaction(store, (tx) => overlappingElements({ tx }, host, "vip", range(), 9)),
  ],
])("%s", async (_what, ask) => {
  const { store, asked } = empty();
  await ask(store);
  expect(asked.length).toBeGreaterThan(0);
  for (const text of asked) expect(text).not.toMatch(/in \(\)/);
});
