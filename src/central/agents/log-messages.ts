// What central's main thread says to its threads of request logs: the one that writes, the one that reads, and the
// one that counts. Each request has a number, which the answer repeats.

import type { AnalyticsPlace } from "./analytics.ts";
import type { LogDatabase } from "./postgres-logs/log-database.ts";
import type { FoldStep } from "./analytics-fold.ts";
import type { AnalyticsAnswer, AnalyticsQuery } from "./analytics-view.ts";
import type { BrokenDay, ReadRequest } from "./log-archive.ts";
import type { CanarySeen } from "./log-day.ts";
import type { LossDays } from "./log-losses.ts";
import type { LogPosition } from "./log-position.ts";
import type { SearchRequest, SearchStep } from "./log-search.ts";
import type { Retention } from "./log-store.ts";
import type { AppendOutcome, AppendRequest } from "./log-take.ts";

export type LogThreadInit = {
  readonly directory: string;
  /** Where request logs are written, if not into the directory. */
  readonly database: LogDatabaseWay | undefined;
} & (
  | { readonly role: "write" | "read" }
  | { readonly role: "count"; readonly analytics: AnalyticsPlace }
);

/** A database, and the file of the thread that talks to it. */
export type LogDatabaseWay = { readonly database: LogDatabase; readonly entry: string };

export type LogStats = { readonly days: number; readonly bytes: number };

/** A page as the API shows it. */
export type ShownPage = {
  readonly kind: "page";
  /** A JSON array of `LogLine` (`wire/customer/incoming-logs.ts`), newest first. */
  readonly logs: string;
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
};

/** One record of a domain at one of these sites. */
export type RecordRequest = {
  readonly place: LogPosition;
  readonly domain: string;
  readonly siteIds: readonly number[];
};

/** The requests: the writer's, the reader's, the counter's. */
export type LogRequest =
  | { readonly op: "append"; readonly request: AppendRequest }
  | {
      readonly op: "retain";
      readonly retention: Retention;
      readonly nowMs: number;
      /** The days that may go; all, where nothing is folded. */
      readonly folded: readonly string[] | undefined;
    }
  | { readonly op: "setAside"; readonly day: string; readonly message: string }
  | { readonly op: "tryToWrite"; readonly nowMs: number }
  | { readonly op: "stats" }
  | { readonly op: "read"; readonly request: ReadRequest }
  | { readonly op: "search"; readonly request: SearchRequest }
  | { readonly op: "record"; readonly request: RecordRequest }
  /** The counter takes this one, too. */
  | { readonly op: "forget"; readonly days: readonly string[] }
  | { readonly op: "canaries" }
  | { readonly op: "losses"; readonly days: number }
  | { readonly op: "fold"; readonly nowMs: number }
  | { readonly op: "numbers"; readonly query: AnalyticsQuery }
  | { readonly op: "numbersBytes" }
  | { readonly op: "folded"; readonly nowMs: number }
  /** All threads take this one. */
  | { readonly op: "close" };

/** The result of each operation. */
export type LogResults = {
  readonly append: AppendOutcome;
  /** The days removed; their room is still taken. */
  readonly retain: readonly string[];
  readonly setAside: null;
  readonly tryToWrite: null;
  readonly stats: LogStats;
  readonly read: ShownPage | BrokenDay;
  readonly search: SearchStep | BrokenDay;
  /** The JSON text of a `RequestDetail` (`wire/customer/requests.ts`). */
  readonly record: { readonly kind: "record"; readonly text: string | undefined } | BrokenDay;
  readonly forget: null;
  readonly canaries: readonly CanarySeen[];
  readonly losses: LossDays;
  readonly fold: FoldStep | BrokenDay;
  readonly numbers: AnalyticsAnswer | BrokenDay;
  readonly numbersBytes: number;
  readonly folded: readonly string[];
  readonly close: null;
};
export type LogResult = LogResults[keyof LogResults];

export type NumberedRequest = LogRequest & { readonly no: number };
export type LogAnswer =
  | { readonly no: number; readonly ok: true; readonly result: LogResult }
  | { readonly no: number; readonly ok: false; readonly message: string }
  /** Says that a file was set aside. */
  | { readonly no: 0; readonly broken: string; readonly message: string };
