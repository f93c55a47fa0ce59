// Central's store of request logs read as it lies on disk, past everything that could make it look better: what is new since the last look.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openSqlite, type Sqlite } from "../../src/base/sqlite.ts";

export type StoredRow = {
  /** `<boot epoch>/<lane no>` */
  readonly lane: string;
  readonly seq: number;
  readonly line: string;
};
export type StoredGap = {
  readonly lane: string;
  readonly from: number;
  readonly to: number;
  readonly reason: string;
  readonly atLeast: number;
};
export type StoreNews = {
  readonly rows: readonly StoredRow[];
  readonly gaps: readonly StoredGap[];
  /** Of all lanes that central remembers. */
  readonly marks: ReadonlyMap<string, number>;
};

type Seen = { record: number; gap: number };

export class StoreReader {
  readonly #directory: string;
  readonly #seen = new Map<string, Seen>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Central may run meanwhile; it sees no reader. */
  news(): StoreNews {
    const rows: StoredRow[] = [];
    const gaps: StoredGap[] = [];
    let marks = new Map<string, number>();
    for (const file of this.#files()) {
      using db = openDay(join(this.#directory, file));
      const seen = this.#seen.get(file) ?? { record: 0, gap: 0 };
      this.#seen.set(file, seen);
      for (const { id, ...row } of db.rows(seen.record)) {
        rows.push(row);
        seen.record = Math.max(seen.record, id);
      }
      for (const { id, ...gap } of db.gaps(seen.gap)) {
        gaps.push(gap);
        seen.gap = Math.max(seen.gap, id);
      }
      marks = new Map(db.marks().map(({ lane, mark }) => [lane, mark]));
    }
    return { rows, gaps, marks };
  }

  /** Whether a record whose path begins so is there, among the newest. */
  hasPath(path: string): boolean {
    const newest = this.#files().at(-1);
    if (newest === undefined) return false;
    using db = openDay(join(this.#directory, newest));
    return db.newest().some(({ line }) => line.includes(`"uri_path":${JSON.stringify(path)}`));
  }

  /** Days in order; the last one is written. */
  #files(): readonly string[] {
    return readdirSync(this.#directory)
      .filter((name) => /^\d{4}-\d\d-\d\d\.db$/.test(name))
      .sort();
  }
}

const laneText = "l.epoch || '/' || l.no AS lane";
const newestMax = 20_000;

/** In one snapshot. */
function openDay(path: string) {
  const db: Sqlite = openSqlite(path, { sync: "full", readonly: true });
  db.exec("BEGIN");
  return {
    rows: (above: number) =>
      db
        .prepare<[number], StoredRow & { id: number }>(
          `SELECT r.id, ${laneText}, r.seq, r.line FROM record r JOIN lane l ON l.id = r.lane_id
           WHERE r.id > ? ORDER BY r.id`,
        )
        .all(above),
    gaps: (above: number) =>
      db
        .prepare<[number], StoredGap & { id: number }>(
          `SELECT g.id, ${laneText}, g.from_seq AS "from", g.to_seq AS "to", g.reason, g.at_least AS atLeast
           FROM gap g JOIN lane l ON l.id = g.lane_id WHERE g.id > ? ORDER BY g.id`,
        )
        .all(above),
    marks: () =>
      db
        .prepare<[], { lane: string; mark: number }>(`SELECT ${laneText}, l.mark FROM lane l`)
        .all(),
    newest: () =>
      db
        .prepare<[number], { line: string }>("SELECT line FROM record ORDER BY id DESC LIMIT ?")
        .all(newestMax),
    [Symbol.dispose]: () => db.close(),
  };
}
