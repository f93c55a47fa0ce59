// Central's request logs as a part: the directory, its threads, and what health and metrics say about
// them.

import { ensureDirectory } from "../base/durable-file.ts";
import { entryUrl } from "../base/entry.ts";
import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import type { AnalyticsPlace } from "./agents/analytics.ts";
import { LogThread } from "./agents/log-client.ts";
import type { AgentMetrics } from "./agents/metrics.ts";

/** Files of earlier releases are brought up to date before the first answer. */
const openTimeoutMs = 60_000;

/** Opens the logs. Throws if the directory cannot be used. */
export async function openLogs(
  directory: string,
  analytics: AnalyticsPlace,
  log: Log,
  health: Health,
  metrics: AgentMetrics,
): Promise<LogThread> {
  await ensureDirectory(directory);
  const thread = new LogThread({
    entry: entryUrl(import.meta.url, "./logger"),
    directory,
    analytics,
    log,
    broken: (path) =>
      health.raise(
        "log_file_broken",
        "error",
        `a file of ${path.startsWith(analytics.path) ? "numbers" : "request logs"} was broken and is set aside as ${path}`,
        path.startsWith(analytics.path)
          ? "Check the disk. Numbers are made again of the request logs that are kept; older ones are in the file, or in a backup."
          : "Check the disk; the records in the file can be read with sqlite3 .recover.",
        path,
      ),
    failing: (reason) => {
      metrics.accel_central_log_failing.set(reason === undefined ? 0 : 1);
      if (reason === undefined) return health.settle("logs_not_stored");
      health.raise(
        "logs_not_stored",
        "error",
        `request logs cannot be stored: ${reason}`,
        `Make room on the disk of ${directory}, or repair it. Meanwhile agents keep their records.`,
      );
    },
  });
  try {
    await thread.stats(openTimeoutMs); // A directory that cannot be used must be reported now.
    // The first question should not wait until the thread has begun. Numbers that cannot be kept are reported by the job that folds them.
    await thread.numbersBytes(openTimeoutMs).catch(() => undefined);
    return thread;
  } catch (error) {
    await thread[Symbol.asyncDispose]();
    throw error;
  }
}
