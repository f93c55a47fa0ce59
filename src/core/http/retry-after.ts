// The field Retry-After (RFC 9110 §10.2.3): seconds, or a date.

import { parseHttpDate } from "./http-date.ts";

/** Returns how long to wait, ms; undefined where nothing is said that can be read. */
export function retryAfterMs(field: string | undefined, nowMs: number): number | undefined {
  if (field === undefined) return undefined;
  if (/^\d{1,10}$/.test(field)) return Number(field) * 1_000;
  const atMs = parseHttpDate(field);
  return atMs === undefined ? undefined : Math.max(0, atMs - nowMs);
}
