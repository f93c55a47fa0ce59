// What central does next with an activation on all or none, given the votes.

import { expect, test } from "vitest";
import {
  nextFleetStep,
  type Member,
  type Vote,
} from "../../../src/core/serving/fleet-activation.ts";

const yes: Vote = { kind: "yes" };
const awaited: Vote = { kind: "awaited" };
const member = (no: number, vote: Vote, isLost = false): Member => ({
  deploymentSiteId: no,
  instanceId: `i${no}`,
  vote,
  isLost,
});
const step = (members: readonly Member[], isPastDeadline = false) =>
  nextFleetStep({ members, isPastDeadline });

test("it is decided when all have voted for it, not before", () => {
  expect(step([member(1, yes), member(2, awaited)])).toEqual({ kind: "wait" });
  expect(step([member(1, yes), member(2, yes)])).toEqual({ kind: "decide" });
});

test("one no gives it up, with the words of who said it, whoever is still silent", () => {
  const no: Vote = { kind: "no", reason: "too large" };
  expect(step([member(1, awaited), member(2, no), member(3, yes)])).toEqual({
    kind: "abort",
    reason: "instance i2 of deployment site 2 refuses it: too large",
  });
});

test("a loss gives it up, even of one that had voted for it", () => {
  for (const vote of [yes, awaited])
    expect(step([member(1, yes), member(2, vote, true)])).toEqual({
      kind: "abort",
      reason: "instance i2 of deployment site 2 was lost before the decision",
    });
});

test("the deadline gives it up, and names who was silent", () => {
  const silent = [1, 2, 3, 4, 5].map((no) => member(no, awaited));
  expect(step([...silent, member(6, yes)], true)).toEqual({
    kind: "abort",
    reason:
      "the deadline passed before the decision; no vote came from instance i1 of deployment site 1, instance i2 of deployment site 2, instance i3 of deployment site 3 and 2 more",
  });
  expect(step([member(1, yes)], true)).toMatchObject({ kind: "abort" });
});

test("without members nothing is decided", () => {
  expect(step([])).toEqual({
    kind: "abort",
    reason: "no instance of the domain's deployments is left",
  });
});
