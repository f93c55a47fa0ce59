// A full spool whose operator chose to refuse visitors rather than to serve them without a record.

import { expect, test } from "vitest";
import { runBlocked, warning } from "../support/log-oracle-block.ts";

test("block: whoever is served has a record, the others wait, then are told 503; with central back all are served", async () => {
  const { figures, unrecorded, served, refused, held, ...told } = await runBlocked();
  expect(figures.unexplained).toEqual([]);
  expect(unrecorded).toEqual([]);
  expect(served).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(0);
  expect(held).toBeGreaterThanOrEqual(refused);
  expect(figures.sumsCompared).toBe(1);
  expect(told.readiness).toContain(warning);
  expect(told.readinessAfter).not.toContain(warning);
  expect(told.statusesAfter).not.toContain(503);
}, 600_000);
