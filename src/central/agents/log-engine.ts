// The port of request logs: what central asks of them, whichever engine keeps them. `log-client.ts` answers it by three
// threads, for SQLite files of days as for a database of PostgreSQL; what differs lies behind `LogWriter` and `LogDays`.

import type { AnalyticsAnswer, AnalyticsQuery } from "./analytics-view.ts";
import type { ReadRequest } from "./log-archive.ts";
import type { CanarySeen } from "./log-day.ts";
import type { LossDays } from "./log-losses.ts";
import type { LogStats, RecordRequest, ShownPage } from "./log-messages.ts";
import type { SearchRequest, SearchStep } from "./log-search.ts";
import type { LogStore, Retention } from "./log-store.ts";
import type { AppendOutcome, AppendRequest } from "./log-take.ts";

/**
 * Each question rejects with LOGS_UNAVAILABLE while it cannot be answered: too much waits, a thread is being started
 * again, the disk is full, or the database is away.
 */
export type LogEngine = AsyncDisposable & {
  /** Whether records lie in another program, which may be away while this one is well. */
  readonly isShared: boolean;
  /** The bytes of batches that wait to be stored. */
  readonly waitingBytes: number;
  /** Whether no batch would be taken now. */
  readonly isBusy: boolean;
  /** Why batches cannot be stored; undefined if they can, or nobody has tried yet. */
  readonly failure: string | undefined;
  /**
   * Appends a batch behind the mark of its lane. "committed" means durable, with records, gaps, counts and mark in one
   * transaction; a batch that is sent again is "repeated". Where it rejects, the batch may be committed all the same
   * (the answer was lost), and whoever sends it again is told so.
   */
  append(request: AppendRequest): Promise<AppendOutcome | { readonly kind: "busy" }>;
  /** Reads a page of a domain, newest first. */
  read(request: ReadRequest): Promise<ShownPage>;
  /** Takes one step of a search, of bounded work. */
  search(request: SearchRequest): Promise<SearchStep>;
  /** Returns the JSON text of one record as the API shows it; undefined if there is none. */
  record(request: RecordRequest): Promise<string | undefined>;
  /** Answers a question about numbers. */
  numbers(query: AnalyticsQuery): Promise<AnalyticsAnswer>;
  /** Returns the bytes that numbers take. */
  numbersBytes(timeoutMs: number): Promise<number>;
  /** Folds what was counted since into the numbers, and keeps those within their limits. Ends earlier if `stop` is aborted. */
  fold(nowMs: number, stop?: AbortSignal): Promise<void>;
  /** Returns when the newest canary of each deployment site was made and arrived. */
  canaries(timeoutMs: number): Promise<readonly CanarySeen[]>;
  /** Returns what agents told as lost in the newest `days` days. */
  losses(days: number): Promise<LossDays>;
  /** Removes whole days beyond their age and size, each after it was folded. Returns them. */
  retain(retention: Retention, nowMs: number): Promise<readonly string[]>;
  /** Returns how many days there are, and their bytes. */
  stats(timeoutMs: number): Promise<LogStats>;
  /** Rejects if this program's own part of it does not answer in time. A database that is away is no reason. */
  probe(timeoutMs: number): Promise<void>;
};

/** The one who writes, in its thread. Synchronous; one at a time in this program. */
export type LogWriter = Pick<
  LogStore,
  "append" | "tryToWrite" | "retain" | "setAside" | "stats" | typeof Symbol.dispose
>;
