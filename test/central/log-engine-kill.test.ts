// Request logs in PostgreSQL through kills between insert and mark, of the program and of the server: nothing twice, nothing
// lost, and what was counted is what is there.

import { describe, expect, test } from "vitest";
import { logWay } from "../support/any-logs.ts";
import { judgeLogDatabase, killWriters } from "../support/log-engine-kill.ts";
import { postgresBin, PostgresServer } from "../support/postgres-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const bin = postgresBin();

describe.skipIf(bin === undefined)("kills", () => {
  test("five kills in the middle of batches: every number of each lane is there once, up to its mark", async () => {
    await using server = await PostgresServer.start(bin ?? "", { isDurable: true });
    using dir = tempDir();
    const way = logWay({ bin: bin ?? "", server }, "killed");
    const run = { server, way, directory: dir.path, kills: 5, onKill: () => undefined };
    const { told, ofServers } = await killWriters(run);
    expect(ofServers).toBe(2);
    const client = server.client("killed");
    await client.connect();
    try {
      const marks = await judgeLogDatabase(client);
      expect([...told.keys()].sort()).toEqual(["1", "2", "3"]);
      for (const [no, through] of told) expect(marks.get(no)).toBeGreaterThanOrEqual(through);
      // The judge sees what it is there for.
      await client.query("UPDATE lane SET mark = mark + 1 WHERE no = 1");
      await expect(judgeLogDatabase(client)).rejects.toThrow(/lane 1: \d+ numbers/);
      await client.query("UPDATE lane SET mark = mark - 1 WHERE no = 1");
      await client.query("DELETE FROM bucket WHERE change = (SELECT max(change) FROM bucket)");
      await expect(judgeLogDatabase(client)).rejects.toThrow(/are counted as/);
    } finally {
      await client.end();
    }
  }, 300_000);
});
