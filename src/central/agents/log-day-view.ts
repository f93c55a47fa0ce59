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
/** A place above the rows that are wanted, of one series. */
export type SeriesRows = {
  readonly seriesId: number;
  readonly belowUs: number;
  readonly belowId: number;
  readonly sinceUs: number;
  readonly limit: number;
};
export type DaySeries = { readonly seriesId: number; readonly siteId: number };
/** A record with its series. */
export type SeriesRow = DayRow & { readonly seriesId: number };
/** The times between which the file's records happened. */
export type DaySpan = { readonly firstUs: number; readonly lastUs: number };

/** A minute that was counted. */
export type DayBucket = {
  readonly seriesId: number;
  readonly siteId: number;
  readonly domain: string;
  readonly minute: number;
  readonly change: number;
  readonly counts: Uint8Array;
};
/** How far the counts of a file are; log-tables.ts describes the fields. */
export type DayCounting = {
  readonly token: string;
  readonly tokenBefore: string;
  readonly sinceChange: number;
  readonly change: number;
};
export type ArrivedRecord = {
  readonly id: number;
  readonly siteId: number;
  readonly domain: string;
  readonly atUs: number;
  readonly line: string;
};

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

  /** Returns the series of a domain at these sites. */
  seriesOf(domain: string, siteIds: readonly number[]): readonly DaySeries[] {
    return this.#sql.seriesOf.all(JSON.stringify(siteIds), domain);
  }

  /** Returns rows of a series below a place, newest first. */
  below({ seriesId, belowUs, belowId, sinceUs, limit }: SeriesRows): readonly DayRow[] {
    return this.#sql.below.all(seriesId, belowUs, belowId, sinceUs, limit);
  }

  /** Returns rows of these series in the order of their arrival, after the one id and up to the other. */
  arrivedOf(
    seriesIds: readonly number[],
    afterId: number,
    throughId: number,
    limit: number,
  ): readonly SeriesRow[] {
    return this.#sql.arrivedOf.all(afterId, throughId, JSON.stringify(seriesIds), limit);
  }

  /** Returns the id of the record that came last; 0 if there is none. */
  lastId(): number {
    return this.#sql.lastId.get()?.id ?? 0;
  }

  record(id: number): ArrivedRecord | undefined {
    const [found] = this.arrived(id - 1, 1);
    return found?.id === id ? found : undefined;
  }

  canaries(): readonly CanarySeen[] {
    return this.#sql.canaries.all();
  }

  /** Returns the sum of the gaps of each deployment site and reason. */
  losses(): readonly DayLoss[] {
    return this.#sql.losses.all();
  }

  counting(): DayCounting {
    return this.#sql.counting.get() ?? { token: "", tokenBefore: "", sinceChange: 0, change: 0 };
  }

  /** Returns the minutes that were written after that change, in the order of their changes. */
  changedBuckets(after: number, limit: number): readonly DayBucket[] {
    return this.#sql.changed.all(after, limit);
  }

  /** Returns the counts of the minutes of a series from the first to before the second. */
  buckets(seriesId: number, fromMinute: number, toMinute: number): readonly Uint8Array[] {
    return this.#sql.buckets.all(seriesId, fromMinute, toMinute).map(({ counts }) => counts);
  }

  /** Returns records in the order of their arrival, after the one of that id. */
  arrived(afterId: number, limit: number): readonly ArrivedRecord[] {
    return this.#sql.arrived.all(afterId, limit);
  }

  /** Returns what tells a record from any that might come to lie under its id; undefined if there is none. */
  recordMark(id: number): string | undefined {
    const found = this.#sql.recordMark.get(id);
    return found === undefined
      ? undefined
      : `${found.epoch}/${found.no}/${found.seq}/${found.atUs}`;
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
    seriesOf: db.prepare<[string, string], DaySeries>(
      `SELECT s.id AS seriesId, s.site_id AS siteId FROM json_each(?) one
       CROSS JOIN series s ON s.site_id = one.value AND s.domain = ?`,
    ),
    below: db.prepare<[number, number, number, number, number], DayRow>(
      `SELECT id, at_us AS atUs, line FROM record
       WHERE series_id = ? AND (at_us, id) < (?, ?) AND at_us >= ? ORDER BY at_us DESC, id DESC LIMIT ?`,
    ),
    // The plus keeps the search by series away, which would sort all that a series has.
    arrivedOf: db.prepare<[number, number, string, number], SeriesRow>(
      `SELECT id, series_id AS seriesId, at_us AS atUs, line FROM record
       WHERE id > ? AND id <= ? AND +series_id IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?`,
    ),
    lastId: db.prepare<[], { id: number | null }>("SELECT max(id) AS id FROM record"),
    canaries: db.prepare<[], CanarySeen>(
      "SELECT site_id AS siteId, at_us AS atUs, arrived_ms AS arrivedMs FROM canary",
    ),
    counting: db.prepare<[], DayCounting>(
      `SELECT token, token_before AS tokenBefore, since_change AS sinceChange,
         coalesce((SELECT max(change) FROM bucket), 0) AS change FROM counting`,
    ),
    changed: db.prepare<[number, number], DayBucket>(
      `SELECT b.series_id AS seriesId, s.site_id AS siteId, s.domain, b.minute, b.change, b.counts
       FROM bucket b JOIN series s ON s.id = b.series_id WHERE b.change > ? ORDER BY b.change LIMIT ?`,
    ),
    buckets: db.prepare<[number, number, number], { counts: Uint8Array }>(
      "SELECT counts FROM bucket WHERE series_id = ? AND minute >= ? AND minute < ?",
    ),
    arrived: db.prepare<[number, number], ArrivedRecord>(
      `SELECT r.id, s.site_id AS siteId, s.domain, r.at_us AS atUs, r.line
       FROM record r JOIN series s ON s.id = r.series_id WHERE r.id > ? ORDER BY r.id LIMIT ?`,
    ),
    recordMark: db.prepare<[number], { epoch: string; no: number; seq: number; atUs: number }>(
      `SELECT l.epoch, l.no, r.seq, r.at_us AS atUs
       FROM record r JOIN lane l ON l.id = r.lane_id WHERE r.id = ?`,
    ),
    losses: db.prepare<[], DayLoss>(
      `SELECT l.site_id AS siteId, g.reason, sum(g.at_least) AS atLeast, sum(g.to_seq - g.from_seq + 1) AS atMost,
         min(g.arrived_ms) AS firstMs, max(g.arrived_ms) AS lastMs
       FROM gap g JOIN lane l ON l.id = g.lane_id GROUP BY l.site_id, g.reason ORDER BY l.site_id, g.reason`,
    ),
  };
}
