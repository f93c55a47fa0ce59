// The store on PostgreSQL: what the customer API and the agents' side promise over SQLite holds there as well, test by test.

import { beforeAll, afterAll, describe, expect, test } from "vitest";
import { onPostgres } from "../../support/any-store.ts";
import { postgresBin, startPostgres, type Postgres } from "../../support/postgres.ts";

const bin = postgresBin();
let postgres: Postgres;

beforeAll(async () => {
  if (bin === undefined) return;
  postgres = await startPostgres(bin);
  onPostgres(postgres);
}, 60_000);
afterAll(async () => postgres?.[Symbol.asyncDispose]());

describe.skipIf(bin === undefined)("on PostgreSQL", async () => {
  test("it is one", async () => {
    await using store = await postgres.store("probe", () => new Date());
    const { epoch } = await store.selectFrom("store").select("epoch").executeTakeFirstOrThrow();
    expect(epoch).toMatch(/^[0-9a-f]{32}$/);
  });
  describe("links", async () => void (await import("../api/links.test.ts")));
});
