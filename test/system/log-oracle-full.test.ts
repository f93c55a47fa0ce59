// A spool that is full: what each policy leaves out is told, exactly, with its reason; nothing else is missing.

import { expect, test } from "vitest";
import { straceHint, straceMissing } from "../support/log-oracle-disk.ts";
import { runFullSpool, runKillInDrop, type Policy } from "../support/log-oracle-full.ts";

const cases: readonly (readonly [Policy, readonly string[]])[] = [
  // Where all that is there is on its way to central, nothing old may go: the newest are told as `spool_full`.
  ["drop_oldest", ["dropped_oldest", "spool_full"]],
  ["drop_newest", ["spool_full"]],
  ["sample", ["sampled"]],
];

test.for(cases)("%s is told as %s", { timeout: 600_000 }, async ([policy, reasons]) => {
  const { unexplained, told, records, missing } = await runFullSpool(policy);
  expect(unexplained).toEqual([]);
  expect(Math.max(...reasons.map((reason) => told.get(reason) ?? 0))).toBeGreaterThan(0);
  expect(records).toBeGreaterThan(0);
  expect(missing).toBeGreaterThan(0);
});

test.skipIf(straceMissing)(
  `a kill in the middle of a drop is told as the drop (${straceHint})`,
  async () => {
    const { unexplained, told } = await runKillInDrop({});
    expect(unexplained).toEqual([]);
    expect(told.get("dropped_oldest")).toBeGreaterThan(0);
  },
  600_000,
);
