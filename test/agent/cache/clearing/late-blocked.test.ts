// Fetches that were under way at a clear end long after it is gone: what is refused then is counted then, once, for one clear, and told.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { ClearProof } from "../../../../src/agent/cache/clearing/clear-orders.ts";
import type { ClearGone } from "../../../../src/agent/cache/clearing/clears.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { clear, isHit, keyOf, openedRig, store, type Rig } from "../rig.ts";

const dir = tempDir();
const registry = new Registry();
let rig: Rig;
beforeAll(async () => {
  rig = await openedRig(dir.path, { registry });
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

async function counted(): Promise<number> {
  const line = /^accel_agent_cache_clear_blocked_total (\d+)$/m.exec(await registry.metrics());
  return Number(line?.[1]);
}

/** What is told of it after `gone`. */
function followed({ onLate }: ClearProof): { readonly told: ClearGone[] } {
  const told: ClearGone[] = [];
  onLate((gone) => told.push(gone));
  return { told };
}

type Marks = { readonly invalidationMark?: number };

async function late(path: string, sourceNo: number, marks: Marks = {}): Promise<void> {
  const key = keyOf({ path });
  const outcome = await store(rig.cache, key, "late", { sourceNo, ...marks });
  expect(outcome).toEqual({ kind: "blocked" });
  expect(isHit(rig.cache, key)).toBe(false);
}

test("what a clear refuses after it was gone is counted, and its proof is told anew", async () => {
  await store(rig.cache, keyOf({ path: "/x" }));
  const sourceNo = rig.cache.sourceNo();
  const proof = clear(rig, ["path:x"], { clearId: "first" });
  const { told } = followed(proof);
  const gone = await proof.gone;
  expect(gone).toMatchObject({ removed: 1, blockedInFlight: 0, verified: true });
  await late("/x/1", sourceNo);
  await until("it is counted", async () => (await counted()) === 1);
  expect(told).toEqual([{ ...gone, blockedInFlight: 1 }]);
  await Promise.all([late("/x/2", sourceNo), late("/x/3", sourceNo)]);
  await until("they are counted", async () => (await counted()) === 3);
  expect(told.at(-1)).toEqual({ ...gone, blockedInFlight: 3 });
  // Whoever gives it again hears of them as well.
  expect(await clear(rig, ["path:x"], { clearId: "first" }).gone).toMatchObject({
    blockedInFlight: 3,
  });
});

test("each counts for the oldest clear that it is refused for, and for none where only an invalidation forbids it", async () => {
  const before = await counted();
  const sourceNo = rig.cache.sourceNo();
  const elsewhere = followed(clear(rig, ["path:elsewhere"]));
  const one = clear(rig, ["path:y"]);
  const two = clear(rig, ["path:y"]);
  const [first, again] = [followed(one), followed(two)];
  await two.applied;
  const between = rig.cache.sourceNo();
  const whole = clear(rig, ["kind:static OR kind:generated"]);
  const all = followed(whole);
  await rig.cache.invalidate(keyOf({ path: "/y/1" }));
  for (const { gone } of [one, two, whole]) expect((await gone).blockedInFlight).toBe(0);
  await late("/y/1", sourceNo);
  await late("/z", sourceNo);
  await late("/y/2", between);
  await until("all are counted", async () => (await counted()) === before + 3);
  await until("all are told", () => all.told.at(-1)?.blockedInFlight === 2);
  expect(first.told.at(-1)).toMatchObject({ blockedInFlight: 1 });
  expect([...again.told, ...elsewhere.told]).toEqual([]);

  const asked = rig.cache.sourceNo();
  const invalidationMark = rig.cache.invalidationMark(keyOf({ path: "/cart" }));
  await rig.cache.invalidate(keyOf({ path: "/cart" }));
  await late("/cart", asked, { invalidationMark });
  const w = clear(rig, ["path:w"]);
  const last = followed(w);
  await w.gone;
  await late("/w", asked);
  await until("the last is told", () => last.told.length === 1);
  expect(await counted()).toBe(before + 4);
});
