// What is taken of what came: in order, each once, only if the digest continues ours; never more than there is room for.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import type { JournalItem } from "../../../src/wire/journal.ts";
import { FakeJournal } from "../../support/fake-journal.ts";
import { planIntake, type IntakePlan } from "../../../src/agent/link/follower.ts";

const start = { seq: 0, chain: chainStart };

function journalOf(count: number): FakeJournal {
  const journal = new FakeJournal();
  for (let n = 1; n <= count; n++) journal.append("policy.changed", { n });
  return journal;
}

const seqsOf = ({ steps }: IntakePlan): readonly (number | string)[] =>
  steps.map((step) =>
    step.kind === "entry" ? step.entry.seq : `skip ${step.fromSeq}-${step.toSeq}`,
  );

const at = (journal: FakeJournal, seq: number): { seq: number; chain: string } => ({
  seq,
  chain: journal.after(seq - 1)[0]?.chain ?? chainStart,
});

test("everything behind ours is taken, what is not new is passed over", () => {
  const journal = journalOf(5);
  const plan = planIntake(at(journal, 2), journal.after(0), 100);
  expect(seqsOf(plan)).toEqual([3, 4, 5]);
  expect(plan.verdict).toBe("all");
});

test("a gap ends it", () => {
  const items = journalOf(5).after(0);
  const plan = planIntake(start, [...items.slice(0, 2), ...items.slice(3)], 100);
  expect(seqsOf(plan)).toEqual([1, 2]);
  expect(plan.verdict).toBe("gap");
});

test.each([
  ["body", { body: { n: 99 } }],
  ["kind", { kind: "domains.changed" }],
  ["time", { at: "2000-01-01T00:00:00Z" }],
  ["digest", { chain: "f".repeat(64) }],
])("an entry with another %s is no continuation of ours", (_what, change) => {
  const items = journalOf(3).after(0);
  const forged = items.map((item, i) => (i === 1 ? ({ ...item, ...change } as JournalItem) : item));
  const plan = planIntake(start, forged, 100);
  expect(seqsOf(plan)).toEqual([1]);
  expect(plan.verdict).toBe("mismatch");
});

test("of a superseded range only what is not yet taken is passed over; the next entry continues it", () => {
  const journal = journalOf(4);
  const mark = at(journal, 2);
  journal.supersede(1);
  journal.append("policy.changed", { n: 5 });
  const plan = planIntake(mark, journal.after(0), 100);
  expect(seqsOf(plan)).toEqual(["skip 3-4", 5]);
  expect(plan.verdict).toBe("all");
});

test("without room nothing more is taken", () => {
  const plan = planIntake(start, journalOf(5).after(0), 2);
  expect(seqsOf(plan)).toEqual([1, 2]);
  expect(plan.verdict).toBe("full");
  expect(planIntake(start, journalOf(1).after(0), -1).verdict).toBe("full");
});

test("whatever pieces come in whatever repetition: each entry once, in order, without holes", () => {
  const journal = journalOf(20);
  const items = journal.after(0);
  const pieces = fc.array(fc.tuple(fc.nat(20), fc.nat(20)), { maxLength: 12 });
  fc.assert(
    fc.property(pieces, (cuts) => {
      let mark = start;
      const taken: number[] = [];
      for (const [from, width] of cuts) {
        const plan = planIntake(mark, items.slice(from, from + width), 100);
        for (const step of plan.steps)
          if (step.kind === "entry") {
            taken.push(step.entry.seq);
            mark = { seq: step.entry.seq, chain: step.entry.chain };
          }
        expect(plan.verdict).toBe(from > mark.seq && width > 0 && from < 20 ? "gap" : "all");
      }
      expect(taken).toEqual(taken.map((_, i) => i + 1));
    }),
  );
});
