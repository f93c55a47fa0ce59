// Folds the files of days into `analytics.db`, a bounded step at a time: first what was counted since the last step, then
// the most frequent keys of the records that arrived since. A step killed anywhere is done again and gives the same.
//
// A file is taken from its beginning where it is no longer the one that was folded: another inode (restored, or begun
// anew), or another history (log-tables.ts: `counting`). One that was set aside is forgotten, for its records are no longer
// in the logs either.

import { PackedFault, PackedReader, PackedWriter } from "../../core/analytics/packed-bytes.ts";
import { RequestCounts } from "../../core/analytics/request-counts.ts";
import { TopKeys } from "../../core/analytics/space-saving.ts";
import { bucketOf, type TopFineness } from "../../core/analytics/time-buckets.ts";
import { isCorruption } from "../../base/sqlite.ts";
import { decodeRequestRecord } from "../../wire/request-log.ts";
import type { AnalyticsFile, TopKind, TopPlace } from "./analytics-file.ts";
import type { FoldedFile } from "./folded-file.ts";
import type { BrokenDay } from "./log-archive.ts";
import { readableCounts } from "./log-day-counts.ts";
import type { ArrivedRecord, DayBucket, DayCounting } from "./log-day-view.ts";
import type { DayView, LogDays } from "./log-days.ts";

export type FoldStep = {
  readonly kind: "step";
  /** Whether there is more to fold. */
  readonly isMore: boolean;
};

/** The most minutes and records of one step: some 100 and 20 ms. A question waits for the step that is under way. */
const bucketsPerStep = 2_000;
const recordsPerStep = 1_000;
/** The most characters of a key; longer ones are cut. */
const keyCharsMax = 300;
const dayS = 86_400;
const topFinenesses = ["hour", "day"] as const;

export class AnalyticsFold {
  readonly #days: LogDays;
  readonly #file: AnalyticsFile;

  constructor(days: LogDays, file: AnalyticsFile) {
    this.#days = days;
    this.#file = file;
  }

  /** Folds the counts of the newest files, at most `steps` steps. Returns a day whose file is broken. */
  foldCounts(nowS: number, steps: number): FoldStep | BrokenDay {
    let left = steps;
    for (const day of this.#days.list().toReversed()) {
      for (;;) {
        const step = this.#ofDay(day, (view) => this.#countsStep(day, view, nowS));
        if (step.kind === "broken") return step;
        if (!step.isMore) break;
        if (--left <= 0) return step;
      }
      this.#days.closeOldest();
    }
    return { kind: "step", isMore: false };
  }

  /** Folds the next piece of whatever is not folded yet. Returns a day whose file is broken. */
  fold(nowS: number): FoldStep | BrokenDay {
    const counted = this.foldCounts(nowS, 1);
    if (counted.kind === "broken" || counted.isMore) return counted;
    const days = this.#days.list();
    for (const day of days) {
      const step = this.#ofDay(day, (view) => this.#topsStep(day, view, nowS));
      if (step.kind === "broken" || step.isMore) return step;
      this.#days.closeOldest();
    }
    this.#leave(new Set(days));
    return { kind: "step", isMore: false };
  }

  /** Returns the days that are folded and written no more. It writes nothing, so a full disk does not matter. */
  done(): readonly string[] {
    return this.#days
      .list()
      .slice(0, -1)
      .filter((day) => {
        const look = this.#ofDay(day, (view) => !this.#isDone(day, view));
        this.#days.closeOldest();
        return look.kind === "step" && !look.isMore;
      });
  }

  #isDone(day: string, view: DayView): boolean {
    const known = this.#file.folded(day);
    if (known === undefined) return false;
    const { recordId, recordMark } = known;
    const inode = this.#days.identityOf(day);
    return reading(() => {
      const counting = view.counting();
      const isCounted = continues(known, inode, counting) && known.change === counting.change;
      const isSame = recordId === 0 || view.recordMark(recordId) === recordMark;
      return isCounted && isSame && view.arrived(recordId, 1).length === 0;
    });
  }

  #ofDay(day: string, action: (view: DayView) => boolean): FoldStep | BrokenDay {
    try {
      const view = reading(() => this.#days.view(day));
      return { kind: "step", isMore: view !== undefined && action(view) };
    } catch (error) {
      if (!(error instanceof DayFault)) throw error;
      return { kind: "broken", day, message: String(error.cause) };
    }
  }

  #countsStep(day: string, view: DayView, nowS: number): boolean {
    const inode = this.#days.identityOf(day);
    const known = this.#file.folded(day);
    const counting = reading(() => view.counting());
    const isSame = known !== undefined && continues(known, inode, counting);
    const after = isSame ? known.change : 0;
    if (isSame && after === counting.change) return false;
    const rows = reading(() => view.changedBuckets(after, bucketsPerStep));
    const hoursSince = this.#file.countsSince("hour", nowS);
    const daysSince = this.#file.countsSince("day", nowS);
    const hours = summed(view, rows, 3_600, hoursSince);
    // A day is the sum of its hours, or of its minutes where hours were removed already.
    const old = rows.filter(({ minute }) => bucketOf(minute * 60, "day") < hoursSince);
    const days = summed(view, old, dayS, daysSince);
    const minutesSince = this.#file.countsSince("minute", nowS);
    const change = rows.length < bucketsPerStep ? counting.change : (rows.at(-1)?.change ?? 0);
    const { token } = counting;
    this.#file.transact(() => {
      if (!isSame) this.#file.dropCounts(day);
      for (const { siteId, domain, minute, counts } of rows)
        if (minute * 60 >= minutesSince)
          this.#put([siteId, domain], "minute", minute * 60, day, counts);
      for (const { of, at, counts } of hours) this.#put(of, "hour", at, day, counts.bytesOf());
      for (const { of, at, counts } of days) this.#put(of, "day", at, day, counts.bytesOf());
      for (const { of, at } of spans(rows, dayS))
        if (at >= Math.max(hoursSince, daysSince)) this.#putDay(of, at, day);
      const { recordId = 0, recordMark = "" } = known ?? {};
      this.#file.setFolded({ day, inode, token, change, recordId, recordMark });
    });
    return rows.length === bucketsPerStep;
  }

  #put(
    [siteId, domain]: Series,
    fineness: "minute" | "hour" | "day",
    at: number,
    day: string,
    counts: Uint8Array,
  ): void {
    this.#file.putCounts(this.#file.seriesId(siteId, domain), fineness, at, day, counts);
  }

  #putDay(of: Series, at: number, day: string): void {
    const sum = new RequestCounts();
    const seriesId = this.#file.seriesId(...of);
    for (const { counts } of this.#file.counts(seriesId, "hour", [at, at + dayS], day))
      sum.merge(readableCounts(counts));
    this.#put(of, "day", at, day, sum.bytesOf());
  }

  #topsStep(day: string, view: DayView, nowS: number): boolean {
    const known = this.#file.folded(day);
    if (known === undefined) return false;
    const { recordId } = known;
    const isSame = recordId === 0 || reading(() => view.recordMark(recordId)) === known.recordMark;
    const records = reading(() => view.arrived(isSame ? recordId : 0, recordsPerStep));
    const last = records.at(-1);
    if (last === undefined && isSame) return false;
    const lastId = last?.id ?? 0;
    const mark = reading(() => (last === undefined ? "" : view.recordMark(lastId))) ?? "";
    this.#file.transact(() => {
      if (!isSame) this.#file.dropTops(day);
      const lists = new Map<string, TopList>();
      const since = {
        hour: this.#file.topsSince("hour", nowS),
        day: this.#file.topsSince("day", nowS),
      };
      for (const record of records) this.#countTops(lists, record, day, since);
      for (const { place, keys } of lists.values()) {
        const to = new PackedWriter();
        keys.write(to);
        this.#file.putTop(place, to.bytes());
      }
      this.#file.setFolded({ ...known, recordId: lastId, recordMark: mark });
    });
    return records.length === recordsPerStep;
  }

  #countTops(
    lists: Map<string, TopList>,
    { siteId, domain, atUs, line }: ArrivedRecord,
    day: string,
    since: Readonly<Record<TopFineness, number>>,
  ): void {
    const keys = domain === "" ? [] : keysOf(line);
    for (const fineness of topFinenesses) {
      const at = bucketOf(atUs / 1e6, fineness);
      if (at < since[fineness]) continue;
      for (const [kind, key] of keys) {
        const seriesId = this.#file.seriesId(siteId, domain);
        const name = `${seriesId}/${fineness}/${at}/${kind}`;
        let list = lists.get(name);
        if (list === undefined) {
          const place = { seriesId, fineness, kind, at, day };
          list = { place, keys: readableTop(this.#file.top(place)) };
          lists.set(name, list);
        }
        list.keys.add(key);
      }
    }
  }

  /** Leaves the counts of files that are gone, and forgets files that were set aside. */
  #leave(days: ReadonlySet<string>): void {
    for (const { day, inode } of this.#file.present()) {
      if (days.has(day)) continue;
      const isAside = this.#days.isAside(day, inode);
      this.#file.transact(() => (isAside ? this.#file.forget(day) : this.#file.setGone(day)));
    }
  }
}

type TopList = { readonly place: TopPlace; readonly keys: TopKeys };

/** Deployment site and domain. */
type Series = readonly [number, string];

/** Says that a day's file cannot be read. */
class DayFault extends Error {}

/** Reads from a day's file, and tells its faults from those of `analytics.db`. */
function reading<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!isCorruption(error)) throw error;
    throw new DayFault("a file of request logs is broken", { cause: error });
  }
}

function continues(known: FoldedFile, inode: number, counting: DayCounting): boolean {
  const { token, tokenBefore, sinceChange, change } = counting;
  if (known.inode !== inode || known.change > change) return false;
  return known.token === token || (known.token === tokenBefore && known.change <= sinceChange);
}

type Span = { readonly of: Series; readonly seriesId: number; readonly at: number };

/** Returns each span of some seconds that the minutes lie in once for each series. */
function spans(rows: readonly DayBucket[], seconds: number): readonly Span[] {
  const found = new Map<string, Span>();
  for (const { seriesId, siteId, domain, minute } of rows) {
    const at = Math.floor((minute * 60) / seconds) * seconds;
    const key = `${seriesId}/${at}`;
    if (!found.has(key)) found.set(key, { of: [siteId, domain], seriesId, at });
  }
  return [...found.values()];
}

/** Sums the minutes of each span that the rows lie in, from the file itself. */
function summed(view: DayView, rows: readonly DayBucket[], seconds: number, since: number) {
  return spans(rows, seconds)
    .filter(({ at }) => at >= since)
    .map(({ of, seriesId, at }) => {
      const counts = new RequestCounts();
      const minutes = reading(() => view.buckets(seriesId, at / 60, (at + seconds) / 60));
      for (const minute of minutes) counts.merge(readableCounts(minute));
      return { of, at, counts };
    });
}

function keysOf(line: string): readonly (readonly [TopKind, string])[] {
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch {
    return []; // Damaged, and told to whoever reads the record.
  }
  const decoded = decodeRequestRecord(raw);
  if (!decoded.ok) return [];
  const { uri_path: target, response_status: status, bot, client_ip: address } = decoded.value;
  const path = (target.split("?", 1)[0] ?? "").slice(0, keyCharsMax);
  return [
    ["path", path],
    ["status_path", `${status} ${path}`],
    ["address", address],
    ...(bot === null ? [] : [["bot", bot] as const]),
  ];
}

/** Reads a list of most frequent keys. One whose bytes are damaged begins anew. */
export function readableTop(stored: Uint8Array | undefined): TopKeys {
  if (stored === undefined) return new TopKeys();
  try {
    return TopKeys.read(new PackedReader(stored));
  } catch (error) {
    if (!(error instanceof PackedFault)) throw error;
    return new TopKeys();
  }
}
