// A time in a query parameter, as every endpoint takes it.

/** Says what a time may be, to be read after "must be". */
export const queryTimeForm = "seconds since the epoch or an ISO 8601 time";

/** Returns seconds since the epoch, or undefined for a text that is no time. */
export function parseQueryTime(text: string): number | undefined {
  if (/^\d{1,11}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  const ms = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? undefined : ms / 1_000;
}
