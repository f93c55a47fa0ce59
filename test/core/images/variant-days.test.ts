// Variants of images by day: whatever agents do and whatever reports come twice, late or not at all, each counts once, on its day.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  addedVariants,
  type ReportDays,
  type ToldVariants,
  type VariantDay,
  type VariantMark,
} from "../../../src/core/images/variant-days.ts";

const monday = "2031-05-05";
const tuesday = "2031-05-06";
const start = `${monday}T08:00:00.000Z`;

const daysAround = (today: string): ReportDays => {
  const dayOf = (days: number): string =>
    new Date(Date.parse(today) + days * 86_400_000).toISOString().slice(0, 10);
  return { today, yesterday: dayOf(-1), tomorrow: dayOf(1), oldest: dayOf(-89) };
};

const told = (
  made: number,
  blocked: number,
  today?: { readonly day: string; readonly ofDay: readonly [number, number]; since?: string },
): ToldVariants => ({
  made,
  blocked,
  ...(today !== undefined && {
    today: {
      since: today.since ?? start,
      day: today.day,
      made: today.ofDay[0],
      blocked: today.ofDay[1],
    },
  }),
});

/** What each report of a row adds, when they arrive one after the other on the days beside them. */
function taken(reports: readonly (readonly [ToldVariants, string])[]): readonly VariantDay[][] {
  const all: VariantDay[][] = [];
  reports.reduce<VariantMark | undefined>((mark, [report, day]) => {
    const found = addedVariants(mark, report, daysAround(day));
    all.push([...(found?.added ?? [])]);
    return found?.mark ?? mark;
  }, undefined);
  return all;
}

test.each<[string, readonly (readonly [ToldVariants, string])[], readonly VariantDay[][]]>([
  [
    "sums are subtracted",
    [
      [told(3, 0), monday],
      [told(5, 2), monday],
    ],
    [[{ day: monday, made: 3, blocked: 0 }], [{ day: monday, made: 2, blocked: 2 }]],
  ],
  [
    "a report that comes twice adds nothing",
    [
      [told(3, 1), monday],
      [told(3, 1), monday],
    ],
    [[{ day: monday, made: 3, blocked: 1 }], []],
  ],
  [
    "an agent that says no day began anew where a sum fell, also where both are nothing",
    [
      [told(3, 1), monday],
      [told(0, 0), monday],
      [told(4, 1), monday],
    ],
    [[{ day: monday, made: 3, blocked: 1 }], [], [{ day: monday, made: 4, blocked: 1 }]],
  ],
  [
    "behind midnight, what was held back before it belongs to the day before",
    [
      [told(9, 5, { day: monday, ofDay: [9, 5] }), monday],
      [told(12, 8, { day: tuesday, ofDay: [2, 0] }), tuesday],
    ],
    [
      [{ day: monday, made: 9, blocked: 5 }],
      [
        { day: tuesday, made: 2, blocked: 0 },
        { day: monday, made: 1, blocked: 3 },
      ],
    ],
  ],
  [
    "an agent that began anew counts from nothing, though its sums are higher",
    [
      [told(3, 0, { day: monday, ofDay: [3, 0] }), monday],
      [told(7, 0, { day: monday, ofDay: [7, 0], since: `${monday}T09:00:00.000Z` }), monday],
    ],
    [[{ day: monday, made: 3, blocked: 0 }], [{ day: monday, made: 7, blocked: 0 }]],
  ],
  [
    "the first report since a start on the day before",
    [[told(7, 2, { day: tuesday, ofDay: [1, 0] }), tuesday]],
    [
      [
        { day: tuesday, made: 1, blocked: 0 },
        { day: monday, made: 6, blocked: 2 },
      ],
    ],
  ],
  [
    "a clock that is wrong by years: the day of the report counts",
    [[told(7, 2, { day: "2019-01-01", ofDay: [7, 2], since: "2019-01-01T00:00:00.000Z" }), monday]],
    [[{ day: monday, made: 7, blocked: 2 }]],
  ],
  [
    "what is no day is the day of the report",
    [[told(7, 2, { day: "2031-99-99", ofDay: [7, 2], since: "when it began" }), monday]],
    [[{ day: monday, made: 7, blocked: 2 }]],
  ],
  ["nothing is told", [[told(0, 0), monday]], [[]]],
])("%s", (_what, reports, added) => {
  expect(taken(reports)).toEqual(added);
});

type Step =
  | { readonly do: "make" | "block"; readonly count: number }
  | { readonly do: "midnight" | "report" | "again" | "restart" };

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("make", "block"), count: fc.nat(9) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom("midnight", "report", "again", "restart"),
      }),
    },
  ),
  { maxLength: 40 },
) as fc.Arbitrary<readonly Step[]>;

/** An agent with its days, its reports, and what is true of them. */
class Agent {
  #now = Date.parse(`${monday}T06:00:00.000Z`);
  #since = new Date(this.#now).toISOString();
  #sums = { made: 0, blocked: 0 };
  #ofDay = { made: 0, blocked: 0 };
  /** Not reported yet, by day: a restart loses it. */
  #open = new Map<string, { made: number; blocked: number }>();
  /** The day of the last report, or of the start. */
  #heard = monday;
  #mark: VariantMark | undefined;
  #last: ToldVariants | undefined;
  readonly truth = new Map<string, { made: number; blocked: number }>();
  readonly counted = new Map<string, { made: number; blocked: number }>();

  get #day(): string {
    return new Date(this.#now).toISOString().slice(0, 10);
  }

  step(step: Step): void {
    this.#now += 1_000;
    switch (step.do) {
      case "make":
      case "block": {
        const what = step.do === "make" ? "made" : "blocked";
        this.#sums[what] += step.count;
        this.#ofDay[what] += step.count;
        plus(this.#open, this.#day, { made: 0, blocked: 0, [what]: step.count });
        return;
      }
      case "midnight":
        // A report that covers three days cannot say what fell on the one in the middle.
        if (this.#heard !== this.#day) this.#report();
        this.#now = Date.parse(this.#day) + 86_400_000;
        this.#ofDay = { made: 0, blocked: 0 };
        return;
      case "report":
        return this.#report();
      case "again":
        return this.#take(this.#last);
      case "restart":
        this.#since = new Date(this.#now).toISOString();
        this.#heard = this.#day;
        this.#sums = { made: 0, blocked: 0 };
        this.#ofDay = { made: 0, blocked: 0 };
        this.#open.clear();
        this.#last = undefined;
        return;
      default:
        step satisfies never;
    }
  }

  #report(): void {
    this.#last = {
      ...this.#sums,
      today: { ...this.#ofDay, since: this.#since, day: this.#day },
    };
    this.#take(this.#last);
    this.#heard = this.#day;
    for (const [day, count] of this.#open) plus(this.truth, day, count);
    this.#open.clear();
  }

  #take(report: ToldVariants | undefined): void {
    if (report === undefined) return;
    const found = addedVariants(this.#mark, report, daysAround(this.#day));
    this.#mark = found?.mark ?? this.#mark;
    for (const { day, ...count } of found?.added ?? []) plus(this.counted, day, count);
  }

  end(): void {
    this.#report();
  }
}

function plus(
  to: Map<string, { made: number; blocked: number }>,
  day: string,
  { made, blocked }: { readonly made: number; readonly blocked: number },
): void {
  if (made === 0 && blocked === 0) return;
  const before = to.get(day) ?? { made: 0, blocked: 0 };
  to.set(day, { made: before.made + made, blocked: before.blocked + blocked });
}

test("each variant counts once and on its day, whatever is lost, repeated or begun anew", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const agent = new Agent();
      for (const step of all) agent.step(step);
      agent.end();
      expect(Object.fromEntries(agent.counted)).toEqual(Object.fromEntries(agent.truth));
    }),
    { numRuns: 300 },
  );
});
