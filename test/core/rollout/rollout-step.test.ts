// The steps of a rollout: single ones by hand, thousands of whole rollouts by a model of hosts that die, refuse and are pinned, and faults that the model must find.

import fc from "fast-check";
import { expect, test } from "vitest";
import { stepRollout } from "../../../src/core/rollout/rollout-step.ts";
import type { ReleaseStanding } from "../../../src/core/rollout/rollout.ts";
import { runRolloutModel, type Step } from "../../support/rollout-model.ts";

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
