// Work that lies in the store until somebody does it: asked for again and again, all of it done each time there is some.

import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";

export type PollingOptions = {
  /** The name in the log. */
  readonly name: string;
  /** One piece; false: there is none. */
  readonly step: (stop: AbortSignal) => Promise<boolean>;
  readonly periodMs: number;
  readonly log: Log;
};

/** Disposing lets the piece under way end. */
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
