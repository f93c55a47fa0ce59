// Decides when reports are due, in the time zone of the settings. What is due is looked up in the store, so a
// run that was missed while central was down is made up for once, at the start, and none is sent twice.

import { schedule } from "node-cron";
import type { Log } from "../../base/log.ts";

export type ReportScheduleDeps = {
  /** `HH:MM`. */
  readonly at: string;
  readonly timeZone: string;
  /** Sends what is due and not sent, and goes on where it was cut off. */
  readonly run: (stop: AbortSignal) => Promise<void>;
  readonly log: Log;
};

/** Starts the schedule, which also runs at the start. Disposing lets the customer under way be finished. */
export function startReportSchedule({
  at,
  timeZone,
  run,
  log,
}: ReportScheduleDeps): AsyncDisposable {
  const ending = new AbortController();
  let running = Promise.resolve();
  const once = async (): Promise<void> => {
    if (ending.signal.aborted) return;
    try {
      await run(ending.signal);
    } catch (error) {
      log.error(
        { err: error },
        "reports failed; they continue at the next full quarter of an hour",
      );
    }
  };
  const begin = (): void => {
    running = running.then(once);
  };
  const [hour, minute] = at.split(":").map(Number);
  const options = { timezone: timeZone, suppressMissedWarning: true };
  const tasks = [
    schedule(`${minute} ${hour} * * *`, begin, { ...options, name: "reports" }),
    // Makes up for what failed, and for what a host slept through.
    schedule("*/15 * * * *", begin, { ...options, name: "reports that are late" }),
  ];
  begin();
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      for (const task of tasks) await task.destroy();
      await running;
    },
  };
}
