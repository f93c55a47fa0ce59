// The files of days that a reading thread has open, because opening one takes some 0.3 ms. Days that go or begin meanwhile
// are seen at the next look.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DayNotReady, LogDayView } from "./log-day-view.ts";
import type { LogDays } from "./log-days.ts";
import { dayOf, dayPath, inodeOf } from "./log-files.ts";

/** An open file. Under its name there may be another one by now, begun anew, or none. */
type Opened = { readonly view: LogDayView; readonly inode: number };

/** The most files kept open. There may be more while they are read. */
const openDaysMax = 64;

export class OpenDays implements LogDays {
  readonly #directory: string;
  /** The open files; the one used last comes last. */
  readonly #open = new Map<string, Opened>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Returns the days that are there, the oldest first. */
  list(): readonly string[] {
    return readdirSync(this.#directory)
      .flatMap((name) => dayOf(name) ?? [])
      .sort();
  }

  /** Opens a day's file, or returns undefined if it is just being begun or removed. */
  view(day: string): LogDayView | undefined {
    const path = dayPath(this.#directory, day);
    const inode = inodeOf(path);
    if (this.#open.get(day)?.inode !== inode) this.close(day);
    try {
      const opened = this.#open.get(day) ?? { view: new LogDayView(path), inode };
      this.#open.delete(day);
      this.#open.set(day, opened);
      return opened.view;
    } catch (error) {
      if (error instanceof DayNotReady || inode === 0 || inodeOf(path) !== inode) return undefined;
      throw error;
    }
  }

  close(day: string): void {
    this.#open.get(day)?.view[Symbol.dispose]();
    this.#open.delete(day);
  }

  /** Closes the files that were used least recently while too many are open, but none of these days. */
  closeOldest(read: ReadonlySet<string> = new Set()): void {
    for (const day of this.#open.keys()) {
      if (this.#open.size <= openDaysMax) return;
      if (!read.has(day)) this.close(day);
    }
  }

  identityOf(day: string): number {
    return inodeOf(dayPath(this.#directory, day));
  }

  isAside(day: string, identity: number): boolean {
    return readdirSync(this.#directory)
      .filter((name) => name.startsWith(`${day}.db.broken`) && !/-(?:wal|shm)$/.test(name))
      .some((name) => inodeOf(join(this.#directory, name)) === identity);
  }

  [Symbol.dispose](): void {
    for (const day of this.#open.keys()) this.close(day);
  }
}
