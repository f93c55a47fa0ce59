// What is shown of activations on all or none: which of them say something of a version as it stands, and what is a vote.

import { expect, test } from "vitest";
import { isOverruled, voteOf } from "../../../../src/central/store/content/fleet-records.ts";

const [before, ended, after] = [
  "2030-01-01T00:00:00.000Z",
  "2030-01-01T00:00:01.000Z",
  "2030-01-01T00:00:02.000Z",
];

test.each([
  ["preparing", null, true, [before], false],
  ["activated", ended, true, [ended], false],
  ["failing", ended, true, [ended], false],
  // Asked for all while it was active for each: nothing else came since.
  ["aborted", ended, true, [before], false],
  ["aborted", ended, false, [], false],
  // It was given up by the activation of the same version for each, in one transaction.
  ["aborted", ended, true, [before, ended], true],
  ["aborted", ended, false, [before, after], true],
  ["replaced", ended, false, [ended], false],
  ["replaced", ended, false, [ended, after], true],
  ["replaced", ended, true, [ended, after], true],
  // Activations of before central kept them are not known.
  ["replaced", ended, true, [], true],
  ["returned", ended, false, [before], false],
  ["returned", ended, true, [before, after], true],
] as const)(
  "%s at %s, active: %s, activated at %j",
  (state, endedAt, isActive, activations, is) => {
    expect(isOverruled({ state, endedAt }, { isActive, activations })).toBe(is);
  },
);

test("an instance that broke off for a later order did not vote; one that failed or refused voted no", () => {
  const told = (phase: "failed" | "refused", detail: Readonly<Record<string, string>>) => ({
    error: detail["reason"],
    receipts: [{ instanceId: "i", seq: 3, phase, detail, tookMs: 1 }],
  });
  const reason = "entry 28 took its place before it was in force";
  expect(voteOf(told("failed", { reason, code: "SUPERSEDED" }), 3, 1)).toEqual({ kind: "awaited" });
  for (const phase of ["failed", "refused"] as const)
    expect(voteOf(told(phase, { reason: "no room", code: "VIEWSET_NO_ROOM" }), 3, 1)).toEqual({
      kind: "no",
      reason: "no room",
    });
});
