// Every order of steps, messages and kills of a hand-over: one writer at most, no orders beside requests that began by what was before, and in the end somebody serves.

import { expect, test } from "vitest";
import {
  firstWorld,
  isWell,
  stepsFrom,
  wrongWith,
  type HandOverBug,
  type World,
} from "../support/hand-over-model.ts";

const killsMax = 4;

/** Returns how many worlds there are, and the first thing that is wrong with one of them. */
function explore(bug?: HandOverBug): {
  readonly worlds: number;
  readonly wrong: string | undefined;
} {
  const seen = new Set<string>();
  const waiting: World[] = [firstWorld(killsMax)];
  for (let world = waiting.pop(); world !== undefined; world = waiting.pop()) {
    const name = JSON.stringify(world);
    if (seen.has(name)) continue;
    seen.add(name);
    const wrong = wrongWith(world) ?? wasRestarted(world);
    if (wrong !== undefined) return { worlds: seen.size, wrong };
    // A kill is nothing that has to happen.
    const peaceful = [...stepsFrom({ ...world, kills: 0 }, bug)];
    if (peaceful.length === 0 && !isWell(world))
      return { worlds: seen.size, wrong: `it stands still: ${name}` };
    waiting.push(...stepsFrom(world, bug));
  }
  return { worlds: seen.size, wrong: undefined };
}

/** What nobody was killed for, visitors are not to wait for. */
function wasRestarted({ kills, processes }: World): string | undefined {
  const isAnew = processes.some(({ no, parent }) => parent === undefined && no > 1);
  return kills === killsMax && isAnew ? "systemd starts the unit anew for nothing" : undefined;
}

/** Returns in how many orders everything can happen until nothing is left to. */
function ordersFrom(world: World, known = new Map<string, number>()): number {
  const name = JSON.stringify(world);
  const before = known.get(name);
  if (before !== undefined) return before;
  const next = [...stepsFrom(world)];
  const orders = next.length === 0 ? 1 : next.reduce((sum, one) => sum + ordersFrom(one, known), 0);
  known.set(name, orders);
  return orders;
}

test(`whoever is killed, up to ${killsMax} times`, () => {
  const { worlds, wrong } = explore();
  const orders = ordersFrom(firstWorld(killsMax));
  process.stdout.write(`${worlds} worlds, which are met in ${orders} orders\n`);
  expect(wrong).toBeUndefined();
  expect(worlds).toBeGreaterThan(500);
  expect(orders).toBeGreaterThan(200_000);
});

test.each([
  ["takes before all is closed", /two processes/],
  ["takes orders at once", /orders are taken/],
  ["an orphan goes on", /stands still/],
  ["does not return", /stands still/],
  ["is not made the main process", /anew for nothing/],
] as const)("a planted fault is found: it %s", (bug, wrong) => {
  expect(explore(bug).wrong).toMatch(wrong);
});
