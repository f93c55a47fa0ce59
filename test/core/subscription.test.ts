// What becomes of a subscription: every state, every call, every answer.

import { expect, test } from "vitest";
import {
  atPresent,
  subscribe,
  suspensionMs,
  unsubscribe,
  type Subscription,
} from "../../src/core/subscription.ts";

const now = 1_000_000_000_000;
const states = {
  none: undefined,
  active: { state: "active" },
  suspended: { state: "suspended", untilMs: now + 1 },
  over: { state: "suspended", untilMs: now },
  ended: { state: "ended" },
} as const satisfies Record<string, Subscription | undefined>;
type Name = keyof typeof states;

const paused = { state: "suspended", untilMs: now + suspensionMs };

test.each<[Name, string]>([
  ["none", "subscription_created"],
  ["active", "subscription_exists"],
  ["suspended", "subscription_reactivated"],
  ["over", "subscription_exists"],
  ["ended", "subscription_reactivated"],
])("subscribing when it is %s: %s", (name, status) => {
  expect(subscribe(states[name], now)).toEqual({ status, becomes: { state: "active" } });
});

test.each<[Name, boolean, string, unknown]>([
  ["none", false, "no_subscription", undefined],
  ["none", true, "no_subscription", undefined],
  ["active", false, "unsubscribed", paused],
  ["active", true, "unsubscribed", { state: "ended" }],
  ["suspended", false, "subscription_inactive", states.suspended],
  ["suspended", true, "unsubscribed", { state: "ended" }],
  ["over", false, "unsubscribed", paused],
  ["over", true, "unsubscribed", { state: "ended" }],
  ["ended", false, "subscription_inactive", { state: "ended" }],
  ["ended", true, "subscription_inactive", { state: "ended" }],
])("unsubscribing when it is %s, for good %s: %s", (name, isPermanent, status, becomes) => {
  expect(unsubscribe(states[name], isPermanent, now)).toEqual({ status, becomes });
});

test("a suspension is 30 days and ends by itself, to the millisecond", () => {
  const { becomes } = unsubscribe({ state: "active" }, false, now);
  if (becomes === undefined) throw new Error("nothing became of it");
  const end = now + 30 * 24 * 60 * 60 * 1_000;
  expect(atPresent(becomes, end - 1).state).toBe("suspended");
  expect(atPresent(becomes, end).state).toBe("active");
  expect(atPresent({ state: "ended" }, end).state).toBe("ended");
});
