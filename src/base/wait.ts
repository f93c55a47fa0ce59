// Waiting that ends: sleeping under a signal, retrying with jitter, deadlines.

import type { EventEmitter } from "node:events";
import { setTimeout as sleepFor } from "node:timers/promises";
import { backoffMs, lastAttempt, linkBackoff, type Backoff } from "../core/backoff.ts";

/**
 * The longest time of a timer (24.8 days). Node fires longer ones at once: a Retry-After of a year must not
 * become a busy loop.
 */
const timerMsMax = 2 ** 31 - 1;

/** Resolves after the time or when stopped, whichever is first; true if the time passed. */
export async function sleep(ms: number, stop: AbortSignal): Promise<boolean> {
  if (stop.aborted) return false;
  try {
    let leftMs = ms;
    for (; leftMs > timerMsMax; leftMs -= timerMsMax)
      await sleepFor(timerMsMax, undefined, { signal: stop });
    await sleepFor(leftMs, undefined, { signal: stop });
    return true;
  } catch {
    return false;
  }
}

/** Resolves when it is over, or after the time. It must not reject. */
export async function within(what: Promise<unknown>, ms: number): Promise<void> {
  const enough = new AbortController();
  await Promise.race([what, sleep(ms, enough.signal)]);
  enough.abort();
}

export type RetryOptions = {
  readonly stop: AbortSignal;
  readonly random: () => number;
  /** Of a function, what it returns for the failure before. */
  readonly backoff?: Backoff | ((error: unknown) => Backoff);
  /**
   * Called before each wait. Returns false to give up and rethrow, or the least milliseconds to wait (a
   * peer's Retry-After).
   */
  readonly onFailure: (error: unknown, attempt: number) => boolean | number;
};

/** Repeats `action` until it succeeds, is given up, or stop aborts (then the last error is thrown). */
export async function retry<T>(action: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let [attempt, step] = [0, 0]; ; attempt++, step++) {
    try {
      return await action();
    } catch (error) {
      if (options.stop.aborted) throw error;
      const verdict = options.onFailure(error, attempt);
      if (verdict === false) throw error;
      const leastMs = typeof verdict === "number" ? verdict : 0;
      const { backoff = linkBackoff } = options;
      const pace = typeof backoff === "function" ? backoff(error) : backoff;
      const waitMs = leastMs + backoffMs(step, options.random(), pace);
      step = Math.min(step, lastAttempt(pace));
      if (!(await sleep(waitMs, options.stop))) throw error;
    }
  }
}

export type EveryOptions = {
  readonly stop: AbortSignal;
  readonly spread?: number;
  readonly random?: () => number;
  readonly onError: (error: unknown) => void;
};

/**
 * Runs `action` every `periodMs` ± `spread` until stopped. An error goes to `onError`, and the loop goes on.
 */
export async function every(
  periodMs: number,
  action: () => Promise<void> | void,
  { stop, spread = 0, random = Math.random, onError }: EveryOptions,
): Promise<void> {
  while (await sleep(periodMs * (1 + spread * (2 * random() - 1)), stop)) {
    try {
      await action();
    } catch (error) {
      if (!stop.aborted) onError(error);
    }
  }
}

/** Without a `stop` of others it ends when it is disposed. */
export type RepeatingOptions = Omit<EveryOptions, "stop"> & Partial<Pick<EveryOptions, "stop">>;

type Repeated = (stop: AbortSignal) => Promise<void> | void;

/**
 * Repeats like `every`, and also ends when it is disposed: the action under way hears it from its signal, and
 * is waited for.
 */
export function repeating(
  periodMs: number,
  action: Repeated,
  options: RepeatingOptions,
): AsyncDisposable {
  return untilDisposed(options.stop, async (stop) =>
    every(periodMs, () => action(stop), { ...options, stop }),
  );
}

/** Runs `action` at once, and then repeats it like `repeating`: the first period begins when that has ended. */
export function repeatingFromNow(
  periodMs: number,
  action: Repeated,
  options: RepeatingOptions,
): AsyncDisposable {
  return untilDisposed(options.stop, async (stop) => {
    try {
      await action(stop);
    } catch (error) {
      if (!stop.aborted) options.onError(error);
    }
    await every(periodMs, () => action(stop), { ...options, stop });
  });
}

function untilDisposed(
  stop: AbortSignal | undefined,
  run: (stop: AbortSignal) => Promise<void>,
): AsyncDisposable {
  const own = new AbortController();
  const running = run(stop === undefined ? own.signal : AbortSignal.any([stop, own.signal]));
  return {
    [Symbol.asyncDispose]: async () => {
      own.abort();
      await running;
    },
  };
}

/** Resolves when the signal aborts, or at once if it has. */
export async function once(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  stop.addEventListener("abort", () => resolve(), { once: true });
  await promise;
}

/** Resolves when it closes, for whatever reason. The caller must know that it has not closed yet. */
export async function closeOf(one: EventEmitter): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  one.once("close", resolve);
  return promise;
}

// Waiting for the work of others no longer than we live ourselves.

/**
 * Returns the outcome of `work`, or undefined as soon as stopped. The work itself goes on, and its failure
 * then belongs to nobody.
 */
export async function orStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const stopped = (): void => resolve(undefined);
  stop.addEventListener("abort", stopped, { once: true });
  if (stop.aborted) stopped();
  try {
    return await Promise.race([work, promise]);
  } finally {
    stop.removeEventListener("abort", stopped);
  }
}
