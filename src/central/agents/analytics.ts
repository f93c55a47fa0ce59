// `analytics.db` as the counting thread has it: folded into and asked. Where it is broken, it is set aside and begun anew
// from the request logs that are kept.

import { existsSync, renameSync } from "node:fs";
import { isCorruption } from "../../base/sqlite.ts";
import { AnalyticsFile } from "./analytics-file.ts";
import { AnalyticsFold, type FoldStep } from "./analytics-fold.ts";
import { viewAnalytics, type AnalyticsAnswer, type AnalyticsQuery } from "./analytics-view.ts";
import type { BrokenDay } from "./log-archive.ts";
import type { LogDays } from "./log-days.ts";

export type AnalyticsPlace = {
  readonly path: string;
  readonly bytesMax: number;
};

/** The steps that a question waits for, so that its numbers are those of the logs: some 300 ms. */
const stepsPerQuestion = 3;

export class AnalyticsStore implements Disposable {
  readonly #place: AnalyticsPlace;
  readonly #broken: (path: string, error: unknown) => void;
  readonly #days: LogDays;
  #file: AnalyticsFile;

  /** Opens the file. It closes `days` when it is disposed. `broken` is called when the file is set aside. */
  constructor(
    days: LogDays,
    place: AnalyticsPlace,
    broken: (path: string, error: unknown) => void,
  ) {
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
      const step = this.#folding(file).fold(nowMs / 1e3);
      if (step.kind === "step" && !step.isMore) file.limit(this.#place.bytesMax, nowMs / 1e3);
      return step;
    });
  }

  /** Answers a question after what arrived meanwhile was folded, or says that there is more of it. */
  answer(query: AnalyticsQuery): AnalyticsAnswer | BrokenDay {
    return this.#guarded((file) => {
      const step = this.#folding(file).foldCounts(query.nowMs / 1e3, stepsPerQuestion);
      return step.kind === "broken" ? step : viewAnalytics(file, query, !step.isMore);
    });
  }

  /** Returns the days whose files may go: they are folded and written no more. */
  done(): readonly string[] {
    return this.#guarded((file) => this.#folding(file).done());
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
