// The end of a pause of the cache, as documents say it: a time with its offset (RFC 3339 §5.6).

import { dayNumber } from "../http/http-date.ts";

/** The longest pause, ms: who forgets one has his cache again after a day. */
const pauseMsMax = 24 * 3_600_000;
/** Central and the customer may have different clocks. */
const clockDifferenceMsMax = 300_000;

const form =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** Returns milliseconds since the epoch, or undefined for a text that is no such time. */
export function parsePauseEnd(text: string): number | undefined {
  const parts = form.exec(text);
  if (parts === null) return undefined;
  const numbers = parts.slice(1, 7).map(Number);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = numbers;
  const [offsetHours, offsetMinutes] = [Number(parts[9] ?? 0), Number(parts[10] ?? 0)];
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60)
    return undefined;
  if (offsetHours > 23 || offsetMinutes > 59) return undefined;
  const firstDay = dayNumber(year, month, 1);
  const nextFirst = month === 12 ? dayNumber(year + 1, 1, 1) : dayNumber(year, month + 1, 1);
  if (day > nextFirst - firstDay) return undefined;
  const offset = (parts[8] === "-" ? -1 : 1) * (offsetHours * 60 + offsetMinutes);
  const minutes = (firstDay + day - 1) * 1_440 + hour * 60 + minute - offset;
  return minutes * 60_000 + second * 1_000 + Math.floor(Number(`0${parts[7] ?? ""}`) * 1_000);
}

/**
 * Says what is wrong with the end of a pause, or returns undefined. One that is past is no fault, because it
 * comes to every document. `nowMs` is undefined where the document was judged before.
 */
export function pauseEndFault(text: string, nowMs: number | undefined): string | undefined {
  const endMs = parsePauseEnd(text);
  if (endMs === undefined)
    return "is not a time with its offset, as in 2026-11-25T18:00:00Z (RFC 3339)";
  if (nowMs === undefined || endMs <= nowMs + pauseMsMax + clockDifferenceMsMax) return undefined;
  return "is more than a day ahead: a pause may last 24 hours at most";
}
