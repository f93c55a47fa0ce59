// One day of request logs in PostgreSQL, as the threads that read see it. Each question names the partition, so that none
// waits for the table of all days, which whoever makes or drops a day locks.

import type { CanarySeen } from "../log-day.ts";
import type {
  ArrivedRecord,
  DayBucket,
  DayCounting,
  DayRow,
  DaySearch,
  DaySeries,
  DaySpan,
  SeriesRow,
  SeriesRows,
} from "../log-day-view.ts";
import type { DayView } from "../log-days.ts";
import type { DayLoss } from "../log-losses.ts";
import { partitionOf } from "./log-schema.ts";
import type { WaitingSql } from "./waiting-sql.ts";

/** Rows that a page reads at once: few at first, for most domains of a day have none of the newest. */
const rowsFirst = 64;
const rowsMost = 1_024;

export class PostgresDayView implements DayView {
  readonly #sql: WaitingSql;
  readonly #day: string;
  readonly #records: string;
  readonly #gaps: string;
  readonly #buckets: string;

  constructor(sql: WaitingSql, day: string) {
    this.#sql = sql;
    this.#day = day;
    this.#records = partitionOf("record", day);
    this.#gaps = partitionOf("gap", day);
    this.#buckets = partitionOf("bucket", day);
  }

  span(): DaySpan {
    const [span] = this.#sql.query<DaySpan>(
      'SELECT first_us AS "firstUs", last_us AS "lastUs" FROM log_day WHERE day = $1',
      [this.#day],
    );
    return span ?? { firstUs: Number.MAX_SAFE_INTEGER, lastUs: 0 };
  }

  *search({ siteId, domain, belowUs, belowId, sinceUs }: DaySearch): IterableIterator<DayRow> {
    const [series] = this.seriesOf(domain, [siteId]);
    if (series === undefined) return;
    const { seriesId } = series;
    let place = { belowUs, belowId };
    for (let limit = rowsFirst; ; limit = Math.min(limit * 4, rowsMost)) {
      const rows = this.below({ seriesId, ...place, sinceUs, limit });
      yield* rows;
      const last = rows.at(-1);
      if (last === undefined || rows.length < limit) return;
      place = { belowUs: last.atUs, belowId: last.id };
    }
  }

  seriesOf(domain: string, siteIds: readonly number[]): readonly DaySeries[] {
    return this.#sql.query<DaySeries>(
      'SELECT id AS "seriesId", site_id AS "siteId" FROM series WHERE domain = $1 AND site_id = ANY($2::bigint[])',
      [domain.replaceAll("\0", "\uFFFD"), siteIds],
    );
  }

  below({ seriesId, belowUs, belowId, sinceUs, limit }: SeriesRows): readonly DayRow[] {
    return this.#sql.query<DayRow>(
      `SELECT id, at_us AS "atUs", line FROM ${this.#records}
       WHERE series_id = $1 AND (at_us, id) < ($2, $3) AND at_us >= $4 ORDER BY at_us DESC, id DESC LIMIT $5`,
      [seriesId, belowUs, belowId, sinceUs, limit],
    );
  }

  arrivedOf(
    seriesIds: readonly number[],
    afterId: number,
    throughId: number,
    limit: number,
  ): readonly SeriesRow[] {
    // The plus keeps the search by series away, which would sort all that a series has.
    return this.#sql.query<SeriesRow>(
      `SELECT id, series_id AS "seriesId", at_us AS "atUs", line FROM ${this.#records}
       WHERE id > $1 AND id <= $2 AND series_id + 0 = ANY($3::int[]) ORDER BY id LIMIT $4`,
      [afterId, throughId, seriesIds, limit],
    );
  }

  lastId(): number {
    const [day] = this.#sql.query<{ id: number }>(
      "SELECT last_id AS id FROM log_day WHERE day = $1",
      [this.#day],
    );
    return day?.id ?? 0;
  }

  record(id: number): ArrivedRecord | undefined {
    const [found] = this.arrived(id - 1, 1);
    return found?.id === id ? found : undefined;
  }

  canaries(): readonly CanarySeen[] {
    return this.#sql.query<CanarySeen>(
      'SELECT site_id AS "siteId", at_us AS "atUs", arrived_ms AS "arrivedMs" FROM canary',
    );
  }

  losses(): readonly DayLoss[] {
    return this.#sql.query<DayLoss>(
      `SELECT site_id AS "siteId", reason, sum(at_least) AS "atLeast", sum(to_seq - from_seq + 1) AS "atMost",
         min(arrived_ms) AS "firstMs", max(arrived_ms) AS "lastMs"
       FROM ${this.#gaps} GROUP BY site_id, reason ORDER BY site_id, reason COLLATE "C"`,
    );
  }

  counting(): DayCounting {
    const [counting] = this.#sql.query<DayCounting>(
      `SELECT token, token_before AS "tokenBefore", since_change AS "sinceChange", change
       FROM log_day WHERE day = $1`,
      [this.#day],
    );
    return counting ?? { token: "", tokenBefore: "", sinceChange: 0, change: 0 };
  }

  changedBuckets(after: number, limit: number): readonly DayBucket[] {
    return this.#sql.query<DayBucket>(
      `SELECT b.series_id AS "seriesId", s.site_id AS "siteId", s.domain, b.minute, b.change, b.counts
       FROM ${this.#buckets} b JOIN series s ON s.id = b.series_id WHERE b.change > $1 ORDER BY b.change LIMIT $2`,
      [after, limit],
    );
  }

  buckets(seriesId: number, fromMinute: number, toMinute: number): readonly Uint8Array[] {
    return this.#sql
      .query<{ counts: Uint8Array }>(
        `SELECT counts FROM ${this.#buckets} WHERE series_id = $1 AND minute >= $2 AND minute < $3 ORDER BY minute`,
        [seriesId, fromMinute, toMinute],
      )
      .map(({ counts }) => counts);
  }

  arrived(afterId: number, limit: number): readonly ArrivedRecord[] {
    return this.#sql.query<ArrivedRecord>(
      `SELECT r.id, s.site_id AS "siteId", s.domain, r.at_us AS "atUs", r.line
       FROM ${this.#records} r JOIN series s ON s.id = r.series_id WHERE r.id > $1 ORDER BY r.id LIMIT $2`,
      [afterId, limit],
    );
  }

  recordMark(id: number): string | undefined {
    const [found] = this.#sql.query<{ lane: number; seq: number; atUs: number }>(
      `SELECT lane_id AS lane, seq, at_us AS "atUs" FROM ${this.#records} WHERE id = $1`,
      [id],
    );
    return found === undefined ? undefined : `${found.lane}/${found.seq}/${found.atUs}`;
  }

  /** The connection is the threads', not the day's. */
  [Symbol.dispose](): void {}
}
