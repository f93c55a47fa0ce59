// One day of arrival of request records, `<YYYY-MM-DD>.db`, as the log thread writes it. log-tables.ts
// describes its tables.
//
// Invariants: records, gaps and the mark of a batch are one FULL-synchronous transaction. The newest file
// holds the mark of every lane that is remembered: a new day begins with the marks of the day before, in the
// transaction that makes its tables, so older files can be unlinked.

import { closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { migrate, openSqlite, type Sqlite } from "../../base/sqlite.ts";
import type { LaneId } from "../../wire/request-log.ts";
import { DayCounts } from "./log-day-counts.ts";
import type { BatchCanary, BatchGap, BatchRecord } from "./log-batch.ts";
import { toMicros } from "./log-position.ts";
import { dayMigrations } from "./log-tables.ts";

export type DayMark = {
  readonly siteId: number;
  readonly epoch: string;
  readonly no: number;
  readonly mark: number;
  readonly updatedMs: number;
};
/** When the newest canary of a site was made, and when it arrived here. */
export type CanarySeen = {
  readonly siteId: number;
  readonly atUs: number;
  readonly arrivedMs: number;
};

/** The facts with which a new day begins. */
export type Carried = {
  readonly marks: Iterable<DayMark>;
  readonly canaries: Iterable<CanarySeen>;
};

export type DayBatch = {
  readonly siteId: number;
  readonly lane: LaneId;
  readonly lastSeq: number;
  readonly records: readonly BatchRecord[];
  readonly canaries: readonly BatchCanary[];
  readonly gaps: readonly BatchGap[];
  readonly nowMs: number;
};

/** The most ids of (site, domain) held in memory, some 10 MB. */
const seriesKnownMax = 50_000;
/**
 * 32 MiB of 4 KiB pages: at 20 MB/s of records, the WAL is folded into the file once in a second or two, not
 * at every batch.
 */
const checkpointPages = 8_192;

export class LogDay implements Disposable {
  readonly #db: Sqlite;
  readonly #sql;
  readonly #counts;
  readonly #series = new Map<string, number>();

  /** `carried` is read only when the file is new. Throws what SQLite throws for a broken file. */
  constructor(path: string, carried: () => Carried) {
    this.#db = openSqlite(path, { sync: "full" });
    try {
      this.#db.pragma(`wal_autocheckpoint = ${checkpointPages}`);
      if (this.#db.pragma("user_version", { simple: true }) === 0) begin(this.#db, carried());
      migrate(this.#db, dayMigrations);
      this.#sql = prepare(this.#db);
      this.#counts = new DayCounts(this.#db);
    } catch (error) {
      this.#db.close();
      throw error;
    }
    syncDirectory(dirname(path));
  }

  /** Returns the mark of a lane, 0 if the lane is not known. */
  mark(siteId: number, { epoch, no }: LaneId): number {
    return this.#sql.mark.get(siteId, epoch, no)?.mark ?? 0;
  }

  /** Returns the marks of lanes that were not silent since then, and all canaries. */
  carriedSince(updatedMs: number): Carried {
    return { marks: this.#sql.marksSince.all(updatedMs), canaries: this.#sql.canaries.all() };
  }

  /**
   * Runs the action in a transaction: what it adds is durable when this returns, and nothing of it is there
   * when it throws.
   */
  transact<T>(action: () => T): T {
    try {
      return this.#db
        .transaction(() => {
          const result = action();
          this.#counts.flush();
          return result;
        })
        .immediate();
    } catch (error) {
      this.#series.clear(); // Some of them were made by what is undone.
      this.#counts.undo();
      throw error;
    }
  }

  /** Adds a batch. Must be called inside `transact`. */
  add({ siteId, lane, lastSeq, records, canaries, gaps, nowMs }: DayBatch): void {
    const laneId = this.#sql.setMark.get(siteId, lane.epoch, lane.no, lastSeq, nowMs)?.id ?? 0;
    let firstUs = Number.MAX_SAFE_INTEGER;
    let lastUs = 0;
    for (const { domain, seq, when, line, record } of records) {
      const atUs = toMicros(when);
      firstUs = Math.min(firstUs, atUs);
      lastUs = Math.max(lastUs, atUs);
      const seriesId = this.#seriesId(siteId, domain ?? "");
      this.#sql.addRecord.run(seriesId, laneId, seq, atUs, line);
      this.#counts.of(seriesId, atUs).add(record);
    }
    for (const { seq, at, line } of canaries) {
      // A clock that is ahead must not make later canaries look older.
      const atUs = Math.min(toMicros(at), nowMs * 1_000);
      this.#sql.addRecord.run(this.#seriesId(siteId, ""), laneId, seq, atUs, line);
      this.#sql.setCanary.run(siteId, atUs, nowMs);
    }
    for (const gap of gaps) {
      const { fromSeq, toSeq, reason, atLeast } = gap;
      this.#sql.addGap.run(laneId, fromSeq, toSeq, reason, nowMs, atLeast);
      const seriesId = this.#seriesId(siteId, "");
      const atUs = gapMicros(gap, records, nowMs);
      this.#counts.of(seriesId, atUs).miss(atLeast, toSeq - fromSeq + 1);
    }
    if (records.length > 0) this.#sql.widen.run(firstUs, lastUs);
  }

  /** Throws what a batch would be refused for, without writing one. */
  tryToWrite(nowMs: number): void {
    this.#sql.tryToWrite.run(nowMs);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  #seriesId(siteId: number, domain: string): number {
    const key = `${siteId}/${domain}`;
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    this.#sql.addSeries.run(siteId, domain);
    const id = this.#sql.seriesId.get(siteId, domain)?.id ?? 0;
    if (this.#series.size >= seriesKnownMax) this.#series.clear();
    this.#series.set(key, id);
    return id;
  }
}

/**
 * Returns when the records of a gap may have happened: when the one before it did, or the one behind it, or else now,
 * for a gap has no time of its own.
 */
export function gapMicros(
  { fromSeq }: BatchGap,
  records: readonly BatchRecord[],
  nowMs: number,
): number {
  const [first] = records;
  const before = records.findLast(({ seq }) => seq < fromSeq) ?? first;
  return before === undefined ? nowMs * 1_000 : toMicros(before.when);
}

function prepare(db: Sqlite) {
  return {
    mark: db.prepare<[number, string, number], { mark: number }>(
      "SELECT mark FROM lane WHERE site_id = ? AND epoch = ? AND no = ?",
    ),
    marksSince: db.prepare<[number], DayMark>(
      "SELECT site_id AS siteId, epoch, no, mark, updated_ms AS updatedMs FROM lane WHERE updated_ms >= ?",
    ),
    canaries: db.prepare<[], CanarySeen>(
      "SELECT site_id AS siteId, at_us AS atUs, arrived_ms AS arrivedMs FROM canary",
    ),
    setMark: db.prepare<[number, string, number, number, number], { id: number }>(
      `INSERT INTO lane (site_id, epoch, no, mark, updated_ms) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET mark = excluded.mark, updated_ms = excluded.updated_ms RETURNING id`,
    ),
    addSeries: db.prepare<[number, string]>(
      "INSERT INTO series (site_id, domain) VALUES (?, ?) ON CONFLICT DO NOTHING",
    ),
    seriesId: db.prepare<[number, string], { id: number }>(
      "SELECT id FROM series WHERE site_id = ? AND domain = ?",
    ),
    addRecord: db.prepare<[number, number, number, number, string]>(
      "INSERT INTO record (series_id, lane_id, seq, at_us, line) VALUES (?, ?, ?, ?, ?)",
    ),
    setCanary: db.prepare<[number, number, number]>(
      `INSERT INTO canary (site_id, at_us, arrived_ms) VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET at_us = excluded.at_us, arrived_ms = excluded.arrived_ms WHERE excluded.at_us >= at_us`,
    ),
    addGap: db.prepare<[number, number, number, string, number, number]>(
      "INSERT INTO gap (lane_id, from_seq, to_seq, reason, arrived_ms, at_least) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    widen: db.prepare<[number, number]>(
      "UPDATE span SET first_us = min(first_us, ?), last_us = max(last_us, ?)",
    ),
    tryToWrite: db.prepare<[number]>("UPDATE span SET tried_ms = ?"),
  };
}

/**
 * Makes the tables and carries over the facts in one transaction, so that a file that has tables has the
 * marks.
 */
function begin(db: Sqlite, { marks, canaries }: Carried): void {
  db.transaction(() => {
    for (const migration of dayMigrations) migration(db);
    const addMark = db.prepare<[number, string, number, number, number]>(
      "INSERT INTO lane (site_id, epoch, no, mark, updated_ms) VALUES (?, ?, ?, ?, ?)",
    );
    for (const { siteId, epoch, no, mark, updatedMs } of marks)
      addMark.run(siteId, epoch, no, mark, updatedMs);
    const addCanary = db.prepare<[number, number, number]>("INSERT INTO canary VALUES (?, ?, ?)");
    for (const { siteId, atUs, arrivedMs } of canaries) addCanary.run(siteId, atUs, arrivedMs);
    db.pragma(`user_version = ${dayMigrations.length}`);
  }).immediate();
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
