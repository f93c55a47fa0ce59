// 20,000 cases of the same answer, by seeds that are always the same and by one of this run; and the faults that the comparison must find.

import { randomInt } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Difference, Ground, playScene, type SceneTotals } from "./compare.ts";
import { plantedFaults } from "./planted.ts";

/** Each of some 150 cases. */
const scenesOfAlways = 110;
const scenesOfThisRun = 30;

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(async () => ground[Symbol.asyncDispose]());

async function play(from: number, scenes: number): Promise<SceneTotals> {
  const totals: SceneTotals = { cases: 0, quick: 0, byStatus: new Map() };
  for (let seed = from; seed < from + scenes; seed++) await playScene(ground, seed, totals);
  return totals;
}

test("lane and pipeline answer alike", { timeout: 600_000 }, async () => {
  const { cases, quick, byStatus } = await play(1, scenesOfAlways);
  expect(cases).toBeGreaterThan(15_000);
  expect(quick).toBeGreaterThan(cases / 5);
  // Each kind of answer was there.
  for (const status of [
    200, 203, 204, 206, 301, 302, 304, 307, 308, 403, 404, 410, 421, 429, 500, 503,
  ])
    expect(byStatus.get(status), `${status}`).toBeGreaterThan(0);
});

test("lane and pipeline answer alike, by chance", { timeout: 600_000 }, async () => {
  const seed = randomInt(1_000_000, 2 ** 31);
  process.stdout.write(`same-answer: seeds from ${seed}\n`);
  const { cases } = await play(seed, scenesOfThisRun);
  expect(cases).toBeGreaterThan(2_000);
});

test.each(plantedFaults)("$name is found", { timeout: 600_000 }, async ({ parts }) => {
  const totals: SceneTotals = { cases: 0, quick: 0, byStatus: new Map() };
  const found = async (): Promise<void> => {
    for (let seed = 1; seed <= scenesOfAlways; seed++) await playScene(ground, seed, totals, parts);
  };
  await expect(found()).rejects.toThrow(Difference);
});
