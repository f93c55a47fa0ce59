// The times of `scrub.schedule`, which the settings have judged: five fields of cron with numbers, lists, ranges and steps, in the host's time. A library would ask ICU
// for the hour: 8 MiB that nothing else in an idle agent needs.

/** Between two looks at the clock, which may be set, or stand still while the host sleeps. */
const lookMs = 60_000;
/** A time that passed longer ago than this is left out. */
const lateMs = 2 * lookMs;
/** 29 February may be eight years away. */
const daysMax = 8 * 366;

type Times = {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  /** 0 and 7 are Sunday. */
  readonly weekdays: ReadonlySet<number>;
};

/**
 * Returns the first of these times after a moment, in milliseconds since the epoch; undefined if none comes. Day of the month and day of the week must both be right. A
 * time that the clock leaves out in spring comes an hour later; one that comes twice in autumn counts once.
 */
export function nextCronTime(schedule: string, afterMs: number): number | undefined {
  const { minutes, hours, days, months, weekdays } = timesOf(schedule);
  const after = new Date(afterMs);
  const [year, month, first] = [after.getFullYear(), after.getMonth(), after.getDate()];
  for (let day = first; day < first + daysMax; day++) {
    const date = new Date(year, month, day);
    const isWeekday = weekdays.has(date.getDay()) || (date.getDay() === 0 && weekdays.has(7));
    if (!isWeekday || !months.has(date.getMonth() + 1) || !days.has(date.getDate())) continue;
    for (const hour of hours)
      for (const minute of minutes) {
        const atMs = new Date(year, month, day, hour, minute).getTime();
        if (atMs > afterMs) return atMs;
      }
  }
  return undefined;
}

function timesOf(schedule: string): Times {
  const [minutes = "", hours = "", days = "", months = "", weekdays = ""] = schedule.split(" ");
  return {
    minutes: numbersOf(minutes, 0, 59),
    hours: numbersOf(hours, 0, 23),
    days: new Set(numbersOf(days, 1, 31)),
    months: new Set(numbersOf(months, 1, 12)),
    weekdays: new Set(numbersOf(weekdays, 0, 7)),
  };
}

/** Returns them in ascending order. */
function numbersOf(field: string, least: number, most: number): readonly number[] {
  const found = new Set<number>();
  for (const part of field.split(",")) {
    const [span = "", step] = part.split("/");
    const [first = least, last] = span === "*" ? [least, most] : span.split("-").map(Number);
    // A step behind one number goes on to the end.
    const end = last ?? (step === undefined ? first : most);
    for (let number = first; number <= end; number += Number(step ?? 1)) found.add(number);
  }
  return [...found].toSorted((one, other) => one - other);
}

/** Calls at each of these times until it is disposed of. A time that passes while the host sleeps, or that the clock jumps over, is left out. */
export function atCronTimes(schedule: string, now: () => Date, call: () => void): Disposable {
  let lookedMs = now().getTime();
  let dueMs = nextCronTime(schedule, lookedMs);
  const look = (): void => {
    const nowMs = now().getTime();
    const isDue = dueMs !== undefined && nowMs >= dueMs;
    const isInTime = isDue && nowMs - (dueMs ?? 0) < lateMs;
    // A clock that was set back may have been years ahead.
    if (isDue || nowMs < lookedMs) dueMs = nextCronTime(schedule, nowMs);
    lookedMs = nowMs;
    next = later(nowMs);
    if (isInTime) call();
  };
  const later = (nowMs: number): NodeJS.Timeout =>
    setTimeout(look, Math.min(lookMs, Math.max(0, (dueMs ?? Infinity) - nowMs)));
  let next = later(lookedMs);
  return { [Symbol.dispose]: () => clearTimeout(next) };
}
