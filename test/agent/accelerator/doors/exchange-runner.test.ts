// Exchanges that run are waited for, by everybody who waits, and also those whose answer has failed.

import { expect, test } from "vitest";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";
import { ExchangeRunner } from "../../../../src/agent/accelerator/doors/exchange-runner.ts";
import type { Exchange } from "../../../../src/agent/accelerator/doors/exchange.ts";
import { ProblemLog } from "../../../../src/agent/accelerator/records/problem-log.ts";
import { createRecorder } from "../../../../src/agent/accelerator/records/recorder.ts";
import { RequestTally } from "../../../../src/agent/accelerator/records/request-tally.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";

function openRunner(): ExchangeRunner {
  const clock = createClock();
  return new ExchangeRunner({
    answer: async () => undefined,
    answerNow: async () => undefined,
    recorder: createRecorder({ accept: () => undefined }, new RequestTally(new Registry()), clock),
    clock,
    problems: new ProblemLog(silentLog(), clock.steadyMs),
  });
}

/** An exchange whose head is out, as far as a runner looks at one. */
class Begun {
  readonly response = { headersSent: true };
  readonly domain = null;
  isGone = false;
  cuts = 0;

  cut(): void {
    this.cuts++;
    this.isGone = true;
  }
}

function begin(runner: ExchangeRunner, begun: Begun): { end: () => void; fail: () => void } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  runner.begin(begun as unknown as Exchange, async () => promise);
  return { end: resolve, fail: () => reject(new Error("the origin broke off")) };
}

/** Follows a wait. */
function followed(wait: Promise<void>): { isOver: boolean } {
  const told = { isOver: false };
  void wait.then(() => (told.isOver = true));
  return told;
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test("everybody who waits is told when the last has ended, and who comes later waits for nothing", async () => {
  const runner = openRunner();
  await runner.settled();
  const [one, two] = [begin(runner, new Begun()), begin(runner, new Begun())];
  const waits = [followed(runner.settled()), followed(runner.settled())];
  one.end();
  await turn();
  waits.push(followed(runner.settled()));
  expect(waits.map(({ isOver }) => isOver)).toEqual([false, false, false]);
  two.end();
  await turn();
  expect(waits.map(({ isOver }) => isOver)).toEqual([true, true, true]);
  await runner.settled();
});

test("what begins after a wait has ended is waited for anew", async () => {
  const runner = openRunner();
  const first = begin(runner, new Begun());
  const before = followed(runner.settled());
  first.end();
  await turn();
  expect(before.isOver).toBe(true);
  const second = begin(runner, new Begun());
  const after = followed(runner.settled());
  await turn();
  expect(after.isOver).toBe(false);
  second.end();
  await turn();
  expect(after.isOver).toBe(true);
});

test("an answer that fails behind its head is cut once, and then it is over", async () => {
  const runner = openRunner();
  const begun = new Begun();
  const one = begin(runner, begun);
  const wait = followed(runner.settled());
  one.fail();
  await turn();
  expect(wait.isOver).toBe(true);
  expect(begun.cuts).toBe(1);
  const gone = new Begun();
  gone.isGone = true;
  begin(runner, gone).fail();
  await runner.settled();
  expect(gone.cuts).toBe(0);
  const well = new Begun();
  begin(runner, well).end();
  await runner.settled();
  expect(well.cuts).toBe(0);
});
