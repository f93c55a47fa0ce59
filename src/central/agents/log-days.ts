// The days of request logs as they are read, whatever engine keeps them. log-open-days.ts has those in files, and
// postgres-logs/ has those in a database.

import type { LogDayView } from "./log-day-view.ts";

/** What can be asked of one day. Each question sees its own moment of it. */
export type DayView = Pick<LogDayView, keyof LogDayView>;

/** Synchronous, for the threads that read. Days that go or begin meanwhile are seen at the next look. */
export type LogDays = Disposable & {
  /** Returns the days that are there (YYYY-MM-DD), the oldest first. */
  list(): readonly string[];
  /** Opens a day, or returns undefined if it is just being begun or removed. Throws what its engine throws. */
  view(day: string): DayView | undefined;
  /** Forgets what is known of a day. */
  close(day: string): void;
  /** Closes the days that were used least recently while too many are open, but none of these. */
  closeOldest(read?: ReadonlySet<string>): void;
  /** Tells a day from any other that bears its name, before or after it; 0 if there is none. */
  identityOf(day: string): number;
  /** Whether the day of that identity was set aside because it is broken. */
  isAside(day: string, identity: number): boolean;
};
