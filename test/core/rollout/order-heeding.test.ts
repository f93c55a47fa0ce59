// What an agent does about an order, for each state that its host may be in.

import { expect, test } from "vitest";
import { heedOrder, type HeedingHost } from "../../../src/core/rollout/order-heeding.ts";
import type { ReleaseOrder } from "../../../src/core/rollout/rollout.ts";

const order = { id: "t-go", version: "2.0.0" };
const minuteMs = 60_000;
const host = (more: Partial<HeedingHost> = {}): HeedingHost => ({
  version: "1.0.0",
  takes: "yes",
  lying: undefined,
  outcome: undefined,
  asked: undefined,
  nowMs: 100 * minuteMs,
  ...more,
});
const wrote = (id: string, state: NonNullable<HeedingHost["outcome"]>["state"], ageMs = 0) => ({
  outcome: { id, state, reason: "because", writtenMs: 100 * minuteMs - ageMs },
});

test("the installer is asked, and again while it says nothing, and then it is told that it does not", () => {
  expect(heedOrder(order, host())).toEqual({ step: "ask" });
  const asked = (firstMs: number, lastMs: number): HeedingHost =>
    host({ asked: { firstMs: 100 * minuteMs - firstMs, lastMs: 100 * minuteMs - lastMs } });
  expect(heedOrder(order, asked(10_000, 10_000))).toMatchObject({ step: "tell", state: "taken" });
  expect(heedOrder(order, asked(40_000, 30_000))).toEqual({ step: "ask" });
  expect(heedOrder(order, asked(6 * minuteMs, 1_000))).toMatchObject({
    state: "failed",
    reason: expect.stringContaining("accel-agent-rollout.path did not take the order"),
  });
});

test("the host's word wins over central", () => {
  for (const takes of ["off", "held"] as const)
    expect(heedOrder(order, host({ takes }))).toMatchObject({ step: "tell", state: "refused" });
});

test("what the installer said of the order is told, and it is not asked again", () => {
  for (const state of ["refused", "failed", "returned"] as const)
    expect(heedOrder(order, host(wrote("t-go", state)))).toEqual({
      step: "tell",
      state,
      reason: "because",
    });
  expect(heedOrder(order, host(wrote("t-go", "installing")))).toMatchObject({
    state: "installing",
  });
  // Of an order before it says nothing of this one.
  expect(heedOrder(order, host(wrote("t-before", "failed")))).toEqual({ step: "ask" });
});

test("an installation that was cut off is begun again", () => {
  const cut = wrote("t-go", "installing", 40 * minuteMs);
  expect(heedOrder(order, host(cut))).toEqual({ step: "ask" });
});

test("the version that runs is done, but not while another one is being installed", () => {
  const back = { id: "t-back", version: "1.0.0" };
  expect(heedOrder(back, host())).toMatchObject({ step: "tell", state: "done" });
  expect(heedOrder(back, host(wrote("t-back", "installing")))).toMatchObject({ state: "done" });
  expect(heedOrder(back, host(wrote("t-go", "installing")))).toMatchObject({
    state: "taken",
  });
});

test("an installation after which another version runs is told as failed", () => {
  expect(heedOrder(order, host(wrote("t-go", "done")))).toMatchObject({
    state: "failed",
    reason: "installed, and the agent that runs is 1.0.0",
  });
});

test("only an order that is still to be carried out may lie there", () => {
  const rows: readonly (readonly [ReleaseOrder | null, Partial<HeedingHost>, string])[] = [
    [order, { lying: "t-go" }, "ask"],
    [order, { lying: "t-before" }, "ask"],
    [order, { lying: "t-go", ...wrote("t-go", "installing") }, "tell"],
    [order, { lying: "t-go", ...wrote("t-go", "failed") }, "withdraw"],
    [order, { lying: "t-go", ...wrote("t-go", "returned") }, "withdraw"],
    [order, { lying: "t-go", takes: "off" }, "withdraw"],
    [order, { lying: "t-go", version: "2.0.0" }, "withdraw"],
    [order, { lying: "t-go", asked: { firstMs: 0, lastMs: 99 * minuteMs } }, "withdraw"],
    [{ id: "t-back", version: "1.0.0" }, { lying: "t-go" }, "withdraw"],
    [
      { id: "t-back", version: "1.0.0" },
      { lying: "t-go", ...wrote("t-go", "installing") },
      "withdraw",
    ],
    [null, { lying: "t-go" }, "withdraw"],
    [null, { lying: "" }, "withdraw"],
    [null, {}, "tell"],
  ];
  for (const [wanted, at, step] of rows) expect(heedOrder(wanted, host(at)).step).toBe(step);
});
