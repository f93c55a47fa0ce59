// Waiting that ends: sleep, retry, every. Times are short here; what is asserted is order and outcome, not duration.

import { expect, test } from "vitest";
import { every, repeating, repeatingFromNow, retry, sleep } from "../../src/base/wait.ts";

const backoff = { firstMs: 1, mostMs: 2 };

test("sleep says whether the time passed", async () => {
  const stop = new AbortController();
  expect(await sleep(1, stop.signal)).toBe(true);
  const long = sleep(60_000, stop.signal);
  stop.abort();
  expect(await long).toBe(false);
  expect(await sleep(1, stop.signal)).toBe(false);
});

test("a time beyond what a timer can hold does not pass at once", async () => {
  for (const ms of [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
    const stop = new AbortController();
    const asleep = sleep(ms, stop.signal);
    const first = await Promise.race([
      asleep,
      sleep(20, new AbortController().signal).then(() => "awake"),
    ]);
    expect(first).toBe("awake");
    stop.abort();
    expect(await asleep).toBe(false);
  }
});

test("retry repeats until it succeeds and tells each failure", async () => {
  const told: [string, number][] = [];
  let calls = 0;
  const value = await retry(
    async () => {
      calls++;
      if (calls < 4) throw new Error(`no ${calls}`);
      return calls;
    },
    {
      stop: new AbortController().signal,
      random: () => 0.5,
      backoff,
      onFailure: (error, attempt) => {
        told.push([String(error), attempt]);
        return true;
      },
    },
  );
  expect(value).toBe(4);
  expect(told).toEqual([
    ["Error: no 1", 0],
    ["Error: no 2", 1],
    ["Error: no 3", 2],
  ]);
});

test("retry gives up when told to, with the error", async () => {
  let calls = 0;
  const given = retry(
    async () => {
      calls++;
      throw new Error("never");
    },
    {
      stop: new AbortController().signal,
      random: () => 0,
      backoff,
      onFailure: (_, attempt) => attempt < 2,
    },
  );
  await expect(given).rejects.toThrow("never");
  expect(calls).toBe(3);
});

test("retry waits at least as long as it was told", async () => {
  const beganMs = performance.now();
  let calls = 0;
  await retry(
    async () => {
      if (calls++ === 0) throw new Error("busy");
    },
    { stop: new AbortController().signal, random: () => 0, backoff, onFailure: () => 60 },
  );
  expect(performance.now() - beganMs).toBeGreaterThan(55);
});

test("retry adds its jitter to what it was told: a fleet that was told the same does not come back together", async () => {
  const beganMs = performance.now();
  let calls = 0;
  await retry(
    async () => {
      if (calls++ === 0) throw new Error("busy");
    },
    {
      stop: new AbortController().signal,
      random: () => 0.999,
      backoff: { firstMs: 60, mostMs: 60 },
      onFailure: () => 60,
    },
  );
  expect(performance.now() - beganMs).toBeGreaterThan(115);
});

test("retry ends with the last error when stopped, before and during a wait", async () => {
  const stop = new AbortController();
  const options = { stop: stop.signal, random: () => 0.5, onFailure: () => 60_000 };
  let calls = 0;
  const failing = retry(async () => {
    calls++;
    throw new Error("down");
  }, options);
  stop.abort();
  await expect(failing).rejects.toThrow("down");
  expect(calls).toBe(1);
  const late = retry(async () => Promise.reject(new Error("late")), options);
  await expect(late).rejects.toThrow("late");
});

test("every goes on after an error and ends when stopped", async () => {
  const stop = new AbortController();
  const errors: unknown[] = [];
  let runs = 0;
  await every(
    1,
    () => {
      runs++;
      if (runs === 2) throw new Error("once");
      if (runs === 4) stop.abort();
    },
    { stop: stop.signal, onError: (error) => errors.push(String(error)) },
  );
  expect(runs).toBe(4);
  expect(errors).toEqual(["Error: once"]);
});

test("every does not overlap itself, and an error while stopping is nobody's", async () => {
  const stop = new AbortController();
  let running = 0;
  let runs = 0;
  await every(
    1,
    async () => {
      expect(++running).toBe(1);
      await sleep(5, new AbortController().signal);
      running--;
      if (++runs < 3) return;
      stop.abort();
      throw new Error("aborted");
    },
    { stop: stop.signal, onError: () => expect.unreachable() },
  );
  expect(runs).toBe(3);
});

test("from now: at once, after an error again, never beside itself, and not after it is disposed", async () => {
  const errors: unknown[] = [];
  const third = Promise.withResolvers<void>();
  let running = 0;
  let runs = 0;
  const action = async (stop: AbortSignal): Promise<void> => {
    expect(++running).toBe(1);
    await sleep(5, stop);
    running--;
    if (++runs === 1) throw new Error("the first");
    if (runs === 3) third.resolve();
  };
  const repeated = repeatingFromNow(1, action, { onError: (error) => errors.push(String(error)) });
  expect(running).toBe(1);
  await third.promise;
  await repeated[Symbol.asyncDispose]();
  const ended = runs;
  await sleep(5, new AbortController().signal);
  expect([runs, running]).toEqual([ended, 0]);
  expect(errors).toEqual(["Error: the first"]);
});

test.each([
  ["repeating", repeating],
  ["repeatingFromNow", repeatingFromNow],
])(
  "%s: disposing is heard by the action under way and waits for it, and its error is nobody's",
  async (_, start) => {
    const began = Promise.withResolvers<void>();
    let isOver = false;
    const action = async (stop: AbortSignal): Promise<void> => {
      began.resolve();
      await sleep(60_000, stop);
      isOver = true;
      throw new Error("broken off");
    };
    const repeated = start(1, action, { onError: () => expect.unreachable() });
    await began.promise;
    await repeated[Symbol.asyncDispose]();
    expect(isOver).toBe(true);
  },
);

test.each([
  [0, 50],
  [0.5, 100],
  [0.999, 149],
])("the spread moves the period: chance %d", async (chance, leastMs) => {
  const stop = new AbortController();
  const beganMs = performance.now();
  await every(100, () => stop.abort(), {
    stop: stop.signal,
    spread: 0.5,
    random: () => chance,
    onError: () => expect.unreachable(),
  });
  expect(performance.now() - beganMs).toBeGreaterThan(leastMs - 2);
});
