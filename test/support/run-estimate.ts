// How far a run of the tests is and how long it will take, by how long each file took before.
//
// `test/durations.json` is what every clone begins with, `var/test-durations.json` what this machine has measured since; both hold milliseconds by file. The
// former is a copy of the latter after a whole run in CI.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Milliseconds from the start of a file's process to the end of its last hook. */
export type Durations = Readonly<Record<string, number>>;

export const shippedDurations = "test/durations.json";

/** Reads what is known of the project at `root`: what every clone begins with, then what this machine has measured. */
export function readDurations(
  root: string,
  paths = [shippedDurations, "var/test-durations.json"],
): Durations {
  return Object.assign(
    {},
    ...paths
      .map((path) => join(root, path))
      .filter((path) => existsSync(path))
      .map((path) => JSON.parse(readFileSync(path, "utf8")) as Durations),
  ) as Durations;
}

/** What a machine's speed is believed by before it has run much: this much work at the speed of the measurement. */
const priorMs = 20_000;
/** A process is started for each file before its own time begins. */
const startMs = 200;
/** For a file of a project where nothing was ever measured. */
const unknownMs = 1_000;

const folderOf = (file: string): string => file.slice(0, file.lastIndexOf("/") + 1);
const meanOf = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((sum, ms) => sum + ms, 0) / values.length;

/** A file that is new is expected to take as long as those beside it. */
export function expectedMs(file: string, known: Durations): number {
  const own = known[file];
  if (own !== undefined) return own;
  const beside = Object.keys(known).filter((other) => folderOf(other) === folderOf(file));
  return (
    meanOf(beside.map((other) => known[other] ?? 0)) ?? meanOf(Object.values(known)) ?? unknownMs
  );
}

/** Times are milliseconds of any one clock. */
export class Estimate {
  readonly #expected: ReadonlyMap<string, number>;
  readonly #workers: number;
  readonly #beganAt: number;
  readonly #running = new Map<string, number>();
  readonly #tookMs = new Map<string, number>();

  constructor(files: readonly string[], known: Durations, workers: number, now: number) {
    this.#expected = new Map(files.map((file) => [file, expectedMs(file, known)]));
    this.#workers = Math.max(1, Math.min(workers, files.length));
    this.#beganAt = now;
  }

  begins(file: string, now: number): void {
    this.#running.set(file, now);
  }

  ends(file: string, now: number): void {
    const began = this.#running.get(file) ?? now;
    this.#running.delete(file);
    this.#tookMs.set(file, now - began);
  }

  get tookMs(): ReadonlyMap<string, number> {
    return this.#tookMs;
  }

  /** Of the whole run: what has passed, and what is left shared among the workers, by the speed of this run. */
  totalMs(now: number): number {
    let [expected, took] = [priorMs, priorMs];
    const left: number[] = [];
    for (const [file, ms] of this.#expected) {
      const measured = this.#tookMs.get(file);
      const since = this.#running.get(file);
      if (measured === undefined)
        left.push(since === undefined ? ms + startMs : Math.max(0, ms - (now - since)));
      else {
        expected += ms;
        took += measured;
      }
    }
    const shared = left.reduce((sum, ms) => sum + ms, 0) / this.#workers;
    return now - this.#beganAt + (Math.max(shared, ...left) * took) / expected;
  }

  /** `123 of 379 files, 4 min 10 s of about 14 min`. */
  words(now: number): string {
    const total = aboutWords(this.totalMs(now));
    const count = `${this.#expected.size} ${this.#expected.size === 1 ? "file" : "files"}`;
    return now === this.#beganAt
      ? `${count}, about ${total}`
      : `${this.#tookMs.size} of ${count}, ${spanWords(now - this.#beganAt)} of about ${total}`;
  }
}

function spanWords(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** No more exact than it is known: to ten seconds, above a minute and a half to a minute. */
function aboutWords(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds >= 90) return `${Math.round(seconds / 60)} min`;
  return `${seconds < 10 ? Math.max(1, Math.ceil(seconds)) : Math.ceil(seconds / 10) * 10} s`;
}
