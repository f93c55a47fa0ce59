// Does work that lies in the store: asks again and again, and does all of it each time there is some.

import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";

export type PollingOptions = {
  /** The name in the log. */
  readonly name: string;
  /** Does one piece of work; returns false if there is none. */
  readonly step: (stop: AbortSignal) => Promise<boolean>;
  readonly periodMs: number;
  readonly log: Log;
};

/** Starts polling. Disposing lets the piece under way end. */
export function startPolling({ name, step, periodMs, log }: PollingOptions): AsyncDisposable {
  const ending = new AbortController();
  const { signal: stop } = ending;
  const run = async (): Promise<void> => {
    do {
      try {
        while (!stop.aborted && (await step(stop)));
      } catch (error) {
        log.error({ err: error }, `${name}: failed; it is tried again`);
      }
    } while (await sleep(periodMs, stop));
  };
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      await running;
    },
  };
}
