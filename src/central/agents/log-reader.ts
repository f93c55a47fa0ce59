// Reads request logs back: a page of the walk through what is retained, newest first.

import { AccelError } from "../../core/faults.ts";
import type { LogEngine } from "./log-engine.ts";
import { parsePosition } from "./log-position.ts";

export type LogQuery = {
  readonly deploymentSiteId: number;
  /** A main domain. */
  readonly domain: string;
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** The time of the request in seconds since the epoch, both bounds included. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
};
export type LogPage = {
  /** A JSON array of `LogLine` (`wire/customer/incoming-logs.ts`). */
  readonly logs: string;
  /** Where the walk goes on. */
  readonly next?: string;
};

/**
 * Reads a page in the order of the walk, so every record that was retained when it began comes once, however
 * many arrive meanwhile. Throws NOT_FOUND for an `after` that is no cursor.
 */
export async function readLogs(thread: LogEngine, query: LogQuery): Promise<LogPage> {
  const { deploymentSiteId: siteId, domain, limit, since, until } = query;
  const after = query.after === undefined ? undefined : positionOf(query.after);
  const { logs, next } = await thread.read({ siteId, domain, limit, after, since, until });
  return next === undefined ? { logs } : { logs, next };
}

function positionOf(text: string): NonNullable<ReturnType<typeof parsePosition>> {
  const position = parsePosition(text);
  if (position === undefined) throw new AccelError("NOT_FOUND", "there is no such cursor");
  return position;
}
