// Every night, removes files that no version names any more.

import { schedule } from "node-cron";
import type { Log } from "../../base/log.ts";

export type BlobCollectionJob = {
  readonly collect: (now: Date, stop: AbortSignal) => Promise<Readonly<Record<string, number>>>;
  readonly now: () => Date;
  readonly log: Log;
  /** Whether this central collects now, and not another at the store. Always, if absent. */
  readonly isOurs?: () => boolean;
};

const nightly = "43 3 * * *";

/** Starts the job. Disposing ends the run under way. */
export function startBlobCollection({
  collect,
  now,
  log,
  isOurs = () => true,
}: BlobCollectionJob): AsyncDisposable & {
  /** Runs now, after the run under way. Never rejects. */
  readonly run: () => Promise<void>;
} {
  const ending = new AbortController();
  let running = Promise.resolve();
  const once = async (): Promise<void> => {
    if (ending.signal.aborted || !isOurs()) return;
    try {
      log.info(await collect(now(), ending.signal), "unreferenced blobs were removed");
    } catch (error) {
      log.error({ err: error }, "unreferenced blobs are not removed; it is tried again tomorrow");
    }
  };
  const run = async (): Promise<void> => {
    running = running.then(once);
    return running;
  };
  const options = { name: "blob-collection", suppressMissedWarning: true };
  const task = schedule(nightly, () => void run(), options);
  return {
    run,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await task.destroy();
      await running;
    },
  };
}
