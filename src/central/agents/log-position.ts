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
 * A place in the order of arrival: the record of that number in that day's file and all before it had come. Its text
 * is `<YYYY-MM-DD>.<id>`.
 */
export type ArrivalPlace = { readonly day: string; readonly id: number };

/** The place before every record. */
export const arrivalStart: ArrivalPlace = { day: "0000-00-00", id: 0 };

export function formatArrival({ day, id }: ArrivalPlace): string {
  return `${day}.${id}`;
}

export function parseArrival(text: string): ArrivalPlace | undefined {
  const [, day, id] = /^(\d{4}-\d\d-\d\d)\.(\d{1,15})$/.exec(text) ?? [];
  return day === undefined ? undefined : { day, id: Number(id) };
}

/** Whether a record had come when all up to the place had. */
export function hadArrived({ day, id }: ArrivalPlace, through: ArrivalPlace): boolean {
  return day < through.day || (day === through.day && id <= through.id);
}

/**
 * A place in a search: in the walk, through what had arrived when it began, so that what comes later is nobody's but
 * a follower's. Its text is both, with a dot between them.
 */
export type SearchPlace = { readonly below: LogPosition; readonly arrived: ArrivalPlace };

export function formatSearchPlace({ below, arrived }: SearchPlace): string {
  return `${formatPosition(below)}.${formatArrival(arrived)}`;
}

export function parseSearchPlace(text: string): SearchPlace | undefined {
  const [, position = "", arrival = ""] = /^(\d+\.[\d-]+\.\d+)\.(.+)$/.exec(text) ?? [];
  const [below, arrived] = [parsePosition(position), parseArrival(arrival)];
  return below === undefined || arrived === undefined ? undefined : { below, arrived };
}

/**
 * Rounds seconds to whole µs, by which records are ordered and found. A time that no clock shows becomes the
 * nearest that is kept.
 */
export function toMicros(seconds: number): number {
  return Math.min(Math.max(Math.round(seconds * 1e6), 0), Number.MAX_SAFE_INTEGER);
}
