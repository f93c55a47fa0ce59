// Test files run once more over PostgreSQL: whatever they promise over SQLite holds there as well.

import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { meanPostgres, onPostgres } from "./any-store.ts";
import { startPostgres, type Postgres, type PostgresOptions } from "./postgres.ts";
import { postgresBin } from "./postgres-server.ts";

export type TestFile = () => Promise<unknown>;

/**
 * `files` import them: their tests become tests of the file that calls this. Skipped, and seen to be, where PostgreSQL is not installed. With several `centrals` each call of the
 * customer API is answered by any of them.
 */
export function testOnPostgres(
  files: Readonly<Record<string, TestFile>>,
  centrals = 1,
  options: PostgresOptions = {},
): void {
  vi.setConfig({ testTimeout: 300_000 }); // Each statement is a way to another process.
  meanPostgres();
  const bin = postgresBin();
  let postgres: Postgres | undefined;
  beforeAll(async () => {
    if (bin === undefined) return;
    postgres = await startPostgres(bin, options);
    onPostgres(postgres, centrals);
  }, 120_000);
  afterAll(async () => postgres?.[Symbol.asyncDispose](), 60_000);
  describe.skipIf(bin === undefined)("on PostgreSQL", () => {
    for (const [name, load] of Object.entries(files))
      describe(name, async () => void (await load()));
    test("all of that was there", () => {
      expect(postgres?.databases).toBeGreaterThan(1);
    });
  });
}
