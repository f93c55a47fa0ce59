// Reading request logs back: the walk through what is retained, newest arrival first, in slices between which the log thread takes in new batches.

import { AccelError } from "../../core/faults.ts";
import { decodeRequestRecord, type RequestRecord } from "../../wire/request-log.ts";
import type { LogThread } from "./log-client.ts";
import { parsePosition } from "./log-position.ts";

export type LogQuery = {
  readonly deploymentSiteId: number;
  /** Main domains. */
  readonly domains: readonly string[];
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** Seconds since the epoch of the request, both included. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
};
export type LogPage = {
  readonly records: readonly (RequestRecord & { readonly deployment_id: number })[];
  /** Where the walk goes on. A page can be short, even empty, and yet have a next. */
  readonly next?: string;
};

/** Of one page: some 2 s of the log thread's time. */
const slicesMax = 100;

/** The walk is in the order of arrival, so every retained record comes once, however many arrive meanwhile. Throws NOT_FOUND for an `after` that is no cursor. */
export async function readLogs(thread: LogThread, query: LogQuery): Promise<LogPage> {
  const { deploymentSiteId, domains, limit, since, until } = query;
  let after = query.after === undefined ? undefined : positionOf(query.after);
  const lines: string[] = [];
  for (let slice = 1; ; slice++) {
    const part = await thread.read({
      siteId: deploymentSiteId,
      domains,
      limit: limit - lines.length,
      after,
      since,
      until,
    });
    lines.push(...part.lines);
    if (part.next === undefined || lines.length >= limit || slice === slicesMax) {
      const records = lines.map((line) => ({
        ...parseRecord(line),
        deployment_id: deploymentSiteId,
      }));
      return part.next === undefined ? { records } : { records, next: part.next };
    }
    after = positionOf(part.next);
  }
}

function positionOf(text: string): NonNullable<ReturnType<typeof parsePosition>> {
  const position = parsePosition(text);
  if (position === undefined) throw new AccelError("NOT_FOUND", "there is no such cursor");
  return position;
}

/** It was checked when it was taken in. */
function parseRecord(line: string): RequestRecord {
  const decoded = decodeRequestRecord(JSON.parse(line));
  if (!decoded.ok) throw new AccelError("DATABASE_BROKEN", "a stored request record is not valid");
  return decoded.value;
}
