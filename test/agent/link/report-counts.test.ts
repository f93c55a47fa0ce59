// Counts of reports reach central once: the same batch is sent until central has acknowledged it, on a channel and by requests.

import { expect, test } from "vitest";
import type { CountedBatch } from "../../../src/wire/channel.ts";
import { FakeCentral } from "../../support/fake-central.ts";
import { clear, Effects, startRig, type Rig } from "../../support/link-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

/** Counts as the agent does: the next batch when the one before is acknowledged. */
function startCounting(central: FakeCentral, dir: string): Rig {
  const rig: Rig = startRig({
    central,
    dir,
    effects: new Effects(),
    timings: { reportIntervalMs: 10 },
    counted: () => ({ counted: batchAfter(rig.counted.at(-1)) }),
  });
  return rig;
}

const batchAfter = (last: CountedBatch | undefined): CountedBatch => ({
  boot_id: "boot",
  seq: (last?.seq ?? 0) + 1,
});

const sentSeqs = ({ reports }: FakeCentral): readonly (number | undefined)[] =>
  reports.map(({ counted }) => counted?.seq);

test("a lost acknowledgement: the same batch again, then the next", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.loseAcks = 2;
  await using rig = startCounting(central, dir.path);
  await until("two acknowledged batches", () => rig.counted.length >= 2);
  expect(sentSeqs(central).slice(0, 4)).toEqual([1, 1, 1, 2]);
  expect(rig.counted.slice(0, 2).map(({ seq }) => seq)).toEqual([1, 2]);
});

test("by requests: a report waits for the answer to the one before", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.upgradeStatus = 404;
  const answer = central.holdReports();
  await using _rig = startCounting(central, dir.path);
  await until("a report", () => central.reports.length > 0);
  for (let n = 1; n <= 20; n++) {
    central.append("cache.clear", clear(`c${n}`));
    await until("its receipt", () => central.receipts.length >= n);
  }
  expect(central.reports.length).toBe(1);
  answer(204);
  await until("the next", () => central.reports.length > 1);
  expect(sentSeqs(central).slice(0, 2)).toEqual([1, 2]);
});

test("by requests: one that central refuses is left out, and its batch comes with the next", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.upgradeStatus = 404;
  const answer = central.holdReports();
  await using rig = startCounting(central, dir.path);
  await until("a report", () => central.reports.length > 0);
  answer(503);
  await until("an acknowledged batch", () => rig.counted.length > 0);
  expect(sentSeqs(central).slice(0, 2)).toEqual([1, 1]);
  expect(rig.counted[0]?.seq).toBe(1);
  expect(rig.link.status()).toMatchObject({ state: "polling", last_error: null });
});

test("by requests: the answer acknowledges", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  central.faults.upgradeStatus = 404;
  await using rig = startCounting(central, dir.path);
  await until("three acknowledged batches", () => rig.counted.length >= 3);
  expect(sentSeqs(central).slice(0, 3)).toEqual([1, 2, 3]);
  expect(central.hellos).toEqual([]);
});
