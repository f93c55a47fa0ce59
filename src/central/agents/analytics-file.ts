// `analytics.db` beside the request logs: what is counted of all domains. One thread writes and reads it. Commits are
// FULL-synchronous, because the file of a day goes once its counts are here.
//
// Invariant: what came from one file of a day is replaced as a whole (bucket by bucket, or everything), never added to,
// so folding a file again gives the same.

import {
  countsKeptSeconds,
  finenesses,
  topsKeptSeconds,
  type Fineness,
  type TopFineness,
} from "../../core/analytics/time-buckets.ts";
import { migrate, openSqlite, type Sqlite } from "../../base/sqlite.ts";
import { analyticsMigrations } from "./analytics-tables.ts";
import type { FoldedFile } from "./folded-file.ts";
import type { NumbersRow } from "./kept-numbers.ts";

/** The lists of most frequent keys. Addresses go with the file that they came from. */
export const topKinds = ["path", "bot", "status_path", "address"] as const;
export type TopKind = (typeof topKinds)[number];

/** What is removed for lack of room, in the order in which it goes; a slice of time (seconds) at once. */
const cuts = [
  { what: "minute", table: "counts", fineness: "minute", sliceS: 3_600 },
  { what: "top hour", table: "top", fineness: "hour", sliceS: 6 * 3_600 },
  { what: "hour", table: "counts", fineness: "hour", sliceS: 86_400 },
  { what: "top day", table: "top", fineness: "day", sliceS: 7 * 86_400 },
  { what: "day", table: "counts", fineness: "day", sliceS: 30 * 86_400 },
] as const;
/** The most slices in one turn, so that questions do not wait long. */
const slicesMax = 50;

export class AnalyticsFile implements Disposable {
  readonly #db: Sqlite;
  readonly #sql;
  readonly #series = new Map<string, number>();

  /** Throws DATABASE_NEWER, and what SQLite throws for a file that is broken. */
  constructor(path: string) {
    this.#db = openSqlite(path, { sync: "full" });
    try {
      migrate(this.#db, analyticsMigrations);
      this.#sql = prepare(this.#db);
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  transact<T>(action: () => T): T {
    try {
      return this.#db.transaction(action).immediate();
    } catch (error) {
      this.#series.clear();
      throw error;
    }
  }

  folded(day: string): FoldedFile | undefined {
    return this.#sql.file.get(day);
  }

  /** Returns the files that were there when they were folded last. */
  present(): readonly FoldedFile[] {
    return this.#sql.present.all();
  }

  setFolded({ day, inode, token, change, recordId, recordMark }: FoldedFile): void {
    this.#sql.setFile.run(day, inode, token, change, recordId, recordMark);
  }

  /** Notes that a file is gone: its counts stay, and its addresses go. */
  setGone(day: string): void {
    this.#sql.dropAddresses.run(day);
    this.#sql.setGone.run(day);
  }

  /** Forgets a file with everything that came from it. */
  forget(day: string): void {
    this.dropCounts(day);
    this.dropTops(day);
    this.#sql.dropFile.run(day);
  }

  /** Yields all numbers that came from one file, but for addresses, which go with it. Nothing may be written meanwhile. */
  rowsOf(day: string): Iterable<NumbersRow> {
    return this.#sql.rowsOf.iterate(day, day);
  }

  /** Takes the numbers of a day that is gone, in place of what came from it before. */
  take(folded: FoldedFile, rows: Iterable<NumbersRow>, nowS: number): void {
    this.transact(() => {
      this.forget(folded.day);
      for (const row of rows) this.#put(folded.day, row, nowS);
      this.setFolded(folded);
      this.#sql.setGone.run(folded.day);
    });
  }

  #put(
    day: string,
    { siteId, domain, fineness: code, kind, at, bytes }: NumbersRow,
    nowS: number,
  ): void {
    const fineness = finenesses[code];
    if (fineness === undefined) return;
    const top = topKinds.find((one) => one === kind);
    if (kind === "" && at >= this.countsSince(fineness, nowS))
      this.putCounts(this.seriesId(siteId, domain), fineness, at, day, bytes);
    if (top !== undefined && fineness !== "minute" && at >= this.topsSince(fineness, nowS))
      this.putTop({ seriesId: this.seriesId(siteId, domain), fineness, kind: top, at, day }, bytes);
  }

  dropCounts(day: string): void {
    this.#sql.dropCounts.run(day);
  }

  dropTops(day: string): void {
    this.#sql.dropTops.run(day);
  }

  seriesId(siteId: number, domain: string): number {
    const key = `${siteId}/${domain}`;
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    this.#sql.addSeries.run(siteId, domain);
    const id = this.#sql.seriesId.get(siteId, domain)?.id ?? 0;
    if (this.#series.size >= seriesKnownMax) this.#series.clear();
    this.#series.set(key, id);
    return id;
  }

  /** Returns the id of a series, or undefined if nothing was counted of it. */
  knownSeries(siteId: number, domain: string): number | undefined {
    return this.#sql.seriesId.get(siteId, domain)?.id;
  }

  putCounts(
    seriesId: number,
    fineness: Fineness,
    at: number,
    day: string,
    counts: Uint8Array,
  ): void {
    this.#sql.putCounts.run(seriesId, finenesses.indexOf(fineness), at, day, counts);
  }

  /** Yields what was counted of a series from the first bucket to before the second, of all files or of one. */
  counts(
    seriesId: number,
    fineness: Fineness,
    [from, to]: readonly [number, number],
    day?: string,
  ): readonly { readonly at: number; readonly counts: Uint8Array }[] {
    const code = finenesses.indexOf(fineness);
    return day === undefined
      ? this.#sql.counts.all(seriesId, code, from, to)
      : this.#sql.countsOfFile.all(seriesId, code, from, to, day);
  }

  putTop(key: TopPlace, keys: Uint8Array): void {
    const { seriesId, fineness, kind, at, day } = key;
    this.#sql.putTop.run(seriesId, finenesses.indexOf(fineness), kind, at, day, keys);
  }

  top({ seriesId, fineness, kind, at, day }: TopPlace): Uint8Array | undefined {
    return this.#sql.top.get(seriesId, finenesses.indexOf(fineness), kind, at, day)?.keys;
  }

  tops(
    seriesId: number,
    fineness: TopFineness,
    kind: TopKind,
    [from, to]: readonly [number, number],
  ): readonly Uint8Array[] {
    const rows = this.#sql.tops.all(seriesId, finenesses.indexOf(fineness), kind, from, to);
    return rows.map(({ keys }) => keys);
  }

  /** Returns since when counts of a fineness are kept; earlier ones may be there in part. */
  countsSince(fineness: Fineness, nowS: number): number {
    return Math.max(nowS - countsKeptSeconds[fineness], this.#cutOf(fineness));
  }

  topsSince(fineness: TopFineness, nowS: number): number {
    return Math.max(nowS - topsKeptSeconds[fineness], this.#cutOf(`top ${fineness}`));
  }

  /** Returns the bytes that are in use. */
  bytes(): number {
    const number = (name: string): number => Number(this.#db.pragma(name, { simple: true }));
    return (number("page_count") - number("freelist_count")) * number("page_size");
  }

  /** Removes what is too old, and then the finest and oldest while all is larger than `bytesMax`. */
  limit(bytesMax: number, nowS: number): void {
    this.transact(() => {
      for (const { table, fineness } of cuts) {
        const since =
          table === "counts" ? this.countsSince(fineness, nowS) : this.topsSince(fineness, nowS);
        this.#sql.dropBefore[table].run(finenesses.indexOf(fineness), since);
      }
    });
    for (let left = slicesMax; left > 0 && this.bytes() > bytesMax; left--)
      if (!this.#cutSlice()) return;
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  #cutOf(what: string): number {
    return this.#sql.cut.get(what)?.at ?? 0;
  }

  /** Returns whether there was something to remove. */
  #cutSlice(): boolean {
    for (const { what, table, fineness, sliceS } of cuts) {
      const code = finenesses.indexOf(fineness);
      const oldest = this.#sql.oldest[table].get(code)?.at ?? null;
      if (oldest === null) continue;
      this.transact(() => {
        this.#sql.dropBefore[table].run(code, oldest + sliceS);
        this.#sql.setCut.run(what, oldest + sliceS);
      });
      return true;
    }
    return false;
  }
}

/** Where one list of most frequent keys lies. */
export type TopPlace = {
  readonly seriesId: number;
  readonly fineness: TopFineness;
  readonly kind: TopKind;
  readonly at: number;
  readonly day: string;
};

/** The most ids of series in memory. */
const seriesKnownMax = 50_000;

function prepare(db: Sqlite) {
  const fileFields =
    "day, inode, token, change, record_id AS recordId, record_mark AS recordMark FROM file";
  const dropBefore = (table: string) =>
    db.prepare<[number, number]>(`DELETE FROM ${table} WHERE fineness = ? AND at < ?`);
  const oldest = (table: string) =>
    db.prepare<[number], { at: number | null }>(
      `SELECT min(at) AS at FROM ${table} WHERE fineness = ?`,
    );
  return {
    file: db.prepare<[string], FoldedFile>(`SELECT ${fileFields} WHERE day = ?`),
    present: db.prepare<[], FoldedFile>(`SELECT ${fileFields} WHERE is_gone = 0`),
    rowsOf: db.prepare<[string, string], NumbersRow>(
      `SELECT site_id AS siteId, domain, fineness, '' AS kind, at, counts AS bytes
       FROM counts JOIN series ON id = series_id WHERE day = ?
       UNION ALL SELECT site_id, domain, fineness, kind, at, keys
       FROM top JOIN series ON id = series_id WHERE day = ? AND kind <> 'address'`,
    ),
    setFile: db.prepare<[string, number, string, number, number, string]>(
      "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, 0)",
    ),
    setGone: db.prepare<[string]>("UPDATE file SET is_gone = 1 WHERE day = ?"),
    dropFile: db.prepare<[string]>("DELETE FROM file WHERE day = ?"),
    dropCounts: db.prepare<[string]>("DELETE FROM counts WHERE day = ?"),
    dropTops: db.prepare<[string]>("DELETE FROM top WHERE day = ?"),
    dropAddresses: db.prepare<[string]>("DELETE FROM top WHERE day = ? AND kind = 'address'"),
    addSeries: db.prepare<[number, string]>(
      "INSERT INTO series (site_id, domain) VALUES (?, ?) ON CONFLICT DO NOTHING",
    ),
    seriesId: db.prepare<[number, string], { id: number }>(
      "SELECT id FROM series WHERE site_id = ? AND domain = ?",
    ),
    putCounts: db.prepare<[number, number, number, string, Uint8Array]>(
      "INSERT OR REPLACE INTO counts (series_id, fineness, at, day, counts) VALUES (?, ?, ?, ?, ?)",
    ),
    counts: db.prepare<[number, number, number, number], { at: number; counts: Uint8Array }>(
      "SELECT at, counts FROM counts WHERE series_id = ? AND fineness = ? AND at >= ? AND at < ?",
    ),
    countsOfFile: db.prepare<
      [number, number, number, number, string],
      { at: number; counts: Uint8Array }
    >(
      "SELECT at, counts FROM counts WHERE series_id = ? AND fineness = ? AND at >= ? AND at < ? AND day = ?",
    ),
    putTop: db.prepare<[number, number, string, number, string, Uint8Array]>(
      "INSERT OR REPLACE INTO top (series_id, fineness, kind, at, day, keys) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    top: db.prepare<[number, number, string, number, string], { keys: Uint8Array }>(
      "SELECT keys FROM top WHERE series_id = ? AND fineness = ? AND kind = ? AND at = ? AND day = ?",
    ),
    tops: db.prepare<[number, number, string, number, number], { keys: Uint8Array }>(
      "SELECT keys FROM top WHERE series_id = ? AND fineness = ? AND kind = ? AND at >= ? AND at < ?",
    ),
    cut: db.prepare<[string], { at: number }>("SELECT at FROM cut WHERE what = ?"),
    setCut: db.prepare<[string, number]>("INSERT OR REPLACE INTO cut VALUES (?, ?)"),
    dropBefore: { counts: dropBefore("counts"), top: dropBefore("top") },
    oldest: { counts: oldest("counts"), top: oldest("top") },
  };
}
