// Who is there, against a Set; and leaving while others are told.

import fc from "fast-check";
import { expect, it } from "vitest";
import { Roster } from "../../src/core/roster.ts";

it("has who a Set would have, in the same order", () => {
  const step = fc.record({ member: fc.nat(9), comes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const roster = new Roster<number>();
      const set = new Set<number>();
      for (const { member, comes } of steps) {
        if (!comes) expect(roster.delete(member)).toBe(set.delete(member));
        else if (!set.has(member)) {
          roster.add(member);
          set.add(member);
        }
        expect([...roster]).toEqual([...set]);
        expect(roster.size).toBe(set.size);
        expect(roster.first).toBe([...set][0]);
        expect(roster.has(member)).toBe(set.has(member));
      }
    }),
  );
});

it("tells all who were there when the loop began, whoever leaves meanwhile", () => {
  const roster = new Roster<number>();
  for (const member of [1, 2, 3]) roster.add(member);
  const told: number[] = [];
  for (const member of roster) {
    told.push(member);
    roster.delete(member);
    roster.add(member + 10);
  }
  expect(told).toEqual([1, 2, 3]);
  expect([...roster]).toEqual([11, 12, 13]);
});
