// A place in the walk through request logs, newest first: when the request happened (µs since the epoch), the
// day of arrival, and the number in that day's file. Its text is `<us>.<YYYY-MM-DD>.<id>`. The record at the
// place was given; the walk goes on below it.

export type LogPosition = { readonly us: number; readonly day: string; readonly id: number };

/** The place above every record. */
export const walkStart: LogPosition = {
  us: Number.MAX_SAFE_INTEGER,
  day: "9999-12-31",
  id: Number.MAX_SAFE_INTEGER,
};

export function formatPosition({ us, day, id }: LogPosition): string {
  return `${us}.${day}.${id}`;
}

export function parsePosition(text: string): LogPosition | undefined {
  const [, us, day, id] = /^(\d{1,16})\.(\d{4}-\d\d-\d\d)\.(\d{1,16})$/.exec(text) ?? [];
  return day === undefined || !Number.isSafeInteger(Number(us)) || !Number.isSafeInteger(Number(id))
    ? undefined
    : { us: Number(us), day, id: Number(id) };
}

/**
 * Rounds seconds to whole µs, by which records are ordered and found. A time that no clock shows becomes the
 * nearest that is kept.
 */
export function toMicros(seconds: number): number {
  return Math.min(Math.max(Math.round(seconds * 1e6), 0), Number.MAX_SAFE_INTEGER);
}
