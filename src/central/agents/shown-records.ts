// Writes stored request records as `/incominglogs/` shows them. The reading thread makes the text, so that
// central's main thread neither parses nor encodes records.

import { AccelError } from "../../core/faults.ts";
import type { LogLine } from "../../wire/customer/incoming-logs.ts";
import { decodeRequestRecord, type RequestRecord } from "../../wire/request-log.ts";

/** Returns a JSON array of `LogLine`, in the order of the lines. */
export function showRecords(lines: readonly string[], siteId: number): string {
  return `[${lines.map((line) => JSON.stringify(shown(parseRecord(line), siteId))).join(",")}]`;
}

function shown(record: RequestRecord, siteId: number): LogLine {
  return {
    connection: record.connection,
    response_status: record.response_status,
    request_method: record.request_method,
    uri_path: record.uri_path,
    backend_time: record.backend_time,
    when: record.when,
    authority: record.authority,
    deployment_id: siteId,
  };
}

/** Parses a record, which was checked when it was taken in. */
function parseRecord(line: string): RequestRecord {
  const decoded = decodeRequestRecord(JSON.parse(line));
  if (!decoded.ok) throw new AccelError("DATABASE_BROKEN", "a stored request record is not valid");
  return decoded.value;
}
