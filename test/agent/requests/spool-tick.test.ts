// What the spool thread does without being asked: a directory that could not be read at its start is read once it can be.

import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openLaneWriter } from "../../../src/agent/requests/worker/lane-writer.ts";
import { startSpooler, type SpoolClient } from "../../../src/agent/requests/ship/spool-client.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { killableSpooler } from "../../support/killable-spooler.ts";
import { requestRecord } from "../../support/request-records.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

async function start(stateDir: string, bootEpoch: string, health: Health): Promise<SpoolClient> {
  return startSpooler({
    entry: killableSpooler,
    stateDir,
    spoolMax: 2 ** 30,
    name16: "0123456789abcdef",
    fsync: { intervalMs: 5, bytes: 262_144 },
    bootEpoch,
    registry: new Registry(),
    health,
    log: silentLog(),
  });
}

test("what lies in a directory that comes back late is found, though nobody writes or ships", async () => {
  using home = tempDir();
  const [directory, away] = [join(home.path, "spool"), join(home.path, "away")];
  {
    await using spool = await start(home.path, "a".repeat(16), new Health(() => new Date(0)));
    const { init, port } = spool.openLane();
    const writer = openLaneWriter(init, port);
    await until("the lane", () => spool.facts().lanes.some(({ live }) => live));
    for (let id = 1; id <= 20; id++) writer.accept(requestRecord(id));
    await writer.close();
    expect(await spool.balance()).toMatchObject({ accepted: 20, spooled: 20 });
  }
  renameSync(directory, away);
  writeFileSync(directory, "a file where the directory should be");
  const health = new Health(() => new Date(0));
  await using spool = await start(home.path, "b".repeat(16), health);
  expect(spool.facts().balance).toMatchObject({ accepted: 0, spooled: 0 });
  expect(health.list().map(({ code }) => code)).toEqual(["spool_failing"]);
  rmSync(directory);
  renameSync(away, directory);
  await until("it is read", () => spool.facts().balance.spooled === 20);
  expect(spool.facts().balance).toMatchObject({ accepted: 20, committed: 0, dropped: {} });
});
