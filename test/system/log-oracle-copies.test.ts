// A state directory that was rolled back, and one that two agents go on from: nothing is counted twice, and every loss is told.

import { expect, test } from "vitest";
import { runCloned, runRolledBack } from "../support/log-oracle-copies.ts";

test("rolled back: what central has is not sent again", async () => {
  const { unexplained, records, missing } = await runRolledBack();
  expect(unexplained).toEqual([]);
  expect(records).toBeGreaterThan(0);
  expect(missing).toBe(0); // It was all there before the copy came back.
}, 600_000);

test("cloned: both are heard, nothing of the backlog comes twice", async () => {
  const { unexplained, records } = await runCloned();
  expect(unexplained).toEqual([]);
  expect(records).toBeGreaterThan(0);
}, 600_000);
