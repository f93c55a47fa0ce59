// The request logs of all deployment sites: a directory with one file per day of arrival (log-day.ts), newest last. Synchronous: it lives in the log thread.
//
// Days never go back: when the clock does, records still go to the newest file. A broken file is set aside as `<name>.broken` and told.

import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isCorruption } from "../../base/sqlite.ts";
import type { LaneId } from "../../wire/request-log.ts";
import { readBatch, type BatchEncoding } from "./log-batch.ts";
import { LogDay, type LaneMark } from "./log-day.ts";
import { formatPosition, type LogPosition } from "./log-position.ts";

export type AppendRequest = {
  readonly siteId: number;
  readonly lane: LaneId;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly encoding: BatchEncoding;
  readonly body: Uint8Array;
  readonly nowMs: number;
};
export type AppendOutcome =
  | {
      readonly kind: "committed";
      readonly through: number;
      readonly records: number;
      readonly lost: number;
    }
  /** All of it was committed before. */
  | { readonly kind: "repeated"; readonly through: number }
  | { readonly kind: "conflict"; readonly mark: number }
  | { readonly kind: "invalid" | "too_large"; readonly message: string };

export type ReadRequest = {
  readonly siteId: number;
  readonly domains: readonly string[];
  readonly limit: number;
  readonly after: LogPosition | undefined;
  /** Seconds since the epoch, of the request; both included. */
  readonly since: number | undefined;
  readonly until: number | undefined;
};
export type ReadSlice = {
  /** Records as JSON texts, newest first. */
  readonly lines: readonly string[];
  /** Where to go on; undefined at the end. There may be more even when `lines` is short. */
  readonly next: string | undefined;
};

export type Retention = { readonly ageMs: number; readonly bytesMax: number };

/** Marks of lanes that were silent for longer are forgotten; what still comes of them is refused. */
const marksKeptMs = 90 * 86_400_000;
const openDaysMax = 8;
/** Rows looked at in one slice: some 20 ms, in which nothing is taken in. */
const scanMax = 20_000;
const scanStep = 1_000;
const dayMs = 86_400_000;

export class LogStore implements Disposable {
  readonly #directory: string;
  readonly #broken: (path: string, error: unknown) => void;
  /** In order of day; the last is written. */
  #days: string[];
  /** The one used last stands last. */
  readonly #open = new Map<string, LogDay>();

  /** The directory exists. `broken` is told of files set aside. */
  constructor(directory: string, broken: (path: string, error: unknown) => void) {
    this.#directory = directory;
    this.#broken = broken;
    this.#days = readdirSync(directory)
      .filter((name) => /^\d{4}-\d\d-\d\d\.db$/.test(name))
      .map((name) => name.slice(0, -3))
      .sort();
  }

  /** Committed is durable. A file found broken is set aside, and the batch goes into a new one. */
  append(request: AppendRequest): AppendOutcome {
    try {
      return this.#append(request);
    } catch (error) {
      const newest = this.#days.at(-1);
      if (!isCorruption(error) || newest === undefined) throw error;
      this.#setAside(newest, error);
      return this.#append(request);
    }
  }

  #append(request: AppendRequest): AppendOutcome {
    const { siteId, lane, firstSeq, lastSeq, nowMs } = request;
    const day = this.#today(nowMs);
    const mark = day.mark(siteId, lane);
    if (lastSeq <= mark) return { kind: "repeated", through: mark };
    if (firstSeq !== mark + 1) return { kind: "conflict", mark };
    const read = readBatch(request.body, request.encoding, firstSeq, lastSeq);
    if (read.kind !== "batch") return read;
    const { records, gaps } = read;
    day.append({ siteId, lane, lastSeq, records, gaps, nowMs });
    const lost = gaps.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0);
    return { kind: "committed", through: lastSeq, records: records.length, lost };
  }

  /** One slice of the walk from the newest record backwards: the order of arrival, which new records do not disturb. */
  read({ siteId, domains, limit, after, since, until }: ReadRequest): ReadSlice {
    const lines: string[] = [];
    let scanned = 0;
    const isFiltered = since !== undefined || until !== undefined;
    for (const day of this.#days.toReversed()) {
      if (after !== undefined && day > after.day) continue;
      // What arrived on a day did not happen later, but for clocks that differ.
      if (since !== undefined && Date.parse(day) + 2 * dayMs < since * 1_000) break;
      let beforeId = after !== undefined && day === after.day ? after.id : Number.MAX_SAFE_INTEGER;
      const file = this.#file(day);
      if (file === undefined) continue;
      for (;;) {
        const scan = isFiltered ? scanStep : Math.min(limit - lines.length + 1, scanStep);
        const rows = domains
          .flatMap((domain) => file.rows({ siteId, domain, beforeId, scan }))
          .sort((a, b) => b.id - a.id)
          .slice(0, scan);
        for (const { id, happened, line } of rows) {
          if (lines.length === limit || scanned === scanMax)
            return { lines, next: formatPosition({ day, id: beforeId }) };
          scanned++;
          beforeId = id;
          if ((since ?? happened) <= happened && happened <= (until ?? happened)) lines.push(line);
        }
        if (rows.length < scan) break;
      }
    }
    return { lines, next: undefined };
  }

  /** Unlinks whole days: those too old, then the oldest while all together are too large. The newest stays. */
  retain({ ageMs, bytesMax }: Retention, nowMs: number): readonly string[] {
    const removed: string[] = [];
    let { bytes } = this.stats();
    for (const day of this.#days.slice(0, -1)) {
      if (Date.parse(day) + dayMs + ageMs > nowMs && bytes <= bytesMax) break;
      bytes -= this.#bytesOf(day);
      this.#close(day);
      for (const suffix of suffixes) rmSync(this.#path(day) + suffix, { force: true });
      removed.push(day);
    }
    this.#days = this.#days.slice(removed.length);
    return removed;
  }

  stats(): { readonly days: number; readonly bytes: number } {
    const bytes = this.#days.reduce((sum, day) => sum + this.#bytesOf(day), 0);
    return { days: this.#days.length, bytes };
  }

  [Symbol.dispose](): void {
    for (const file of this.#open.values()) file[Symbol.dispose]();
    this.#open.clear();
  }

  #path(day: string): string {
    return join(this.#directory, `${day}.db`);
  }

  #bytesOf(day: string): number {
    return suffixes.reduce(
      (sum, suffix) =>
        sum + (statSync(this.#path(day) + suffix, { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  }

  #today(nowMs: number): LogDay {
    const now = new Date(nowMs).toISOString().slice(0, 10);
    const newest = this.#days.at(-1);
    if (newest === undefined || newest < now) this.#days.push(now);
    const day = this.#days.at(-1) ?? now;
    const file = this.#file(day, nowMs);
    if (file !== undefined) return file;
    // It was broken and is set aside: begin it anew, with the marks of the day before.
    this.#days = [...this.#days.filter((other) => other !== day), day].sort();
    return this.#openDay(day, nowMs);
  }

  /** Undefined when the file is broken; then it is set aside. */
  #file(day: string, nowMs = 0): LogDay | undefined {
    const open = this.#open.get(day);
    if (open !== undefined) {
      this.#open.delete(day);
      this.#open.set(day, open);
      return open;
    }
    try {
      return this.#openDay(day, nowMs);
    } catch (error) {
      if (!isCorruption(error)) throw error;
      this.#setAside(day, error);
      return undefined;
    }
  }

  #openDay(day: string, nowMs: number): LogDay {
    const file = new LogDay(this.#path(day), () => this.#marksBefore(day, nowMs));
    this.#open.set(day, file);
    const oldest = this.#open.size > openDaysMax ? this.#open.keys().next().value : undefined;
    if (oldest !== undefined) this.#close(oldest);
    return file;
  }

  #marksBefore(day: string, nowMs: number): Iterable<LaneMark> {
    for (const before of this.#days.filter((other) => other < day).toReversed()) {
      const file = this.#file(before);
      if (file !== undefined) return file.marksSince(nowMs - marksKeptMs);
    }
    return [];
  }

  #setAside(day: string, error: unknown): void {
    this.#close(day);
    const path = this.#path(day);
    let aside = `${path}.broken`;
    for (let no = 1; existsSync(aside); no++) aside = `${path}.broken-${no}`;
    for (const suffix of suffixes)
      if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
    this.#days = this.#days.filter((other) => other !== day);
    this.#broken(aside, error);
  }

  #close(day: string): void {
    this.#open.get(day)?.[Symbol.dispose]();
    this.#open.delete(day);
  }
}

const suffixes = ["", "-wal", "-shm"] as const;
