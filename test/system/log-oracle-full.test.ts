// A spool that is full: what each policy leaves out is told, exactly, with its reason; nothing else is missing.

import { expect, test } from "vitest";
import { runFullSpool, type Policy } from "../support/log-oracle-full.ts";

const cases: readonly (readonly [Policy, string])[] = [
  ["drop_oldest", "dropped_oldest"],
  ["drop_newest", "spool_full"],
  ["sample", "sampled"],
];

test.for(cases)("%s is told as %s", { timeout: 120_000 }, async ([policy, reason]) => {
  const { unexplained, told, records, missing } = await runFullSpool(policy);
  expect(unexplained).toEqual([]);
  expect(told.get(reason)).toBeGreaterThan(0);
  expect(records).toBeGreaterThan(0);
  expect(missing).toBeGreaterThan(0);
});
