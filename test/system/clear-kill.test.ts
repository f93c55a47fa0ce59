// kill -9 of the agent during fills and clears: nothing cleared is served, the index is whole after each restart. `npm run bench -- clear-kill` kills 200 times.

import { expect, test } from "vitest";
import { runClearKill } from "../support/clear-kill.ts";

const kills = 15;

test(`${kills} kills under load: what was cleared stays cleared`, async () => {
  const { violations, ...counts } = await runClearKill(kills);
  expect(violations).toEqual([]);
  expect(counts.kills).toBe(kills);
  expect(counts.clears).toBeGreaterThan(kills);
  expect(counts.hits).toBeGreaterThan(kills);
}, 600_000);
