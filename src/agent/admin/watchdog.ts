// Feeds systemd's watchdog only while every thread makes progress. If a heartbeat stands still, the watchdog
// is not fed, and systemd restarts the agent.

import type { Log } from "../../base/log.ts";
import type { SdNotify } from "../../base/sd-notify.ts";
import { every } from "../../base/wait.ts";

export type Heartbeats = {
  /** Returns for each thread a number that changes while the thread is alive. */
  read(): Readonly<Record<string, number>>;
};

export type WatchdogOptions = {
  readonly notify: Pick<SdNotify, "send" | "watchdogMs">;
  readonly heartbeats: Heartbeats;
  readonly log: Log;
  readonly stop: AbortSignal;
};

/**
 * Feeds the watchdog three times in each of its periods. Returns when stopped, or at once if no watchdog is
 * set.
 */
export async function runWatchdog({
  notify,
  heartbeats,
  log,
  stop,
}: WatchdogOptions): Promise<void> {
  if (notify.watchdogMs === undefined) return;
  let last = heartbeats.read();
  const feed = async (): Promise<void> => {
    const current = heartbeats.read();
    const stuck = stuckThreads(last, current);
    last = current;
    if (stuck.length === 0) await notify.send("WATCHDOG=1");
    else log.error({ threads: stuck }, "threads make no progress; the watchdog is not fed");
  };
  await every(notify.watchdogMs / 3, feed, {
    stop,
    onError: (error) => log.error({ err: error }, "watchdog failed"),
  });
}

/**
 * Returns the threads that were there before and have made no progress since. A new thread has until the next
 * look.
 */
export function stuckThreads(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): readonly string[] {
  return Object.keys(after).filter(
    (thread) => before[thread] !== undefined && before[thread] === after[thread],
  );
}
