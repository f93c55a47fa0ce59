// The number of pictures of a day: by domain, over midnight of UTC, over restarts and crashes.

import { expect, test } from "vitest";
import { DayBudget, type DayOfImages } from "../../../src/agent/images/day-budget.ts";

/** A store that outlasts a budget, and a clock. */
function rig(first?: unknown) {
  const store = { kept: first, writes: 0 };
  const clock = { now: new Date("2026-11-29T23:59:59.990Z") };
  const open = (): DayBudget =>
    new DayBudget(
      {
        read: () => store.kept,
        write: (day: DayOfImages) => {
          store.kept = structuredClone(day);
          store.writes += 1;
        },
      },
      () => clock.now,
    );
  return { store, clock, open };
}

const takeAll = (budget: DayBudget, domain: string, most: number, tries: number): number =>
  Array.from({ length: tries }, () => budget.take(domain, most)).filter(Boolean).length;

test("each domain has its own number, and no more than that", () => {
  const budget = rig().open();
  expect(takeAll(budget, "a.example", 3, 10)).toBe(3);
  expect(budget.isSpent("a.example", 3)).toBe(true);
  expect(budget.isSpent("b.example", 3)).toBe(false);
  expect(budget.take("b.example", 3)).toBe(true);
  expect(budget.take("c.example", 0)).toBe(false);
});

test("what is made is told, and not what is taken; a picture that is made over midnight is of the new day", () => {
  const { clock, open } = rig();
  const budget = open();
  takeAll(budget, "a.example", 9, 3);
  expect(budget.reported().size).toBe(0);
  budget.made("a.example");
  clock.now = new Date("2026-11-30T00:00:00Z");
  budget.made("a.example");
  const since = "2026-11-29T23:59:59.990Z";
  const today = { since, day: "2026-11-30", made: 1, blocked: 0 };
  expect(budget.reported().get("a.example")).toEqual({ made: 2, blocked: 0, today });
  expect(takeAll(budget, "a.example", 9, 20)).toBe(9);
});

test("a devlove that allows more, or less, is heeded at once", () => {
  const budget = rig().open();
  takeAll(budget, "a.example", 3, 10);
  expect(budget.take("a.example", 4)).toBe(true);
  expect(budget.isSpent("a.example", 2)).toBe(true);
});

test("what is held back is counted for as long as the agent runs", () => {
  const { clock, open } = rig();
  const budget = open();
  budget.block("a.example");
  clock.now = new Date("2026-11-30T00:00:00Z");
  budget.block("a.example");
  const since = "2026-11-29T23:59:59.990Z";
  const today = { since, day: "2026-11-30", made: 0, blocked: 1 };
  expect(budget.sinceStart().get("a.example")).toEqual({ made: 0, blocked: 2 });
  expect(budget.reported().get("a.example")).toEqual({ made: 0, blocked: 2, today });
});

test("the day ends at midnight of UTC, and not a moment before", () => {
  const { clock, open } = rig();
  const budget = open();
  expect(takeAll(budget, "a.example", 5, 9)).toBe(5);
  clock.now = new Date("2026-11-29T23:59:59.999Z");
  expect(budget.take("a.example", 5)).toBe(false);
  clock.now = new Date("2026-11-30T00:00:00.000Z");
  expect(takeAll(budget, "a.example", 5, 9)).toBe(5);
});

test("a stop and a start do not begin the day anew, and lose nothing of it", () => {
  const { open } = rig();
  {
    using budget = open();
    takeAll(budget, "a.example", 100, 7);
  }
  const after = open();
  expect(takeAll(after, "a.example", 100, 200)).toBe(93);
  expect(after.isSpent("a.example", 100)).toBe(true);
});

test("a crash does not begin the day anew either, and costs sixteen pictures at most", () => {
  const { open } = rig();
  for (const spent of [1, 15, 16, 17, 40]) {
    const { open: begin } = rig();
    takeAll(begin(), "a.example", 1_000, spent);
    const left = takeAll(begin(), "a.example", 1_000, 2_000);
    expect(left).toBeLessThanOrEqual(1_000 - spent);
    expect(left).toBeGreaterThan(1_000 - spent - 16);
  }
  expect(open().isSpent("a.example", 1)).toBe(false);
});

test("a day that was kept and is over counts for nothing", () => {
  const { clock, open } = rig();
  {
    using budget = open();
    takeAll(budget, "a.example", 5, 5);
  }
  clock.now = new Date("2026-12-01T12:00:00Z");
  expect(takeAll(open(), "a.example", 5, 9)).toBe(5);
});

test("not each picture is written", () => {
  const { store, open } = rig();
  takeAll(open(), "a.example", 1_000, 160);
  expect(store.writes).toBe(10);
});

test("nothing is written where no picture was asked for", () => {
  const { store, open } = rig();
  open()[Symbol.dispose]();
  expect(store.writes).toBe(0);
});

test.each([
  undefined,
  null,
  7,
  "2026-11-29",
  {},
  { day: 3, spent: { "a.example": 5 } },
  { day: "2026-11-29", spent: "many" },
  { day: "2026-11-29", spent: { "a.example": "5", "b.example": -1, "c.example": 0.5 } },
])("a store that holds %j is an empty one", (first) => {
  expect(takeAll(rig(first).open(), "a.example", 3, 9)).toBe(3);
});

test("a store that cannot write is told to whoever takes, and the picture counts", () => {
  const budget = new DayBudget(
    {
      read: () => undefined,
      write: () => {
        throw new Error("no room");
      },
    },
    () => new Date("2026-11-29T12:00:00Z"),
  );
  expect(() => budget.take("a.example", 2)).toThrow("no room");
  expect(budget.take("a.example", 2)).toBe(true);
  expect(budget.take("a.example", 2)).toBe(false);
});
