// Numbers of whole days in the database of request logs: kept by the first central that has folded a day, taken by those that cannot fold it any more.

import {
  countsKeptSeconds,
  finenesses,
  topsKeptSeconds,
} from "../../../core/analytics/time-buckets.ts";
import type { FoldedFile } from "../folded-file.ts";
import type { KeptNumbers, NumbersRow } from "../kept-numbers.ts";
import type { WaitingSql } from "./waiting-sql.ts";

/** Some 1 MB. */
const rowsAtOnce = 500;
const daySeconds = 86_400;

type Told = Omit<FoldedFile, "inode" | "recordId" | "recordMark"> & {
  readonly made: number;
  readonly record_id: number;
  readonly record_mark: string;
};

export class PostgresKeptNumbers implements KeptNumbers {
  readonly #sql: WaitingSql;

  constructor(sql: WaitingSql) {
    this.#sql = sql;
  }

  list(): readonly FoldedFile[] {
    return this.#sql
      .query<Told>(
        "SELECT day, made, token, change, record_id, record_mark FROM kept_day ORDER BY day",
      )
      .map(({ made: inode, record_id: recordId, record_mark: recordMark, ...told }) => {
        return { ...told, inode, recordId, recordMark };
      });
  }

  keep(folded: FoldedFile, rows: () => Iterable<NumbersRow>): void {
    const { day, inode, token, change, recordId, recordMark } = folded;
    this.#sql.transact(() => {
      // Of two that come at once the second waits here for the first. A day of files is no day of the database.
      const begun = this.#sql.query(
        `INSERT INTO kept_day (day, made, token, change, record_id, record_mark)
         SELECT day, made, $3::text, $4::bigint, $5::bigint, $6::text FROM log_day WHERE day = $1 AND made = $2
         ON CONFLICT (day) DO UPDATE SET made = excluded.made, token = excluded.token,
           change = excluded.change, record_id = excluded.record_id, record_mark = excluded.record_mark
         WHERE kept_day.made <> excluded.made RETURNING day`,
        [day, inode, token, change, recordId, recordMark],
      );
      if (begun.length === 0) return;
      this.#sql.query("DELETE FROM kept_number WHERE fineness IN (0, 1, 2) AND day = $1", [day]);
      let page: NumbersRow[] = [];
      for (const row of rows()) {
        page.push(row);
        if (page.length < rowsAtOnce) continue;
        this.#add(day, page);
        page = [];
      }
      if (page.length > 0) this.#add(day, page);
    });
  }

  *rows(day: string): Iterable<NumbersRow> {
    for (const fineness of finenesses.keys()) {
      let after: readonly unknown[] = ["", 0, "", 0];
      for (;;) {
        const page = this.#sql.query<Omit<NumbersRow, "siteId"> & { site_id: number }>(
          `SELECT fineness, kind, site_id, domain, at, bytes FROM kept_number
           WHERE fineness = $1 AND day = $2 AND (kind, site_id, domain, at) > ($3, $4, $5, $6)
           ORDER BY kind, site_id, domain, at LIMIT ${rowsAtOnce}`,
          [fineness, day, ...after],
        );
        for (const { site_id: siteId, ...row } of page) yield { ...row, siteId };
        const last = page.at(-1);
        if (last === undefined || page.length < rowsAtOnce) break;
        after = [last.kind, last.site_id, last.domain, last.at];
      }
    }
  }

  limit(nowS: number): void {
    for (const [code, fineness] of finenesses.entries()) {
      const tops = fineness === "minute" ? 0 : topsKeptSeconds[fineness];
      // A day of arrival may have records of the days before, which are older still.
      const before = (seconds: number): string => dayOf(nowS - seconds - daySeconds);
      this.#sql.query("DELETE FROM kept_number WHERE fineness = $1 AND day < $2", [
        code,
        before(Math.max(countsKeptSeconds[fineness], tops)),
      ]);
      if (tops > 0)
        this.#sql.query("DELETE FROM kept_number WHERE fineness = $1 AND day < $2 AND kind <> ''", [
          code,
          before(tops),
        ]);
    }
    this.#sql.query("DELETE FROM kept_day WHERE day < $1", [
      dayOf(nowS - countsKeptSeconds.day - daySeconds),
    ]);
  }

  #add(day: string, rows: readonly NumbersRow[]): void {
    const column = (of: (row: NumbersRow) => unknown): readonly unknown[] => rows.map(of);
    this.#sql.query(
      `INSERT INTO kept_number (day, fineness, kind, site_id, domain, at, bytes)
       SELECT $1, fineness, kind, site_id, domain, at, decode(hex, 'hex') FROM unnest(
         $2::smallint[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::text[]
       ) AS told (fineness, kind, site_id, domain, at, hex)`,
      [
        day,
        column(({ fineness }) => fineness),
        column(({ kind }) => kind),
        column(({ siteId }) => siteId),
        column(({ domain }) => domain),
        column(({ at }) => at),
        column(({ bytes }) => Buffer.from(bytes).toString("hex")),
      ],
    );
  }
}

const dayOf = (seconds: number): string => new Date(seconds * 1_000).toISOString().slice(0, 10);
