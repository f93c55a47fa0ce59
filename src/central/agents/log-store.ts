// The request logs of all deployment sites as they are written: a directory with one file per day of arrival
// (log-day.ts), newest last. Synchronous, in the log thread. log-archive.ts reads them.
//
// Days never go back: if the clock does, records still go to the newest file. A broken file is set aside as
// `<name>.broken` and reported.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { isCorruption } from "../../base/sqlite.ts";
import { AccelError } from "../../core/faults.ts";
import { decodeBatch } from "./log-batch.ts";
import { LogDay, type Carried } from "./log-day.ts";
import {
  dayBytes,
  dayOf,
  dayPath,
  inodeOf,
  markAsideRemoved,
  markRemoved,
  restoredMark,
  setAside,
} from "./log-files.ts";
import { takeBatch, type AppendOutcome, type AppendRequest } from "./log-take.ts";

export type Retention = { readonly ageMs: number; readonly bytesMax: number };

/** How long marks of silent lanes are kept; after that, what still comes of them is refused. */
export const marksKeptMs = 90 * 86_400_000;
const dayMs = 86_400_000;

type Written = { readonly day: string; readonly file: LogDay; readonly inode: number };

export class LogStore implements Disposable {
  readonly #directory: string;
  readonly #broken: (path: string, error: unknown) => void;
  readonly #isRestored: boolean;
  /** The days in order; the last one is written. */
  #days: string[];
  #written: Written | undefined;

  /**
   * The directory must exist. `broken` is called for files set aside. Brings files of earlier releases up to
   * date. A file that cannot be opened now (disk full) is left for later: what cannot be stored is refused
   * batch by batch. Throws DATABASE_NEWER.
   */
  constructor(directory: string, broken: (path: string, error: unknown) => void) {
    this.#directory = directory;
    this.#broken = broken;
    this.#isRestored = existsSync(join(directory, restoredMark));
    this.#days = readdirSync(directory)
      .flatMap((name) => dayOf(name) ?? [])
      .sort();
    for (const day of this.#days) {
      try {
        this.#carriedBy(day, Infinity);
      } catch (error) {
        if (error instanceof AccelError) throw error;
      }
    }
  }

  /**
   * Appends batches, each checked by itself, in one transaction; "committed" means durable. If it throws,
   * nothing of any batch is committed. A file found broken is set aside, and the batches go into a new one.
   */
  append(requests: readonly AppendRequest[]): readonly AppendOutcome[] {
    try {
      return this.#append(requests);
    } catch (error) {
      const day = this.#written?.day ?? this.#days.at(-1);
      this.#close(); // Whatever failed, the next batch finds a newly opened file.
      if (!isCorruption(error) || day === undefined) throw error;
      this.setAside(day, error);
      return this.#append(requests);
    }
  }

  #append(requests: readonly AppendRequest[]): readonly AppendOutcome[] {
    const file = this.#today(requests.at(-1)?.nowMs ?? 0);
    const lackBecause = this.#isRestored ? "lost_in_restore" : undefined;
    return file.transact(() =>
      requests.map((request) => {
        const { body, encoding, firstSeq, lastSeq } = request;
        const decode = () => decodeBatch(body, encoding, firstSeq, lastSeq);
        return takeBatch(file, request, { decode, lackBecause });
      }),
    );
  }

  /** Throws what a batch would be refused for. */
  tryToWrite(nowMs: number): void {
    try {
      const file = this.#today(nowMs);
      file.transact(() => file.tryToWrite(nowMs));
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  /**
   * Removes whole days: those too old, then the oldest while all together are too large. The newest stays where it
   * is still written, and so do days that are not in `folded`, where it is given. Files set aside go by age.
   * `removeMarked` gives their room back.
   */
  retain(
    { ageMs, bytesMax }: Retention,
    nowMs: number,
    folded?: readonly string[],
    isWritten = true,
  ): readonly string[] {
    const removed: string[] = [];
    let { bytes } = this.stats();
    for (const day of isWritten ? this.#days.slice(0, -1) : this.#days) {
      if (Date.parse(day) + dayMs + ageMs > nowMs && bytes <= bytesMax) break;
      if (folded?.includes(day) === false) break;
      bytes -= dayBytes(this.#directory, day);
      if (this.#written?.day === day) this.#close();
      markRemoved(this.#directory, day);
      removed.push(day);
    }
    this.#days = this.#days.slice(removed.length);
    markAsideRemoved(this.#directory, nowMs - ageMs - dayMs);
    return removed;
  }

  /** Sets a day aside. A day that is no longer there is left alone. */
  setAside(day: string, error: unknown): void {
    if (!this.#days.includes(day)) return;
    if (this.#written?.day === day) this.#close();
    this.#days = this.#days.filter((other) => other !== day);
    this.#broken(setAside(this.#directory, day), error);
  }

  /** Returns the days, the oldest first. */
  days(): readonly string[] {
    return this.#days;
  }

  /** Returns the facts with which a day after all of these begins. */
  carried(nowMs: number): Carried {
    return this.#marksBefore("9999-12-31", nowMs);
  }

  stats(): { readonly days: number; readonly bytes: number } {
    const bytes = this.#days.reduce((sum, day) => sum + dayBytes(this.#directory, day), 0);
    return { days: this.#days.length, bytes };
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #today(nowMs: number): LogDay {
    const now = new Date(nowMs).toISOString().slice(0, 10);
    const newest = this.#days.at(-1);
    const day = newest === undefined || newest < now ? now : newest;
    const path = dayPath(this.#directory, day);
    if (this.#written?.day === day && this.#written.inode === inodeOf(path))
      return this.#written.file;
    this.#close(); // Another day begins, or somebody took the file away.
    const file = this.#open(day, nowMs);
    if (day !== newest) this.#days.push(day);
    this.#written = { day, file, inode: inodeOf(path) };
    return file;
  }

  #open(day: string, nowMs: number): LogDay {
    const open = (): LogDay =>
      new LogDay(dayPath(this.#directory, day), () => this.#marksBefore(day, nowMs));
    try {
      return open();
    } catch (error) {
      if (!isCorruption(error)) throw error;
      this.#broken(setAside(this.#directory, day), error);
      return open();
    }
  }

  /** Returns the marks of the newest earlier day that can be read. */
  #marksBefore(day: string, nowMs: number): Carried {
    for (const before of this.#days.filter((other) => other < day).toReversed()) {
      const carried = this.#carriedBy(before, nowMs - marksKeptMs);
      if (carried !== undefined) return carried;
    }
    return { marks: [], canaries: [] };
  }

  /** Returns what a day carries over, or undefined if its file is broken; then it is set aside. */
  #carriedBy(day: string, updatedMs: number): Carried | undefined {
    try {
      using file = new LogDay(dayPath(this.#directory, day), () => this.#marksBefore(day, 0));
      return file.carriedSince(updatedMs);
    } catch (error) {
      if (!isCorruption(error)) throw error;
      this.setAside(day, error);
      return undefined;
    }
  }

  #close(): void {
    this.#written?.file[Symbol.dispose]();
    this.#written = undefined;
  }
}
