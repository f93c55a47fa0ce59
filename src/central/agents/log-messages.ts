// What central's main thread says to its two threads of request logs, the one that writes and the one that
// reads. Each request has a number, which the answer repeats.

import type { BrokenDay, ReadRequest } from "./log-archive.ts";
import type { CanarySeen } from "./log-day.ts";
import type { LossDays } from "./log-losses.ts";
import type { AppendOutcome, AppendRequest, Retention } from "./log-store.ts";

export type LogThreadInit = { readonly directory: string; readonly role: "write" | "read" };

export type LogStats = { readonly days: number; readonly bytes: number };

/** A page as the API shows it. */
export type ShownPage = {
  readonly kind: "page";
  /** A JSON array of `LogLine` (`wire/customer/incoming-logs.ts`), newest first. */
  readonly logs: string;
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
};

/** The requests; the writer's come first. */
export type LogRequest =
  | { readonly op: "append"; readonly request: AppendRequest }
  | { readonly op: "retain"; readonly retention: Retention; readonly nowMs: number }
  | { readonly op: "setAside"; readonly day: string; readonly message: string }
  | { readonly op: "tryToWrite"; readonly nowMs: number }
  | { readonly op: "stats" }
  | { readonly op: "read"; readonly request: ReadRequest }
  | { readonly op: "forget"; readonly days: readonly string[] }
  | { readonly op: "canaries" }
  | { readonly op: "losses"; readonly days: number }
  /** Both threads take this one. */
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
  readonly forget: null;
  readonly canaries: readonly CanarySeen[];
  readonly losses: LossDays;
  readonly close: null;
};
export type LogResult = LogResults[keyof LogResults];

export type NumberedRequest = LogRequest & { readonly no: number };
export type LogAnswer =
  | { readonly no: number; readonly ok: true; readonly result: LogResult }
  | { readonly no: number; readonly ok: false; readonly message: string }
  /** Says that a file was set aside. */
  | { readonly no: 0; readonly broken: string; readonly message: string };
