// How many requests were answered with a class of statuses. Pure.

import type { AnalyticsSpan } from "../wire/customer/analytics.ts";

/** `statusClass` is the first digit. The counts are by status. */
export function countInClass(
  counts: AnalyticsSpan["counts"] = {},
  statusClass: "2" | "3" | "4" | "5",
): number {
  return Object.entries(counts).reduce(
    (sum, [status, number]) => sum + (status.startsWith(statusClass) ? number : 0),
    0,
  );
}
