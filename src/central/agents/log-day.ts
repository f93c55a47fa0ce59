// One day of arrival of request records: a SQLite file `<YYYY-MM-DD>.db`, written by the log thread alone.
//
//   lane(id, site_id, epoch, no, mark, updated_ms)     mark: the last record number committed of this lane
//   record(id, site_id, domain, lane_id, seq, happened, line)   id counts up: the order of arrival; line: the record as JSON
//   gap(id, lane_id, from_seq, to_seq, reason, arrived_ms)      records that the agent reported as lost
//
// Invariants: records, gaps and the mark of a batch are one FULL-synchronous transaction. The newest file holds the mark of every lane that
// is remembered: a new day begins with the marks of the day before, in the transaction that makes its tables, so older files can be unlinked.

import { closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { migrate, openSqlite, type Sqlite } from "../../base/sqlite.ts";
import type { LaneId } from "../../wire/request-log.ts";
import type { BatchGap, BatchRecord } from "./log-batch.ts";

export type LaneMark = {
  readonly siteId: number;
  readonly epoch: string;
  readonly no: number;
  readonly mark: number;
  readonly updatedMs: number;
};

export type DayBatch = {
  readonly siteId: number;
  readonly lane: LaneId;
  readonly lastSeq: number;
  readonly records: readonly BatchRecord[];
  readonly gaps: readonly BatchGap[];
  readonly nowMs: number;
};

export type DayQuery = {
  readonly siteId: number;
  readonly domain: string;
  /** Below this id, at most so many rows looked at. */
  readonly beforeId: number;
  readonly scan: number;
};

export type DayRow = { readonly id: number; readonly happened: number; readonly line: string };

const tables = `
  CREATE TABLE lane (
    id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL, epoch TEXT NOT NULL, no INTEGER NOT NULL,
    mark INTEGER NOT NULL, updated_ms INTEGER NOT NULL, UNIQUE (site_id, epoch, no)
  ) STRICT;
  CREATE TABLE record (
    id INTEGER PRIMARY KEY, site_id INTEGER NOT NULL, domain TEXT, lane_id INTEGER NOT NULL,
    seq INTEGER NOT NULL, happened REAL NOT NULL, line TEXT NOT NULL
  ) STRICT;
  CREATE INDEX record_of_domain ON record (site_id, domain);
  CREATE TABLE gap (
    id INTEGER PRIMARY KEY, lane_id INTEGER NOT NULL, from_seq INTEGER NOT NULL,
    to_seq INTEGER NOT NULL, reason TEXT NOT NULL, arrived_ms INTEGER NOT NULL
  ) STRICT;
`;

export class LogDay implements Disposable {
  readonly #db: Sqlite;
  readonly #sql;

  /** `carried` is read only when the file is new. Throws what SQLite throws for a broken file. */
  constructor(path: string, carried: () => Iterable<LaneMark>) {
    this.#db = openSqlite(path, { sync: "full" });
    try {
      migrate(this.#db, [
        (db) => {
          db.exec(tables);
          const insert = db.prepare<[number, string, number, number, number]>(
            "INSERT INTO lane (site_id, epoch, no, mark, updated_ms) VALUES (?, ?, ?, ?, ?)",
          );
          for (const { siteId, epoch, no, mark, updatedMs } of carried())
            insert.run(siteId, epoch, no, mark, updatedMs);
        },
      ]);
      this.#sql = prepare(this.#db);
    } catch (error) {
      this.#db.close();
      throw error;
    }
    syncDirectory(dirname(path));
  }

  /** 0 for a lane that is not known. */
  mark(siteId: number, { epoch, no }: LaneId): number {
    return this.#sql.mark.get(siteId, epoch, no)?.mark ?? 0;
  }

  *marksSince(updatedMs: number): Generator<LaneMark> {
    yield* this.#sql.marksSince.iterate(updatedMs);
  }

  /** Durable when it returns. */
  append({ siteId, lane, lastSeq, records, gaps, nowMs }: DayBatch): void {
    this.#db
      .transaction(() => {
        const row = this.#sql.setMark.get(siteId, lane.epoch, lane.no, lastSeq, nowMs);
        const laneId = row?.id ?? 0;
        for (const { domain, seq, when, line } of records)
          this.#sql.addRecord.run(siteId, domain, laneId, seq, when, line);
        for (const { fromSeq, toSeq, reason } of gaps)
          this.#sql.addGap.run(laneId, fromSeq, toSeq, reason, nowMs);
      })
      .immediate();
  }

  /** Newest first. */
  rows({ siteId, domain, beforeId, scan }: DayQuery): readonly DayRow[] {
    return this.#sql.rows.all(siteId, domain, beforeId, scan);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}

function prepare(db: Sqlite) {
  return {
    mark: db.prepare<[number, string, number], { mark: number }>(
      "SELECT mark FROM lane WHERE site_id = ? AND epoch = ? AND no = ?",
    ),
    marksSince: db.prepare<[number], LaneMark>(
      "SELECT site_id AS siteId, epoch, no, mark, updated_ms AS updatedMs FROM lane WHERE updated_ms >= ?",
    ),
    setMark: db.prepare<[number, string, number, number, number], { id: number }>(
      `INSERT INTO lane (site_id, epoch, no, mark, updated_ms) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET mark = excluded.mark, updated_ms = excluded.updated_ms RETURNING id`,
    ),
    addRecord: db.prepare<[number, string | null, number, number, number, string]>(
      "INSERT INTO record (site_id, domain, lane_id, seq, happened, line) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    addGap: db.prepare<[number, number, number, string, number]>(
      "INSERT INTO gap (lane_id, from_seq, to_seq, reason, arrived_ms) VALUES (?, ?, ?, ?, ?)",
    ),
    rows: db.prepare<[number, string, number, number], DayRow>(
      "SELECT id, happened, line FROM record WHERE site_id = ? AND domain = ? AND id < ? ORDER BY id DESC LIMIT ?",
    ),
  };
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
