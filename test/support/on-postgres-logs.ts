// Test files run once more with request logs in PostgreSQL: whatever they promise of files holds there as well.

import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { logDatabasesMade, logsOnPostgres, meanLogsOnPostgres } from "./any-logs.ts";
import type { TestFile } from "./on-postgres.ts";
import { postgresBin, PostgresServer } from "./postgres-server.ts";

/** `files` import them: their tests become tests of the file that calls this. Skipped, and seen to be, where PostgreSQL is not installed. */
export function testLogsOnPostgres(files: Readonly<Record<string, TestFile>>): void {
  vi.setConfig({ testTimeout: 300_000 }); // Each statement is a way to another process.
  meanLogsOnPostgres();
  const bin = postgresBin();
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    if (bin === undefined) return;
    server = await PostgresServer.start(bin);
    logsOnPostgres({ bin, server });
  }, 120_000);
  afterAll(async () => {
    await server?.end("immediate"); // Nobody needs what it would write of a hundred databases.
    await server?.[Symbol.asyncDispose]();
  }, 60_000);
  describe.skipIf(bin === undefined)("request logs in PostgreSQL", () => {
    for (const [name, load] of Object.entries(files))
      describe(name, async () => void (await load()));
    test("all of that was there", () => {
      expect(logDatabasesMade()).toBeGreaterThan(1);
    });
  });
}
