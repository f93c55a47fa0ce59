// Asks a database whether it can hold request logs, without a thread: for a command.

import { PostgresLine } from "../../store/engine/postgres-line.ts";
import {
  judgeLogServer,
  logConnectionSettings,
  logFault,
  logLimits,
  logPlaceText,
  logPlaceOf,
  type LogDatabase,
} from "./log-database.ts";
import { refuseNewerLogTables } from "./log-schema.ts";

/** Returns the server's version. Changes nothing. Throws LOGS_UNAVAILABLE, LOGS_UNSUITED and DATABASE_NEWER. */
export async function tryLogDatabase(database: LogDatabase): Promise<string> {
  const where = logPlaceText(database);
  await using line = new PostgresLine({
    place: logPlaceOf(database),
    limits: logLimits,
    name: "accel-central check",
    settings: logConnectionSettings,
    prepare: async (ask) => {
      await judgeLogServer(ask, where);
      await refuseNewerLogTables(ask, where);
    },
    nowMs: () => performance.now(),
  });
  try {
    const [row] = await line.query(
      "SELECT current_setting('server_version') AS version",
      [],
      undefined,
    );
    return `PostgreSQL ${String(Object(row)["version"])}`;
  } catch (error) {
    throw logFault(error, where);
  }
}
