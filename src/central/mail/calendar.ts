// Decides which report is due: that of the last day in the reports' time zone whose hour has come. Pure.

export type ReportTimes = {
  readonly timeZone: string;
  /** `HH:MM`. */
  readonly at: string;
  /** 0 is Sunday. */
  readonly weekday: number;
};

const dayMs = 86_400_000;

/** Returns the `YYYY-MM-DD` of the last daily and of the last weekly report that should be out. */
export function duePeriods(
  now: Date,
  { timeZone, at, weekday }: ReportTimes,
): { readonly daily: string; readonly weekly: string } {
  const { day, time } = localTime(now, timeZone);
  const daily = time >= at ? day : plusDays(day, -1);
  const back = (new Date(daily).getUTCDay() - weekday + 7) % 7;
  return { daily, weekly: plusDays(daily, -back) };
}

function localTime(now: Date, timeZone: string): { readonly day: string; readonly time: string } {
  const parts = new Map(
    new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    })
      .formatToParts(now)
      .map(({ type, value }) => [type, value]),
  );
  const of = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? "";
  return {
    day: `${of("year")}-${of("month")}-${of("day")}`,
    time: `${of("hour")}:${of("minute")}`,
  };
}

function plusDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * dayMs).toISOString().slice(0, 10);
}
