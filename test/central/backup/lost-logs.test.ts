// Request logs that a restored central lacks: gaps that agents tell of them get the reason.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../../src/base/sqlite.ts";
import { LogStore } from "../../../src/central/agents/log-store.ts";
import { tempDir } from "../../support/temp-dir.ts";

const day = "2030-01-15";

/** As agents send it. */
function append(directory: string, laneNo: number, from: number, to: number, reason: string): void {
  using store = new LogStore(directory, () => undefined);
  const line = JSON.stringify({ gap: { from_seq: from, to_seq: to, reason } });
  store.append([
    {
      siteId: 1,
      lane: { epoch: "00000000000000e1", no: laneNo },
      firstSeq: from,
      lastSeq: to,
      encoding: "identity",
      body: Buffer.from(`${line}\n`),
      nowMs: Date.parse(day),
    },
  ]);
}

function reasons(directory: string): unknown[] {
  const db = openSqlite(join(directory, `${day}.db`), { sync: "normal", readonly: true });
  try {
    return db.prepare("SELECT lane_id, from_seq, to_seq, reason FROM gap ORDER BY id").raw().all();
  } finally {
    db.close();
  }
}

test("what an agent has no more is lost in the restore, where there was one; other reasons stay", () => {
  using dir = tempDir();
  append(dir.path, 1, 1, 5, "released");
  writeFileSync(join(dir.path, "restored"), "{}");
  append(dir.path, 2, 1, 5, "released");
  append(dir.path, 2, 6, 6, "crash");
  expect(reasons(dir.path)).toEqual([
    [1, 1, 5, "released"],
    [2, 1, 5, "lost_in_restore"],
    [2, 6, 6, "crash"],
  ]);
});
