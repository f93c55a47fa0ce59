// Units of work that the database may refuse because of others that run beside them: run at first beside each other, and repeated alone.
//
// PostgreSQL lets SERIALIZABLE transactions run at once and refuses those whose outcome would depend on it. Who is refused and tries at once meets the same
// others again. Here its second attempt runs alone in this process, in the order of arrival, so that it succeeds unless another process, or a single statement, is in its way.

import { sleep } from "../../../base/wait.ts";
import { backoffMs, type Backoff } from "../../../core/backoff.ts";

/** The attempts of one unit; the first is among them. */
export const attemptsMax = 12;
/** 12 attempts wait 3 s in the mean. */
const backoff: Backoff = { firstMs: 10, mostMs: 800 };

export type RepeatsOptions = {
  /** Whether the unit was refused without an effect, and may succeed when it is run again. `attempts` were made. */
  readonly mayRepeat: (error: unknown, attempts: number) => boolean;
  /** In [0, 1). */
  readonly random: () => number;
  /** Called before each repetition; must not throw. */
  readonly onRepeat: () => void;
};

/** Runs a unit until it is not refused, `attemptsMax` times at most, with a wait before each but the first two. Throws what the last attempt throws. */
export async function repeated<T>(
  attempt: (no: number) => Promise<T>,
  { mayRepeat, random, onRepeat }: RepeatsOptions,
): Promise<T> {
  const never = new AbortController().signal;
  for (let no = 1; ; no++) {
    try {
      return await attempt(no);
    } catch (error) {
      if (no >= attemptsMax || !mayRepeat(error, no)) throw error;
      onRepeat();
      if (no > 1) await sleep(backoffMs(no - 2, random(), backoff), never);
    }
  }
}

type Waiting = { readonly isAlone: boolean; readonly begin: () => void };

/** Who is alone is so in the order of arrival: nobody who comes later passes. */
export class Turns {
  #running = 0;
  #isAlone = false;
  readonly #waiting: Waiting[] = [];

  /** Runs the action beside others, or alone. The caller gets its outcome. */
  async run<T>(isAlone: boolean, action: () => Promise<T>): Promise<T> {
    await this.#begin(isAlone);
    try {
      return await action();
    } finally {
      this.#running--;
      this.#isAlone = false;
      this.#next();
    }
  }

  async #begin(isAlone: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ isAlone, begin: resolve });
    this.#next();
    await promise;
  }

  #next(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || this.#isAlone || (first.isAlone && this.#running > 0)) return;
      this.#waiting.shift();
      this.#running++;
      this.#isAlone = first.isAlone;
      first.begin();
    }
  }
}

/** Repeats units of one process over one database. */
export class Repeats {
  readonly #options: RepeatsOptions;
  readonly #turns = new Turns();

  constructor(options: RepeatsOptions) {
    this.#options = options;
  }

  /** Runs the unit. It may be run several times; only the last run counts. Throws what its last run throws. */
  async run<T>(unit: () => Promise<T>): Promise<T> {
    return repeated(async (no) => this.#turns.run(no > 1, unit), this.#options);
  }
}
