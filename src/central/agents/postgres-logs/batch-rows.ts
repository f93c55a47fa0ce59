// The rows that batches of request records become in PostgreSQL, as pure functions.

import type { RequestRecord } from "../../../wire/request-log.ts";
import { gapMicros, type CanarySeen, type DayBatch } from "../log-day.ts";
import { toMicros } from "../log-position.ts";

/** Which series a record belongs to. */
export type SeriesName = { readonly siteId: number; readonly domain: string };
export type LaneName = { readonly siteId: number; readonly epoch: string; readonly no: number };

export type RecordRow = SeriesName & {
  readonly atUs: number;
  readonly seq: number;
  readonly lane: LaneName;
  readonly line: string;
};
export type GapRow = {
  readonly lane: LaneName;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly arrivedMs: number;
  readonly atLeast: number;
  readonly reason: string;
};
/** What is to be counted in one minute of a series, in the order in which it came. */
export type Counted = SeriesName & {
  readonly minute: number;
  readonly records: RequestRecord[];
  readonly missing: { readonly atLeast: number; readonly atMost: number }[];
};

export type BatchRows = {
  /** In the order of arrival. */
  readonly records: readonly RecordRow[];
  readonly gaps: readonly GapRow[];
  /** The newest of each site. */
  readonly canaries: readonly CanarySeen[];
  readonly counted: readonly Counted[];
  /** Where each lane ends. */
  readonly marks: readonly (LaneName & { readonly mark: number; readonly nowMs: number })[];
  /** The times between which the records happened; of canaries there is none. */
  readonly firstUs: number;
  readonly lastUs: number;
};

const minuteUs = 60_000_000;

/** Texts of PostgreSQL hold every character but NUL, and UTF-8 has no lone surrogates: both become U+FFFD. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}

export function rowsOf(batches: readonly DayBatch[]): BatchRows {
  const records: RecordRow[] = [];
  const gaps: GapRow[] = [];
  const canaries = new Map<number, CanarySeen>();
  const counts = new Counting();
  const marks = new Map<string, BatchRows["marks"][number]>();
  let [firstUs, lastUs] = [Number.MAX_SAFE_INTEGER, 0];
  for (const batch of batches) {
    const { siteId, nowMs } = batch;
    const lane = { siteId, ...batch.lane };
    marks.set(keyOfLane(lane), { ...lane, mark: batch.lastSeq, nowMs });
    for (const { domain, seq, when, line, record } of batch.records) {
      const atUs = toMicros(when);
      firstUs = Math.min(firstUs, atUs);
      lastUs = Math.max(lastUs, atUs);
      const series = { siteId, domain: storable(domain ?? "") };
      records.push({ ...series, atUs, seq, lane, line });
      counts.of(series, atUs).records.push(record);
    }
    for (const { seq, at, line } of batch.canaries) {
      // A clock that is ahead must not make later canaries look older.
      const atUs = Math.min(toMicros(at), nowMs * 1_000);
      records.push({ siteId, domain: "", atUs, seq, lane, line });
      if (atUs >= (canaries.get(siteId)?.atUs ?? 0))
        canaries.set(siteId, { siteId, atUs, arrivedMs: nowMs });
    }
    for (const gap of batch.gaps) {
      const { fromSeq, toSeq, atLeast } = gap;
      gaps.push({
        lane,
        fromSeq,
        toSeq,
        arrivedMs: nowMs,
        atLeast,
        reason: storable(gap.reason),
      });
      const atUs = gapMicros(gap, batch.records, nowMs);
      const missing = { atLeast, atMost: toSeq - fromSeq + 1 };
      counts.of({ siteId, domain: "" }, atUs).missing.push(missing);
    }
  }
  return {
    records,
    gaps,
    canaries: [...canaries.values()],
    counted: counts.all(),
    marks: [...marks.values()],
    firstUs,
    lastUs,
  };
}

export const keyOfLane = ({ siteId, epoch, no }: LaneName): string => `${siteId}/${epoch}/${no}`;
export const keyOfSeries = ({ siteId, domain }: SeriesName): string => `${siteId}/${domain}`;

class Counting {
  readonly #minutes = new Map<string, Counted>();
  #last: Counted | undefined;

  of({ siteId, domain }: SeriesName, atUs: number): Counted {
    const minute = Math.floor(atUs / minuteUs);
    const last = this.#last;
    if (last?.siteId === siteId && last.domain === domain && last.minute === minute) return last;
    const key = `${minute}/${siteId}/${domain}`;
    const known = this.#minutes.get(key) ?? { siteId, domain, minute, records: [], missing: [] };
    this.#minutes.set(key, known);
    this.#last = known;
    return known;
  }

  all(): readonly Counted[] {
    return [...this.#minutes.values()];
  }
}

/** A record with the ids that the database knows its series and lane by. */
export type CopiedRecord = {
  readonly id: number;
  readonly row: RecordRow;
  readonly seriesId: number;
  readonly laneId: number;
};

/** JSON may have such characters between its parts, and backslashes everywhere. */
const escapedInCopy = /[\\\t\r\n]/g;
const escapes: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\t": "\\t",
  "\r": "\\r",
  "\n": "\\n",
};

/** Writes records as `COPY record (id, at_us, seq, series_id, lane_id, line) FROM STDIN` reads them. */
export function copyText(records: readonly CopiedRecord[]): Uint8Array {
  const lines = records.map(({ id, row: { atUs, seq, line }, seriesId, laneId }) => {
    const text = line.replace(escapedInCopy, (found) => escapes[found] ?? found);
    return `${id}\t${atUs}\t${seq}\t${seriesId}\t${laneId}\t${text}\n`;
  });
  return Buffer.from(lines.join(""), "utf8");
}
