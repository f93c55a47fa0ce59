// The steps of a rollout: single ones by hand, thousands of whole rollouts by a model of hosts that die, refuse and are pinned, and faults that the model must find.

import fc from "fast-check";
import { expect, test } from "vitest";
import { stepRollout } from "../../../src/core/rollout/rollout-step.ts";
import { rolloutDefaults } from "../../../src/core/rollout/rollout-plan.ts";
import type { ReleaseStanding, Rollout, RolloutMember } from "../../../src/core/rollout/rollout.ts";
import { runRolloutModel, type Step } from "../../support/rollout-model.ts";

const member = (key: string, more: Partial<RolloutMember> = {}): RolloutMember => ({
  key,
  siteId: Number(key.split("/")[0]),
  state: "waiting",
  reason: null,
  had: "1.0.0",
  sinceMs: 0,
  before: null,
  bootId: null,
  restarts: 0,
  uneasySinceMs: null,
  ...more,
});
const watched = { state: "watched", bootId: "b1" } as const;
const rollout = (members: readonly RolloutMember[], more: Partial<Rollout> = {}): Rollout => ({
  token: "t",
  release: "2.0.0",
  plan: rolloutDefaults,
  state: "running",
  reason: null,
  budget: 1,
  missesSeen: 0,
  startedMs: 0,
  members,
  ...more,
});
const standing = (more: Partial<ReleaseStanding> = {}): ReleaseStanding => ({
  heardMs: 100_000,
  version: "1.0.0",
  bootId: "b1",
  takes: "yes",
  isReady: true,
  requests: 1_000,
  errors: 10,
  warnings: [],
  order: null,
  ...more,
});
const statesOf = ({ members }: Rollout): readonly string[] => members.map(({ state }) => state);
const stepped = (
  from: Rollout,
  said: Readonly<Record<string, ReleaseStanding>>,
  time: { readonly nowMs: number; readonly upSinceMs?: number } = { nowMs: 100_000 },
): Rollout => stepRollout(from, (key) => said[key], { upSinceMs: 0, ...time });

test("the hosts of one site are not asked at once, those of others are", () => {
  const from = rollout([member("1/a"), member("1/b"), member("2/c")], { budget: 3 });
  const said = { "1/a": standing(), "1/b": standing(), "2/c": standing() };
  expect(statesOf(stepped(from, said))).toEqual(["asked", "waiting", "asked"]);
});

test("what a host said before the rollout does not count: it is asked on its word since", () => {
  const from = rollout([member("1/a"), member("2/b")], { startedMs: 90_000 });
  const old = standing({ heardMs: 80_000, takes: "off" });
  expect(statesOf(stepped(from, { "1/a": old }))).toEqual(["waiting", "waiting"]);
  const later = stepped(from, { "1/a": old }, { nowMs: 160_000 });
  expect(later.members.map(({ state, reason }) => [state, reason])).toEqual([
    ["stays", "away when it was its turn"],
    ["stays", "its agent is too old to be rolled"],
  ]);
  expect(later.state).toBe("done");
});

test("where central hears nobody, silence counts later: it may be central that is cut off", () => {
  const from = rollout([member("1/a", watched), member("2/b")]);
  const said = { "1/a": standing({ version: "2.0.0" }), "2/b": standing() };
  expect(stepped(from, said, { nowMs: 170_000 }).state).toBe("running");
  const others = { ...said, "2/b": standing({ heardMs: 165_000 }) };
  expect(stepped(from, others, { nowMs: 170_000 })).toMatchObject({
    state: "returning",
    reason: "1/a: was not heard for 60 s",
  });
  expect(stepped(from, said, { nowMs: 300_000 }).state).toBe("returning");
});

test("a warning that hosts without the release have as well is not the release's doing", () => {
  const uneasy = { ...watched, sinceMs: 90_000, uneasySinceMs: 1 };
  const from = rollout([member("1/a", uneasy), member("2/b")]);
  const warns = standing({ version: "2.0.0", warnings: ["origin_down"] });
  expect(stepped(from, { "1/a": warns, "2/b": standing() })).toMatchObject({
    state: "returning",
    reason: "1/a: warns of origin_down, as it did not before",
  });
  const same = standing({ warnings: ["origin_down"] });
  expect(stepped(from, { "1/a": warns, "2/b": same }).state).toBe("running");
});

test("a larger share of errors goes back, with both shares", () => {
  const before = { requests: 1_000, errors: 10, warnings: [] };
  const from = rollout([member("1/a", { ...watched, before })]);
  const after = (errors: number, requests = 1_000): ReleaseStanding =>
    standing({ version: "2.0.0", errors, requests });
  expect(stepped(from, { "1/a": after(30) }).state).toBe("running");
  expect(stepped(from, { "1/a": after(99, 99) }).state).toBe("running");
  expect(stepped(from, { "1/a": after(31) })).toMatchObject({
    state: "returning",
    reason: "1/a: 3.1 % of its answers have a status of 500 or more, 1.0 % before",
  });
});

test("hosts that cannot install it pause the rollout, and the reason of the last one is told", () => {
  const missed = { state: "missed", reason: "no room" } as const;
  const from = rollout([member("1/a", missed), member("2/b", missed), member("3/c", missed)]);
  expect(stepped(from, {})).toMatchObject({
    state: "paused",
    reason: "3 hosts could not install 2.0.0, the last one: no room",
  });
  expect(stepped({ ...from, missesSeen: 3 }, {}).state).toBe("done");
});

test("no rollout does what none may do, whatever becomes of hosts and central", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 31 }), (seed) => {
      expect(runRolloutModel({ seed, step: stepRollout })).toEqual([]);
    }),
    { numRuns: 5_000 },
  );
});

const seeing =
  (changed: (standing: ReleaseStanding) => ReleaseStanding): Step =>
  (rollout, standingOf, time) =>
    stepRollout(
      rollout,
      (key) => {
        const standing = standingOf(key);
        return standing === undefined ? undefined : changed(standing);
      },
      time,
    );

const planned =
  (plan: Partial<Parameters<Step>[0]["plan"]>): Step =>
  (rollout, standingOf, time) => {
    const next = stepRollout({ ...rollout, plan: { ...rollout.plan, ...plan } }, standingOf, time);
    return { ...next, plan: rollout.plan };
  };

/** Each is a step function with one fault. */
const faults: Readonly<Record<string, Step>> = {
  "the next wave does not wait for the canary": (rollout, standingOf, time) =>
    stepRollout({ ...rollout, budget: rollout.budget + 1 }, standingOf, time),
  "hosts are proven at once": planned({ soakMs: 0 }),
  "a host that is lost is waited for": planned({ silenceMs: Infinity, installMs: Infinity }),
  "restarts are not counted": seeing((standing) => ({ ...standing, bootId: "one" })),
  "errors are not counted": seeing((standing) => ({ ...standing, errors: 0 })),
  "warnings are not looked at": seeing((standing) => ({ ...standing, warnings: [] })),
  "pinned hosts are asked too": seeing((standing) => ({ ...standing, takes: "yes" })),
  "a host is back before it heard of it": (rollout, standingOf, time) =>
    stepRollout(
      rollout,
      (key) => {
        const standing = standingOf(key);
        const member = rollout.members.find((one) => one.key === key);
        if (standing === undefined || member?.state !== "going_back") return standing;
        const order = { id: `${rollout.token}-back`, state: "done" as const, reason: "" };
        return standing.version === member.had ? { ...standing, order } : standing;
      },
      time,
    ),
  "the silence of a central that was down counts": (rollout, standingOf, { nowMs }) =>
    stepRollout(rollout, standingOf, { nowMs, upSinceMs: 0 }),
  "what a host cannot install goes back": seeing((standing) => {
    const { order } = standing;
    if (order?.state !== "failed") return standing;
    return { ...standing, order: { ...order, reason: "" } };
  }),
};

for (const [fault, step] of Object.entries(faults))
  test(`the model finds it where ${fault}`, () => {
    const found = Array.from({ length: 4_000 }, (_, seed) => seed).find(
      (seed) => runRolloutModel({ seed, step }).length > 0,
    );
    expect(found).toBeDefined();
  });
