// One day's file as the reading thread sees it: read-only, beside the writer (WAL). Each search sees its own
// moment of the file.

import { migrate, openSqlite, type Sqlite } from "../../base/sqlite.ts";
import type { CanarySeen } from "./log-day.ts";
import type { DayLoss } from "./log-losses.ts";
import { dayMigrations } from "./log-tables.ts";

/** Finds records of one domain below a place, newest first. */
export type DaySearch = {
  readonly siteId: number;
  readonly domain: string;
  /** Finds records with (us, id) below this, and with us not below `sinceUs`. */
  readonly belowUs: number;
  readonly belowId: number;
  readonly sinceUs: number;
};
export type DayRow = { readonly id: number; readonly atUs: number; readonly line: string };
/** The times between which the file's records happened. */
export type DaySpan = { readonly firstUs: number; readonly lastUs: number };

export class LogDayView implements Disposable {
  readonly #db: Sqlite;
  readonly #sql;

  /** Throws DATABASE_NEWER, and what SQLite throws for a file that is broken or gone. */
  constructor(path: string) {
    this.#db = openSqlite(path, { sync: "normal", readonly: true });
    try {
      migrate(this.#db, Array(dayMigrations.length).fill(refuseToMigrate));
      this.#sql = prepare(this.#db);
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  span(): DaySpan {
    return this.#sql.span.get() ?? { firstUs: Number.MAX_SAFE_INTEGER, lastUs: 0 };
  }

  /** Searches. Only one search at a time: until it is ended, the file can be asked nothing else. */
  search({ siteId, domain, belowUs, belowId, sinceUs }: DaySearch): IterableIterator<DayRow> {
    const series = this.#sql.seriesId.get(siteId, domain);
    if (series === undefined) return [][Symbol.iterator]();
    return this.#sql.rows.iterate(series.id, belowUs, belowId, sinceUs);
  }

  canaries(): readonly CanarySeen[] {
    return this.#sql.canaries.all();
  }

  /** Returns the sum of the gaps of each deployment site and reason. */
  losses(): readonly DayLoss[] {
    return this.#sql.losses.all();
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}

/**
 * Refuses a file that is not up to date. The writer brings every file up to date before it is read; one that
 * it is still beginning has nothing to read.
 */
function refuseToMigrate(): never {
  throw new DayNotReady();
}

export class DayNotReady extends Error {}

function prepare(db: Sqlite) {
  return {
    span: db.prepare<[], DaySpan>("SELECT first_us AS firstUs, last_us AS lastUs FROM span"),
    seriesId: db.prepare<[number, string], { id: number }>(
      "SELECT id FROM series WHERE site_id = ? AND domain = ?",
    ),
    rows: db.prepare<[number, number, number, number], DayRow>(
      `SELECT id, at_us AS atUs, line FROM record
       WHERE series_id = ? AND (at_us, id) < (?, ?) AND at_us >= ? ORDER BY at_us DESC, id DESC`,
    ),
    canaries: db.prepare<[], CanarySeen>(
      "SELECT site_id AS siteId, at_us AS atUs, arrived_ms AS arrivedMs FROM canary",
    ),
    losses: db.prepare<[], DayLoss>(
      `SELECT l.site_id AS siteId, g.reason, sum(g.at_least) AS atLeast, sum(g.to_seq - g.from_seq + 1) AS atMost,
         min(g.arrived_ms) AS firstMs, max(g.arrived_ms) AS lastMs
       FROM gap g JOIN lane l ON l.id = g.lane_id GROUP BY l.site_id, g.reason ORDER BY l.site_id, g.reason`,
    ),
  };
}
