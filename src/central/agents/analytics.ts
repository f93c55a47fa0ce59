// `analytics.db` as the counting thread has it: folded into and asked. Where it is broken, it is set aside and begun anew
// from the request logs that are kept.

import { existsSync, renameSync } from "node:fs";
import { isCorruption } from "../../base/sqlite.ts";
import { topLists } from "../../wire/customer/analytics.ts";
import { AnalyticsFile } from "./analytics-file.ts";
import { AnalyticsFold, type FoldStep } from "./analytics-fold.ts";
import { viewAnalytics, type AnalyticsAnswer, type AnalyticsQuery } from "./analytics-view.ts";
import type { BrokenDay } from "./log-archive.ts";
import { isSameFold, type FoldedFile } from "./folded-file.ts";
import type { KeptNumbers } from "./kept-numbers.ts";
import type { LogDays } from "./log-days.ts";

export type AnalyticsPlace = {
  readonly path: string;
  readonly bytesMax: number;
};

/** The steps that a question waits for, so that its numbers are those of the logs: some 300 ms. */
const stepsPerQuestion = 3;
/** And for the most frequent keys, of the last 10,000 records: some 200 ms. */
const keyStepsPerQuestion = 10;

export class AnalyticsStore implements Disposable {
  readonly #place: AnalyticsPlace;
  readonly #broken: (path: string, error: unknown) => void;
  readonly #days: LogDays;
  readonly #kept: KeptNumbers | undefined;
  #file: AnalyticsFile;

  /**
   * Opens the file. It closes `days` when it is disposed. `broken` is called when the file is set aside. `kept`: numbers of days that are gone, where others keep some.
   */
  constructor(
    days: LogDays,
    place: AnalyticsPlace,
    broken: (path: string, error: unknown) => void,
    kept?: KeptNumbers,
  ) {
    this.#kept = kept;
    this.#place = place;
    this.#broken = broken;
    this.#days = days;
    try {
      this.#file = new AnalyticsFile(place.path);
    } catch (error) {
      if (!isCorruption(error)) throw error;
      this.#file = this.#beginAnew(error);
    }
  }

  /** Folds the next piece. At the end of all pieces it removes what is over the limits. */
  fold(nowMs: number): FoldStep | BrokenDay {
    return this.#guarded((file) => {
      const nowS = nowMs / 1e3;
      const step = this.#folding(file).fold(nowS);
      if (step.kind === "broken" || step.isMore) return step;
      const missing = this.#missing(file);
      if (missing !== undefined) file.take(missing, this.#kept?.rows(missing.day) ?? [], nowS);
      else file.limit(this.#place.bytesMax, nowS);
      return { kind: "step", isMore: missing !== undefined };
    });
  }

  /** Answers a question after what arrived meanwhile was folded, or says that there is more of it. */
  answer(query: AnalyticsQuery): AnalyticsAnswer | BrokenDay {
    return this.#guarded((file) => {
      const nowS = query.nowMs / 1e3;
      const isOfKeys = query.by !== undefined && query.by in topLists;
      let step = this.#folding(file).foldCounts(nowS, stepsPerQuestion);
      for (let left = isOfKeys ? keyStepsPerQuestion : 0; left > 0; left--) {
        if (step.kind === "broken" || step.isMore) break;
        const keys = this.#folding(file).fold(nowS);
        if (keys.kind === "broken") step = keys;
        else if (!keys.isMore) break;
      }
      if (step.kind === "broken") return step;
      return viewAnalytics(file, query, !step.isMore && this.#missing(file) === undefined);
    });
  }

  /** Returns the days whose files may go: they are folded and written no more, and kept for others where there are some. */
  done(nowMs: number): readonly string[] {
    return this.#guarded((file) => {
      const done = this.#folding(file).done();
      this.#keep(file, done, nowMs / 1e3);
      return done;
    });
  }

  bytes(): number {
    return this.#guarded((file) => file.bytes());
  }

  /** Forgets days whose files are no longer what they were. */
  close(days: readonly string[]): void {
    for (const day of days) this.#days.close(day);
  }

  [Symbol.dispose](): void {
    this.#days[Symbol.dispose]();
    this.#file[Symbol.dispose]();
  }

  #keep(file: AnalyticsFile, done: readonly string[], nowS: number): void {
    if (this.#kept === undefined) return;
    const kept = new Map(this.#kept.list().map((one) => [one.day, one]));
    for (const day of done) {
      const folded = file.folded(day);
      if (folded === undefined || kept.get(day)?.inode === folded.inode) continue;
      this.#kept.keep(folded, () => file.rowsOf(day));
    }
    this.#kept.limit(nowS);
  }

  /** Returns the newest day that is gone, and that this file has not, or not as a whole. */
  #missing(file: AnalyticsFile): FoldedFile | undefined {
    if (this.#kept === undefined) return undefined;
    const kept = this.#kept.list();
    if (kept.length === 0) return undefined;
    const there = new Set(this.#days.list());
    return kept.findLast((one) => {
      if (there.has(one.day) && this.#days.identityOf(one.day) === one.inode) return false;
      const own = file.folded(one.day);
      return own === undefined || !isSameFold(own, one);
    });
  }

  #folding(file: AnalyticsFile): AnalyticsFold {
    return new AnalyticsFold(this.#days, file);
  }

  #guarded<T>(action: (file: AnalyticsFile) => T): T {
    try {
      return action(this.#file);
    } catch (error) {
      if (!isCorruption(error)) throw error;
      this.#file[Symbol.dispose]();
      this.#file = this.#beginAnew(error);
      return action(this.#file);
    }
  }

  #beginAnew(error: unknown): AnalyticsFile {
    const { path } = this.#place;
    let aside = `${path}.broken`;
    for (let no = 1; existsSync(aside); no++) aside = `${path}.broken-${no}`;
    for (const suffix of ["", "-wal", "-shm"])
      if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
    this.#broken(aside, error);
    return new AnalyticsFile(path);
  }
}
