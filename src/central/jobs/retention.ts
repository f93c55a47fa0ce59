// What central forgets, by the calendar: answers kept for repeated POSTs, tokens that ended, old
// enrolment codes and counts of unreviewed bots, the audit trail, and request logs beyond their age and size.

import { schedule } from "node-cron";
import type { Log } from "../../base/log.ts";

export type RetentionDeps = {
  /** Each of these returns the number of rows removed. */
  readonly dropIdempotencyKeys: (now: Date) => Promise<number>;
  readonly dropAgentTokens: (now: Date) => Promise<number>;
  readonly dropTokens: (now: Date) => Promise<number>;
  readonly dropEnrolments: (now: Date) => Promise<number>;
  readonly dropUnreviewed: (now: Date) => Promise<number>;
  /** Returns the number of lines removed. */
  readonly dropAudit: (now: Date) => Promise<number>;
  /** Returns the days removed. */
  readonly dropLogs: (now: Date) => Promise<readonly string[]>;
  readonly now: () => Date;
  readonly log: Log;
};

/** Hourly, but not on the full hour, when everybody's jobs run. */
const hourly = "17 * * * *";

/**
 * Starts the job, which also runs once at the start, so that a program that never runs for an hour forgets
 * too. Disposing waits for the run under way.
 */
export function startRetention(deps: RetentionDeps): AsyncDisposable {
  let running = Promise.resolve();
  const run = (): void => {
    running = running.then(async () => forget(deps));
  };
  const task = schedule(hourly, run, { name: "retention", suppressMissedWarning: true });
  run();
  return {
    async [Symbol.asyncDispose]() {
      await task.destroy();
      await running;
    },
  };
}

/** Runs each step by itself: one that fails does not keep the others from running. */
async function forget({ now, log, ...drop }: RetentionDeps): Promise<void> {
  const at = now();
  const steps: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["idempotency keys", () => drop.dropIdempotencyKeys(at)],
    ["agent tokens", () => drop.dropAgentTokens(at)],
    ["ended tokens", () => drop.dropTokens(at)],
    ["enrolment codes", () => drop.dropEnrolments(at)],
    ["unreviewed bots", () => drop.dropUnreviewed(at)],
    ["audit trail", () => drop.dropAudit(at)],
    ["request logs", () => drop.dropLogs(at)],
  ];
  for (const [what, step] of steps) {
    try {
      const removed = await step();
      log.debug({ what, removed }, "retention");
    } catch (error) {
      log.error({ err: error, what }, "retention failed; it is tried again at the next hour");
    }
  }
}
