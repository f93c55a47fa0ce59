// The days of request logs where a database keeps them: those of the database, and before them those of files that are
// still there from when files kept them. No day is both (postgres-log-store.ts).

import type { DayView, LogDays } from "../log-days.ts";
import { PostgresDayView } from "./postgres-day-view.ts";
import type { WaitingSql } from "./waiting-sql.ts";

export class PostgresDays implements LogDays {
  readonly #sql: WaitingSql;
  readonly #files: LogDays;
  /** What tells each day of the database from others of its name, as of the last look. */
  #made: ReadonlyMap<string, number> = new Map();

  /** It ends both when it is disposed. */
  constructor(sql: WaitingSql, files: LogDays) {
    this.#sql = sql;
    this.#files = files;
  }

  /** Throws LOGS_UNAVAILABLE, as `view` does, and what is asked of a view. */
  list(): readonly string[] {
    const rows = this.#sql.query<{ day: string; made: number }>(
      "SELECT day, made FROM log_day WHERE is_begun ORDER BY day",
    );
    this.#made = new Map(rows.map(({ day, made }) => [day, made]));
    const files = this.#files.list().filter((day) => !this.#made.has(day));
    return [...files, ...this.#made.keys()].sort();
  }

  view(day: string): DayView | undefined {
    return this.#isOurs(day) ? new PostgresDayView(this.#sql, day) : this.#files.view(day);
  }

  close(day: string): void {
    this.#files.close(day);
  }

  closeOldest(read?: ReadonlySet<string>): void {
    this.#files.closeOldest(read);
  }

  identityOf(day: string): number {
    return this.#isOurs(day) ? (this.#made.get(day) ?? 0) : this.#files.identityOf(day);
  }

  /** The database sets no day aside. */
  isAside(day: string, identity: number): boolean {
    return this.#files.isAside(day, identity);
  }

  [Symbol.dispose](): void {
    this.#files[Symbol.dispose]();
    this.#sql[Symbol.dispose]();
  }

  #isOurs(day: string): boolean {
    return this.#made.has(day);
  }
}
