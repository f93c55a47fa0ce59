// Dates of HTTP (RFC 9110 §5.6.7): one form is written, three are read. They are computed by calendar
// arithmetic, because decisions ask no clock.

const months = "JanFebMarAprMayJunJulAugSepOctNovDec";
const days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]; // The epoch began on a Thursday.
const dayMs = 86_400_000;

/** Returns milliseconds since the epoch, or undefined for text that is no HTTP date. */
export function parseHttpDate(text: string): number | undefined {
  const fixed = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/.exec(
    text,
  );
  if (fixed !== null) return instant(fixed[3], fixed[2], fixed[1], fixed[4], fixed[5], fixed[6]);
  const rfc850 =
    /^[A-Z][a-z]{5,8}, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/.exec(text);
  if (rfc850 !== null) {
    // Two digits: 70 to 99 are of the last century, because such dates come from old software.
    const year = Number(rfc850[3]) + (Number(rfc850[3]) < 70 ? 2000 : 1900);
    return instant(`${year}`, rfc850[2], rfc850[1], rfc850[4], rfc850[5], rfc850[6]);
  }
  const asctime = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/.exec(
    text,
  );
  return asctime === null
    ? undefined
    : instant(asctime[6], asctime[1], asctime[2], asctime[3], asctime[4], asctime[5]);
}

function instant(
  year = "",
  monthName = "",
  day = "",
  hour = "",
  minute = "",
  second = "",
): number | undefined {
  const month = months.indexOf(monthName) / 3;
  if (!Number.isInteger(month) || month < 0) return undefined;
  const [d, h, m, s] = [Number(day), Number(hour), Number(minute), Number(second)];
  if (d < 1 || d > 31 || h > 23 || m > 59 || s > 60) return undefined;
  return dayNumber(Number(year), month + 1, d) * dayMs + ((h * 60 + m) * 60 + s) * 1_000;
}

/**
 * Returns the days since 1970-01-01 in the Gregorian calendar. Years begin in March, so that the leap day is
 * the last.
 */
export function dayNumber(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const yearOfEra = y - era * 400;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** Writes an IMF-fixdate in whole seconds, dropping the fraction. */
export function formatHttpDate(ms: number): string {
  const dayNo = Math.floor(ms / dayMs);
  const ofDay = Math.floor((ms - dayNo * dayMs) / 1_000);
  const shifted = dayNo + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  const day = dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const two = (n: number): string => `${n}`.padStart(2, "0");
  const time = `${two(Math.floor(ofDay / 3_600))}:${two(Math.floor(ofDay / 60) % 60)}:${two(ofDay % 60)}`;
  const weekday = days[((dayNo % 7) + 7) % 7] ?? "";
  const monthName = months.slice((month - 1) * 3, month * 3);
  return `${weekday}, ${two(day)} ${monthName} ${`${year}`.padStart(4, "0")} ${time} GMT`;
}
