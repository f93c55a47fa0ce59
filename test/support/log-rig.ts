// Writer and reader of request logs in one, without their threads.

import {
  LogArchive,
  type ReadPage,
  type ReadRequest,
} from "../../src/central/agents/log-archive.ts";
import type { LogWriter } from "../../src/central/agents/log-engine.ts";
import type { Retention } from "../../src/central/agents/log-store.ts";
import type { AppendOutcome, AppendRequest } from "../../src/central/agents/log-take.ts";
import { openTestDays, openTestWriter } from "./any-logs.ts";

/** Writer and reader of one directory, as their two threads hold them; where tests mean it, of a database. */
export class Logs implements Disposable {
  readonly store: LogWriter;
  readonly archive: LogArchive;

  constructor(directory: string, broken: string[] = []) {
    this.store = openTestWriter(directory, (path) => broken.push(path));
    this.archive = new LogArchive(openTestDays(directory));
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
