// What receipts prove of a journal entry.

import { expect, test } from "vitest";
import { clearedAt } from "../../../../src/central/store/journal/clears.ts";
import {
  proofOf,
  type InstanceSeen,
  type ReceiptSeen,
} from "../../../../src/central/store/journal/proof.ts";

const nowMs = Date.parse("2031-01-01T12:00:00Z");
const seenAgo = (instanceId: string, seconds: number): InstanceSeen => ({
  instanceId,
  lastSeen: new Date(nowMs - seconds * 1_000).toISOString(),
});
const told = (
  instanceId: string,
  seq: number,
  phase: ReceiptSeen["phase"],
  detail: ReceiptSeen["detail"] = {},
): ReceiptSeen => ({ instanceId, seq, phase, detail, tookMs: 1 });
const snapshot = { snapshot: true, cleared: ["a.example.com"] };

test.each<[string, InstanceSeen[], ReceiptSeen[], string]>([
  ["nobody was ever seen", [], [], "pending"],
  ["the one instance has told", [seenAgo("a", 1)], [told("a", 5, "applied")], "applied"],
  ["it has not", [seenAgo("a", 1)], [], "pending"],
  ["it refused", [seenAgo("a", 1)], [told("a", 5, "refused")], "failed"],
  [
    "one of two live ones has not",
    [seenAgo("a", 1), seenAgo("b", 9)],
    [told("a", 5, "applied")],
    "pending",
  ],
  [
    "both live ones have",
    [seenAgo("a", 1), seenAgo("b", 9)],
    [told("a", 5, "applied"), told("b", 5, "applied")],
    "applied",
  ],
  ["one is long gone", [seenAgo("a", 1), seenAgo("b", 900)], [told("a", 5, "applied")], "applied"],
  [
    "all are away: the last one seen counts",
    [seenAgo("a", 900), seenAgo("b", 800)],
    [told("b", 5, "applied")],
    "applied",
  ],
  [
    "and not the one before it",
    [seenAgo("a", 900), seenAgo("b", 800)],
    [told("a", 5, "applied")],
    "pending",
  ],
  [
    "a snapshot behind it covers it",
    [seenAgo("a", 1)],
    [told("a", 8, "applied", snapshot)],
    "applied",
  ],
  ["a failed entry is not healed by gone", [seenAgo("a", 1)], [told("a", 5, "failed")], "failed"],
])("%s", (_what, instances, receipts, state) => {
  expect(proofOf(5, instances, receipts, nowMs).state).toBe(state);
});

const factsOf = (domain: string, hasItems = false) => ({ domain, hasItems });

test("an agent that did not read the items of a clear widened it", () => {
  const of = (detail: Record<string, unknown>) => {
    const receipts = [told("a", 5, "applied", { matched: 2, widened: false, ...detail })];
    return clearedAt(
      1,
      factsOf("a.example.com", true),
      proofOf(5, [seenAgo("a", 1)], receipts, nowMs),
    );
  };
  expect(of({})).toMatchObject({ state: "applied", widened: true });
  expect(of({ items: true })).not.toHaveProperty("widened");
  expect(of({ items: true, widened: true })).toMatchObject({ widened: true });
});

test("a clear's counts are summed over instances; a snapshot that cleared the domain widened it", () => {
  const two = proofOf(
    5,
    [seenAgo("a", 1), seenAgo("b", 1)],
    [
      told("a", 5, "applied", { matched: 2 }),
      told("a", 5, "gone", { removed: 2, blocked_in_flight: 0 }),
      told("b", 5, "applied", { matched: 3 }),
    ],
    nowMs,
  );
  expect(clearedAt(1, factsOf("a.example.com"), two)).toMatchObject({
    matched: 5,
    removed: 2,
    instances: [
      { instance_id: "a", isProofWhole: true },
      { instance_id: "b", isProofWhole: false },
    ],
  });
  const covered = proofOf(5, [seenAgo("a", 1)], [told("a", 8, "applied", snapshot)], nowMs);
  expect(clearedAt(1, factsOf("a.example.com"), covered)).toMatchObject({
    state: "applied",
    widened: true,
    instances: [{ isProofWhole: true }],
  });
  expect(clearedAt(1, factsOf("b.example.com"), covered)).not.toHaveProperty("widened");
});

test("both parts of a clear that is told anew take the place of those before", () => {
  const anew = (detail: Record<string, unknown>) => ({ ...detail, correction: 4 });
  const receipts = [
    told("a", 5, "applied", anew({ matched: 2 })),
    told("a", 5, "gone", anew({ removed: 2, blocked_in_flight: 3, verified: true })),
  ];
  expect(
    clearedAt(1, factsOf("a.example.com"), proofOf(5, [seenAgo("a", 1)], receipts, nowMs)),
  ).toMatchObject({
    state: "applied",
    matched: 2,
    removed: 2,
    blocked_in_flight: 3,
    instances: [{ isProofWhole: true }],
  });
});

test.each<[string, ReceiptSeen[], boolean | null]>([
  [
    "one has not applied it",
    [told("a", 5, "applied"), told("a", 5, "gone", { verified: true })],
    null,
  ],
  [
    "one has not looked again",
    [told("a", 5, "applied"), told("a", 5, "gone", { verified: true }), told("b", 5, "applied")],
    null,
  ],
  [
    "one has found something, and the other has not told",
    [told("a", 5, "applied"), told("a", 5, "gone", { verified: false })],
    false,
  ],
  [
    "both have found nothing",
    ["a", "b"].flatMap((id) => [told(id, 5, "applied"), told(id, 5, "gone", { verified: true })]),
    true,
  ],
])("a deployment of two where %s is verified: %s", (_what, receipts, verified) => {
  const proof = proofOf(5, [seenAgo("a", 1), seenAgo("b", 1)], receipts, nowMs);
  expect(clearedAt(1, factsOf("a.example.com"), proof).verified).toBe(verified);
});
