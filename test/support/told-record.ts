// Records as a worker tells them: as objects, or as the line that is shipped.

import type { CanaryLine, RequestRecord } from "../../src/wire/request-log.ts";

export function toldRecord<T extends RequestRecord | CanaryLine>(said: T | string): T {
  // A line is written by the agent itself, of one record.
  return typeof said === "string" ? (JSON.parse(said) as T) : said;
}
