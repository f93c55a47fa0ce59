// Writer and reader of request logs in one, without their threads.

import {
  LogArchive,
  type ReadPage,
  type ReadRequest,
} from "../../src/central/agents/log-archive.ts";
import { OpenDays } from "../../src/central/agents/log-open-days.ts";
import {
  LogStore,
  type AppendOutcome,
  type AppendRequest,
  type Retention,
} from "../../src/central/agents/log-store.ts";

/** Writer and reader of one directory, as their two threads hold them. */
export class Logs implements Disposable {
  readonly store: LogStore;
  readonly archive: LogArchive;

  constructor(directory: string, broken: string[] = []) {
    this.store = new LogStore(directory, (path) => broken.push(path));
    this.archive = new LogArchive(new OpenDays(directory));
  }

  append(request: AppendRequest): AppendOutcome | undefined {
    return this.store.append([request])[0];
  }

  read(request: ReadRequest): ReadPage {
    const page = this.archive.read(request);
    if (page.kind === "page") return page;
    this.store.setAside(page.day, new Error(page.message));
    this.archive.forget([page.day]);
    return this.read(request);
  }

  retain(retention: Retention, nowMs: number): readonly string[] {
    const days = this.store.retain(retention, nowMs);
    this.archive.forget(days);
    return days;
  }

  [Symbol.dispose](): void {
    this.archive[Symbol.dispose]();
    this.store[Symbol.dispose]();
  }
}
