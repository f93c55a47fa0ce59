// A release that is taken back while a host is about to install it: central says that the host is back only when nothing can be installed there any more.

import fc from "fast-check";
import { expect, test } from "vitest";
import { heedOrder } from "../../../src/core/rollout/order-heeding.ts";
import { runHostModel, turns, type HostModelOptions } from "../../support/installer-model.ts";

/** Each takes several steps in a row now and then: the faults want one to be far ahead of the other. */
const someTurns = fc
  .array(fc.tuple(fc.constantFrom(...turns), fc.integer({ min: 1, max: 12 })), { maxLength: 20 })
  .map((runs) => runs.flatMap(([turn, times]) => Array.from({ length: times }, () => turn)));
const seed = 20_261_129;

test("whatever agent, installer and central do one after the other, a host that is back stays as it is, and no order lies there", () => {
  fc.assert(
    fc.property(someTurns, fc.boolean(), (given, starts) => {
      expect(runHostModel({ turns: given, starts })).toEqual([]);
    }),
    { numRuns: 5_000, seed },
  );
});

/** Each is one of the two looking away. */
const faults: Readonly<Record<string, Partial<HostModelOptions>>> = {
  "the agent does not ask what lies there": {
    heed: (order, host) => heedOrder(order, { ...host, lying: undefined }),
  },
  "the agent does not ask what the installer said": {
    heed: (order, host) => heedOrder(order, { ...host, outcome: undefined }),
  },
  "the installer does not look again": { looksAgain: false },
};

test.each(Object.entries(faults))("the model finds that %s", (_, fault) => {
  const run = fc.check(
    fc.property(someTurns, (given) => runHostModel({ turns: given, ...fault }).length === 0),
    { numRuns: 5_000, seed },
  );
  expect(run.failed).toBe(true);
});

test("the order that was seen: the installer takes it after central heard that the host runs what it had", () => {
  const given = [
    ...Array.from({ length: 6 }, () => "agent" as const), // Hears of the order, and writes it.
    "give-up",
    ...Array.from({ length: 9 }, () => "agent" as const),
    "central",
    ...Array.from({ length: 7 }, () => "installer" as const),
  ] as const;
  expect(runHostModel({ turns: given })).toEqual([]);
  const blind: typeof heedOrder = (order, host) => heedOrder(order, { ...host, lying: undefined });
  expect(runHostModel({ turns: given, heed: blind, looksAgain: false })).toContain(
    "2.0.0 runs on a host that is told to be back",
  );
});
