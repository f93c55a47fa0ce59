// Gives up imports that no host in touch can carry out (store/content/import-deadlines.ts, import-without.ts): at the start, then twice a minute.

import type { Log } from "../../base/log.ts";
import { repeatingFromNow } from "../../base/wait.ts";

export type ImportDeadlinesDeps = {
  /** Returns how many imports were given up. */
  readonly failOverdue: (now: Date) => Promise<number>;
  readonly now: () => Date;
  readonly log: Log;
  readonly intervalMs?: number;
};

/** Starts the job. Disposing waits for the run under way. */
export function startImportDeadlines(deps: ImportDeadlinesDeps): AsyncDisposable {
  const { failOverdue, now, log, intervalMs = 30_000 } = deps;
  const run = async (): Promise<void> => {
    const failed = await failOverdue(now());
    if (failed > 0)
      log.warn({ failed }, "imports were given up: no host is in touch that can carry them out");
  };
  const onError = (error: unknown): void =>
    log.error({ err: error }, "imports that are overdue could not be looked for");
  return repeatingFromNow(intervalMs, run, { onError });
}
