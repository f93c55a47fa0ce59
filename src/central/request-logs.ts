// Central's request logs as a part: the engine that the settings name, its threads, and what health and metrics say about
// them.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureDirectory } from "../base/durable-file.ts";
import { entryUrl } from "../base/entry.ts";
import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import { LogThread } from "./agents/log-client.ts";
import type { LogEngine } from "./agents/log-engine.ts";
import { inDatabaseMark, readInDatabase } from "./agents/log-files.ts";
import type { AgentMetrics } from "./agents/metrics.ts";
import { logPlaceText, type LogDatabase } from "./agents/postgres-logs/log-database.ts";
import type { CentralSettings } from "./settings/fields.ts";
import { readPassword } from "./settings/password-file.ts";

/** Files of earlier releases are brought up to date before the first answer. */
const openTimeoutMs = 60_000;

/** Where request logs are written, if not into files. Throws FILE_UNUSABLE for an authority that cannot be read. */
export function logDatabase(settings: CentralSettings): LogDatabase | undefined {
  const url = settings["request_logs.url"];
  if (url === undefined) return undefined;
  return {
    ...url,
    passwordFile: settings["request_logs.password_file"],
    tls:
      settings["request_logs.tls"] === "none"
        ? false
        : { ca: readCa(settings["request_logs.ca_file"]) },
  };
}

function readCa(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError(
      "FILE_UNUSABLE",
      `request_logs.ca_file cannot be read: ${messageOf(error)}`,
    );
  }
}

/** Names where request logs are written, in messages and in the status; without a password. */
export function logsText(settings: CentralSettings): string {
  const database = logDatabase(settings);
  return database === undefined ? logDirectory(settings) : logPlaceText(database);
}

const logDirectory = (settings: CentralSettings): string => join(settings.state_dir, "logs");

/**
 * Asks the database whether it can hold request logs; changes nothing. Returns its version; undefined where
 * request logs lie in files. Throws LOGS_UNAVAILABLE, LOGS_UNSUITED and DATABASE_NEWER.
 */
export async function tryLogs(settings: CentralSettings): Promise<string | undefined> {
  const database = logDatabase(settings);
  if (database === undefined) return undefined;
  readPassword("request_logs.password_file", database.passwordFile);
  const { tryLogDatabase } = await import("./agents/postgres-logs/try-log-database.ts");
  return tryLogDatabase(database);
}

export type LogOpening = {
  readonly settings: CentralSettings;
  readonly log: Log;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly metrics: AgentMetrics;
  /** Aborts when a stop waits no longer for a PostgreSQL. */
  readonly cut?: AbortSignal;
};

/**
 * Opens the logs. Throws if the directory cannot be used, and LOGS_MOVED where its files go on in a database that the settings
 * do not name. A database that is away is waited for while everything else goes on.
 */
export async function openLogs(opening: LogOpening): Promise<LogEngine> {
  const { settings, log, health, metrics, cut } = opening;
  const directory = logDirectory(settings);
  const database = logDatabase(settings);
  await ensureDirectory(directory);
  if (database === undefined) refuseMovedLogs(directory);
  const analytics = {
    path: join(settings.state_dir, "analytics.db"),
    bytesMax: settings["analytics.max"],
  };
  const fails = database === undefined ? failsOfDisk(directory) : failsOfDatabase(database);
  const thread = new LogThread({
    entry: entryUrl(import.meta.url, "./logger"),
    directory,
    ...(database !== undefined && {
      database: { database, entry: entryUrl(import.meta.url, "./sql").href },
      cut,
    }),
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
      if (reason === undefined) return health.settle(fails.code);
      health.raise(fails.code, "error", fails.text(reason), fails.hint);
    },
  });
  if (database !== undefined) {
    log.info({ logs: logPlaceText(database) }, "request logs are in PostgreSQL");
    return thread;
  }
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

type Fails = {
  readonly code: "logs_not_stored" | "logs_unreachable";
  readonly text: (reason: string) => string;
  readonly hint: string;
};

const failsOfDisk = (directory: string): Fails => ({
  code: "logs_not_stored",
  text: (reason) => `request logs cannot be stored: ${reason}`,
  hint: `Make room on the disk of ${directory}, or repair it. Meanwhile agents keep their records.`,
});

const failsOfDatabase = (database: LogDatabase): Fails => ({
  code: "logs_unreachable",
  text: (reason) => `request logs cannot be stored: ${reason}`,
  hint: `Look at the PostgreSQL of ${logPlaceText(database)}, its log, and the network there. Meanwhile agents keep their records.`,
});

/** Files that were written on would lack what agents were told that central has. */
function refuseMovedLogs(directory: string): void {
  const where = readInDatabase(directory);
  if (where === undefined) return;
  throw new AccelError(
    "LOGS_MOVED",
    `the request logs of ${directory} go on in ${where}, and \`request_logs.url\` is not set`,
    {
      hint: `Set \`request_logs\` in central.yaml again. To go back to files, remove ${join(directory, inDatabaseMark)}: what lies in the database is then not shown, and what agents had been told of is counted as lost.`,
    },
  );
}
