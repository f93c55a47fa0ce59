// Waiting for a condition instead of for time.

import { setTimeout as sleep } from "node:timers/promises";

/** Only bounds a hang: much more than anything takes on a machine that is busy with other tests. */
const deadlineDefaultMs = 60_000;

/** Asks again until the answer is neither undefined nor false; fails with `what` after the deadline. */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  deadlineMs = deadlineDefaultMs,
): Promise<T> {
  const end = performance.now() + deadlineMs;
  let last: unknown;
  while (performance.now() < end) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    await sleep(15);
  }
  throw new Error(`not within ${deadlineMs} ms: ${what}`, { cause: last });
}
