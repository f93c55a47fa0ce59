// The request logs of all deployment sites as they are written into PostgreSQL: log-schema.ts has the tables.
// Synchronous, in the log thread that writes.
//
// Invariants: records, gaps, counts and marks of batches are one transaction, which holds the lock of `log_head` from before
// it reads a mark until it has committed. So a lane's mark is read by one at a time, of however many centrals, and numbers
// of records count up in the order in which they can be seen: who follows them misses none.
//
// Days never go back, and begin behind those of files that were written before the database was. Files are read and
// removed, and written no more.

import { randomUUID } from "node:crypto";
import { AccelError } from "../../../core/faults.ts";
import type { RequestCounts } from "../../../core/analytics/request-counts.ts";
import { decodeBatch, type BatchRead } from "../log-batch.ts";
import type { DayBatch } from "../log-day.ts";
import { readableCounts } from "../log-day-counts.ts";
import type { LogWriter } from "../log-engine.ts";
import { markInDatabase, readInDatabase } from "../log-files.ts";
import { LogStore, marksKeptMs, type Retention } from "../log-store.ts";
import { takeBatch, type AppendOutcome, type AppendRequest } from "../log-take.ts";
import {
  copyText,
  keyOfLane,
  keyOfSeries,
  rowsOf,
  type BatchRows,
  type LaneName,
  type SeriesName,
} from "./batch-rows.ts";
import { partitioned, partitionOf, partitionStatements } from "./log-schema.ts";
import type { WaitingSql } from "./waiting-sql.ts";

const dayMs = 86_400_000;
/** The most ids of (site, domain) held in memory, some 10 MB. */
const seriesKnownMax = 50_000;

type Head = { readonly day: string; readonly lastId: number; readonly change: number };
type Bucket = {
  readonly seriesId: number;
  readonly minute: number;
  readonly counts: RequestCounts;
};

export class PostgresLogStore implements LogWriter {
  readonly #sql: WaitingSql;
  readonly #directory: string;
  readonly #where: string;
  readonly #files: LogStore;
  /** Whether the marks of files are in the database. */
  #isTakenOver = false;
  readonly #series = new Map<string, number>();
  /** The connection and the day for which what is counted has a name. */
  #counting = "";

  /**
   * The directory, which must exist, holds the files of before. `where` names the database. It connects when it is asked. It
   * ends `sql` when it is disposed.
   */
  constructor(
    sql: WaitingSql,
    directory: string,
    where: string,
    broken: (path: string, error: unknown) => void,
  ) {
    this.#sql = sql;
    this.#directory = directory;
    this.#where = where;
    this.#files = new LogStore(directory, broken);
  }

  append(requests: readonly AppendRequest[]): readonly AppendOutcome[] {
    const nowMs = requests.at(-1)?.nowMs ?? 0;
    this.#takeOver(nowMs);
    return this.#transact(() => {
      // Before the lock, for which others wait.
      const read = requests.map(({ body, encoding, firstSeq, lastSeq }) =>
        decodeBatch(body, encoding, firstSeq, lastSeq),
      );
      const head = this.#lock(nowMs);
      const sink = new Sink(this.#marks(requests));
      const outcomes = requests.map((request, at) => takeBatch(sink, request, rules(read[at])));
      if (sink.batches.length > 0) this.#write(head, rowsOf(sink.batches));
      return outcomes;
    });
  }

  tryToWrite(nowMs: number): void {
    this.#takeOver(nowMs);
    this.#transact(() => this.#sql.query("UPDATE log_head SET tried_ms = $1", [nowMs]));
  }

  /** Removes whole days, those of files first, which are older. Makes the partitions of today and tomorrow. */
  retain(
    { ageMs, bytesMax }: Retention,
    nowMs: number,
    folded?: readonly string[],
  ): readonly string[] {
    this.#takeOver(nowMs);
    this.#makeAhead(nowMs);
    const days = this.#sizes();
    const own = days.reduce((sum, { bytes }) => sum + bytes, 0);
    const forFiles = { ageMs, bytesMax: Math.max(0, bytesMax - own) };
    const removed = [...this.#files.retain(forFiles, nowMs, folded, false)];
    if (this.#files.days().length > 0) return removed;
    let left = own;
    for (const { day, bytes } of days.slice(0, -1)) {
      if (Date.parse(day) + dayMs + ageMs > nowMs && left <= bytesMax) break;
      if (folded?.includes(day) === false) break;
      this.#drop(day);
      left -= bytes;
      removed.push(day);
    }
    return removed;
  }

  /** Sets a file aside. */
  setAside(day: string, error: unknown): void {
    this.#files.setAside(day, error);
  }

  stats(): { readonly days: number; readonly bytes: number } {
    const files = this.#files.stats();
    const days = this.#sizes();
    const bytes = days.reduce((sum, one) => sum + one.bytes, files.bytes);
    return { days: files.days + days.length, bytes };
  }

  [Symbol.dispose](): void {
    this.#files[Symbol.dispose]();
    this.#sql[Symbol.dispose]();
  }

  #transact<T>(action: () => T): T {
    try {
      return this.#sql.transact(action);
    } catch (error) {
      this.#series.clear(); // Some of them were made by what is undone.
      this.#counting = "";
      throw error;
    }
  }

  /**
   * Takes over the marks of the files, once. A database that has nothing takes them over in any case. Throws LOGS_MOVED
   * where a day is both a file and in the database: then files were written again in between.
   */
  #takeOver(nowMs: number): void {
    if (this.#isTakenOver) return;
    const files = this.#files.days();
    const newest = files.at(-1);
    const begun = this.#sql.query<{ day: string }>("SELECT day FROM log_day WHERE is_begun");
    if (newest !== undefined && (begun.length === 0 || !this.#isMarked())) {
      const both = begun.filter(({ day }) => files.includes(day)).map(({ day }) => day);
      if (both.length > 0)
        throw new AccelError(
          "LOGS_MOVED",
          `request logs of ${both.join(", ")} lie both in ${this.#directory} and in ${this.#where}: move the files of these days away`,
        );
      this.#transact(() => this.#takeMarks(newest, nowMs));
    }
    if (!this.#isMarked()) markInDatabase(this.#directory, this.#where);
    this.#isTakenOver = true;
  }

  #isMarked(): boolean {
    return readInDatabase(this.#directory) !== undefined;
  }

  #takeMarks(newestFile: string, nowMs: number): void {
    const next = new Date(Date.parse(newestFile) + dayMs).toISOString().slice(0, 10);
    this.#lock(Math.max(Date.parse(next), nowMs));
    const carried = this.#files.carried(nowMs);
    const [marks, canaries] = [[...carried.marks], [...carried.canaries]];
    this.#sql.query(
      `INSERT INTO lane (site_id, epoch, no, mark, updated_ms)
       SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
       ON CONFLICT (site_id, epoch, no) DO UPDATE
         SET mark = greatest(lane.mark, excluded.mark), updated_ms = greatest(lane.updated_ms, excluded.updated_ms)`,
      [
        marks.map(({ siteId }) => siteId),
        marks.map(({ epoch }) => epoch),
        marks.map(({ no }) => no),
        marks.map(({ mark }) => mark),
        marks.map(({ updatedMs }) => updatedMs),
      ],
    );
    this.#setCanaries(canaries);
  }

  /** Locks out all others who append, until the transaction ends, and begins the day of now where it is later. */
  #lock(nowMs: number): Head {
    const [locked] = this.#sql.query<{ day: string }>("SELECT day FROM log_head FOR UPDATE");
    const now = new Date(nowMs).toISOString().slice(0, 10);
    const newest = locked?.day ?? "";
    const day = newest < now ? now : newest;
    if (day !== newest) this.#begin(day, nowMs);
    // Asked after the lock was had: what whoever held it before has written is seen.
    const [head] = this.#sql.query<Head>(
      'SELECT day, last_id AS "lastId", change FROM log_day WHERE day = $1',
      [day],
    );
    if (head === undefined) throw new TypeError(`the day ${day} was begun`);
    return head;
  }

  #begin(day: string, nowMs: number): void {
    this.#make(day);
    this.#sql.query("DELETE FROM lane WHERE updated_ms < $1", [nowMs - marksKeptMs]);
    this.#sql.query("UPDATE log_day SET is_begun = true WHERE day = $1", [day]);
    this.#sql.query("UPDATE log_head SET day = $1", [day]);
  }

  #make(day: string): void {
    const known = this.#sql.query("SELECT 1 FROM log_day WHERE day = $1", [day]);
    if (known.length > 0) return;
    for (const statement of partitionStatements(day)) this.#sql.query(statement);
  }

  #makeAhead(nowMs: number): void {
    this.#transact(() => {
      const [head] = this.#sql.query<{ day: string }>("SELECT day FROM log_head FOR UPDATE");
      for (const atMs of [nowMs, nowMs + dayMs]) {
        const day = new Date(atMs).toISOString().slice(0, 10);
        if (day > (head?.day ?? "")) this.#make(day);
      }
    });
  }

  #drop(day: string): void {
    this.#transact(() => {
      this.#sql.query("DELETE FROM log_day WHERE day = $1", [day]);
      const names = partitioned.map((table) => partitionOf(table, day));
      this.#sql.query(`DROP TABLE IF EXISTS ${names.join(", ")}`);
    });
  }

  /** Returns the bytes of each day, the oldest first. */
  #sizes(): readonly { readonly day: string; readonly bytes: number }[] {
    const bytesOf = partitioned.map(
      (table) =>
        `coalesce(pg_total_relation_size(to_regclass('${table}_' || replace(day, '-', ''))), 0)`,
    );
    return this.#sql.query(
      `SELECT day, ${bytesOf.join(" + ")} AS bytes FROM log_day WHERE is_begun ORDER BY day`,
    );
  }

  /** Returns the marks of the lanes that are known, locked until the transaction ends. */
  #marks(requests: readonly AppendRequest[]): Map<string, number> {
    const lanes = requests.map(({ siteId, lane }) => ({ siteId, ...lane }));
    const rows = this.#sql.query<LaneName & { mark: number }>(
      `SELECT l.site_id AS "siteId", l.epoch, l.no, l.mark FROM lane l
       WHERE (l.site_id, l.epoch, l.no) IN (SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])) FOR UPDATE`,
      columnsOfLanes(lanes),
    );
    return new Map(rows.map((row) => [keyOfLane(row), row.mark]));
  }

  #write(head: Head, rows: BatchRows): void {
    const lanes = this.#setMarks(rows);
    const series = this.#seriesIds([...rows.records, ...rows.counted]);
    const idOf = (name: SeriesName): number => series.get(keyOfSeries(name)) ?? 0;
    const laneOf = (lane: LaneName): number => lanes.get(keyOfLane(lane)) ?? 0;
    const records = rows.records.map((row, at) => ({
      id: head.lastId + 1 + at,
      row,
      seriesId: idOf(row),
      laneId: laneOf(row.lane),
    }));
    if (records.length > 0)
      this.#sql.copy(
        `COPY ${partitionOf("record", head.day)} (id, at_us, seq, series_id, lane_id, line) FROM STDIN`,
        copyText(records),
      );
    this.#addGaps(head, rows.gaps, laneOf);
    this.#setCanaries(rows.canaries);
    const buckets = this.#counted(head, rows.counted, idOf);
    this.#putBuckets(head, buckets);
    this.#advance(head, rows, buckets.length);
  }

  /** Moves the marks, and returns the ids of the lanes. */
  #setMarks({ marks }: BatchRows): ReadonlyMap<string, number> {
    const rows = this.#sql.query<LaneName & { id: number }>(
      `INSERT INTO lane (site_id, epoch, no, mark, updated_ms)
       SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
       ON CONFLICT (site_id, epoch, no) DO UPDATE SET mark = excluded.mark, updated_ms = excluded.updated_ms
       RETURNING id, site_id AS "siteId", epoch, no`,
      [...columnsOfLanes(marks), marks.map(({ mark }) => mark), marks.map(({ nowMs }) => nowMs)],
    );
    return new Map(rows.map((row) => [keyOfLane(row), row.id]));
  }

  #seriesIds(names: readonly SeriesName[]): ReadonlyMap<string, number> {
    const wanted = new Map(names.map((name) => [keyOfSeries(name), name]));
    const found = new Map<string, number>();
    const missing: SeriesName[] = [];
    for (const [key, name] of wanted) {
      const known = this.#series.get(key);
      if (known === undefined) missing.push(name);
      else found.set(key, known);
    }
    if (missing.length === 0) return found;
    const columns = [missing.map(({ siteId }) => siteId), missing.map(({ domain }) => domain)];
    const asked = "SELECT * FROM unnest($1::bigint[], $2::text[])";
    this.#sql.query(
      `INSERT INTO series (site_id, domain) ${asked} ON CONFLICT DO NOTHING`,
      columns,
    );
    const rows = this.#sql.query<SeriesName & { id: number }>(
      `SELECT id, site_id AS "siteId", domain FROM series WHERE (site_id, domain) IN (${asked})`,
      columns,
    );
    if (this.#series.size + rows.length > seriesKnownMax) this.#series.clear();
    for (const row of rows) {
      found.set(keyOfSeries(row), row.id);
      this.#series.set(keyOfSeries(row), row.id);
    }
    return found;
  }

  #addGaps(head: Head, gaps: BatchRows["gaps"], laneOf: (lane: LaneName) => number): void {
    if (gaps.length === 0) return;
    this.#sql.query(
      `INSERT INTO ${partitionOf("gap", head.day)} (site_id, lane_id, from_seq, to_seq, arrived_ms, at_least, reason)
       SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])`,
      [
        gaps.map(({ lane }) => lane.siteId),
        gaps.map(({ lane }) => laneOf(lane)),
        gaps.map(({ fromSeq }) => fromSeq),
        gaps.map(({ toSeq }) => toSeq),
        gaps.map(({ arrivedMs }) => arrivedMs),
        gaps.map(({ atLeast }) => atLeast),
        gaps.map(({ reason }) => reason),
      ],
    );
  }

  #setCanaries(canaries: BatchRows["canaries"]): void {
    if (canaries.length === 0) return;
    this.#sql.query(
      `INSERT INTO canary (site_id, at_us, arrived_ms) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
       ON CONFLICT (site_id) DO UPDATE SET at_us = excluded.at_us, arrived_ms = excluded.arrived_ms
       WHERE excluded.at_us >= canary.at_us`,
      [
        canaries.map(({ siteId }) => siteId),
        canaries.map(({ atUs }) => atUs),
        canaries.map(({ arrivedMs }) => arrivedMs),
      ],
    );
  }

  /** Adds to what was counted of the minutes before. */
  #counted(
    head: Head,
    counted: BatchRows["counted"],
    idOf: (name: SeriesName) => number,
  ): readonly Bucket[] {
    const stored = this.#sql.query<{ seriesId: number; minute: number; counts: Uint8Array }>(
      `SELECT series_id AS "seriesId", minute, counts FROM ${partitionOf("bucket", head.day)}
       WHERE (series_id, minute) IN (SELECT * FROM unnest($1::int[], $2::bigint[]))`,
      [counted.map(idOf), counted.map(({ minute }) => minute)],
    );
    const known = new Map(stored.map((one) => [`${one.seriesId}/${one.minute}`, one.counts]));
    return counted.map((one) => {
      const [seriesId, minute] = [idOf(one), one.minute];
      const counts = readableCounts(known.get(`${seriesId}/${minute}`));
      for (const record of one.records) counts.add(record);
      for (const { atLeast, atMost } of one.missing) counts.miss(atLeast, atMost);
      return { seriesId, minute, counts };
    });
  }

  #putBuckets(head: Head, buckets: readonly Bucket[]): void {
    if (buckets.length === 0) return;
    this.#sql.query(
      `INSERT INTO ${partitionOf("bucket", head.day)} (series_id, minute, change, counts)
       SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bytea[])
       ON CONFLICT (series_id, minute) DO UPDATE SET change = excluded.change, counts = excluded.counts`,
      [
        buckets.map(({ seriesId }) => seriesId),
        buckets.map(({ minute }) => minute),
        buckets.map((_, at) => head.change + 1 + at),
        buckets.map(({ counts }) => Buffer.from(counts.bytesOf())),
      ],
    );
  }

  /** Notes how far the day is. What a new connection counts has a name of its own: its server may have less than the one before. */
  #advance(head: Head, { records, firstUs, lastUs }: BatchRows, changes: number): void {
    const counting = `${this.#sql.connection} ${head.day}`;
    const isNew = changes > 0 && this.#counting !== counting;
    this.#sql.query(
      `UPDATE log_day SET last_id = last_id + $2, change = change + $3,
         first_us = least(first_us, $4), last_us = greatest(last_us, $5)
         ${isNew ? ", token_before = token, token = $6, since_change = change" : ""}
       WHERE day = $1`,
      [head.day, records.length, changes, firstUs, lastUs, ...(isNew ? [randomUUID()] : [])],
    );
    if (isNew) this.#counting = counting;
  }
}

/** The marks of a transaction, and the batches that it takes. */
class Sink {
  readonly batches: DayBatch[] = [];
  readonly #marks: Map<string, number>;

  constructor(marks: Map<string, number>) {
    this.#marks = marks;
  }

  mark(siteId: number, lane: DayBatch["lane"]): number {
    return this.#marks.get(keyOfLane({ siteId, ...lane })) ?? 0;
  }

  add(batch: DayBatch): void {
    this.#marks.set(keyOfLane({ siteId: batch.siteId, ...batch.lane }), batch.lastSeq);
    this.batches.push(batch);
  }
}

function rules(read: BatchRead | undefined): Parameters<typeof takeBatch>[2] {
  return {
    decode: () => read ?? { kind: "invalid", message: "it was not read" },
    lackBecause: "lost_in_failover",
  };
}

function columnsOfLanes(lanes: readonly LaneName[]): readonly (readonly unknown[])[] {
  return [
    lanes.map(({ siteId }) => siteId),
    lanes.map(({ epoch }) => epoch),
    lanes.map(({ no }) => no),
  ];
}
