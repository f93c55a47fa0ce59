// What each answer of central means for the batch it answers.

import { expect, test } from "vitest";
import { planAfter, type ShipStep } from "../../../../src/agent/requests/ship/ship-plan.ts";
import { posted, refused } from "../../../support/log-central.ts";

const many = { firstSeq: 11, lines: 8, isGap: false };
const one = { firstSeq: 11, lines: 1, isGap: false };
const gap = { firstSeq: 11, lines: 1, isGap: true };
const waits = (leastMs = 0): object => ({ kind: "wait", leastMs });

test.each<[string, Parameters<typeof planAfter>[0], Parameters<typeof planAfter>[1], object]>([
  [
    "committed",
    many,
    posted(200, { committed_through: 18 }),
    { kind: "committed", mark: 18 } satisfies ShipStep,
  ],
  [
    "committed before, and more",
    many,
    posted(200, { committed_through: 30 }),
    { kind: "committed", mark: 30 },
  ],
  ["a 200 that commits nothing", many, posted(200, { committed_through: 10 }), waits()],
  ["a 200 of something else", many, posted(200, "<html>"), waits()],
  ["central is ahead", many, refused(409, "conflict", 15), { kind: "conflict", mark: 15 }],
  ["central is behind", many, refused(409, "conflict", 3), { kind: "conflict", mark: 3 }],
  ["a conflict that agrees", many, refused(409, "conflict", 10), waits()],
  ["a conflict without a mark", many, refused(409, "conflict"), waits()],
  ["too large", many, refused(413, "too_large"), { kind: "halve" }],
  ["too large for a proxy", many, posted(413, undefined), { kind: "halve" }],
  ["invalid", many, refused(400, "invalid"), { kind: "halve" }],
  [
    "one invalid record",
    one,
    refused(400, "invalid"),
    { kind: "poison", why: "400: invalid" } satisfies ShipStep,
  ],
  ["one record that a proxy refuses", one, posted(400, undefined), waits()],
  ["one record refused in words of another refusal", one, refused(400, "unavailable"), waits()],
  ["one record too large, as something between has it", one, refused(413, "unavailable"), waits()],
  ["one record too large", one, refused(413, "too_large"), { kind: "poison" }],
  ["a gap that is refused", gap, refused(400, "invalid"), waits()],
  ["an unknown encoding", many, posted(415, undefined), { kind: "recode" }],
  ["not authorized", many, refused(401, "expired_token"), waits()],
  ["too many", many, posted(429, undefined, 7_000), waits(7_000)],
  ["away for a year", many, posted(503, undefined, 31_536_000_000), waits(600_000)],
  ["broken", many, posted(500, undefined), waits()],
])("%s", (_, batch, answer, step) => {
  expect(planAfter(batch, answer)).toMatchObject(step);
});
