// What central's main thread and its log thread say to each other. Each request has a number; the answer repeats it.

import type {
  AppendOutcome,
  AppendRequest,
  ReadRequest,
  ReadSlice,
  Retention,
} from "./log-store.ts";

export type LogThreadInit = { readonly directory: string };

export type LogRequest =
  | { readonly op: "append"; readonly no: number; readonly request: AppendRequest }
  | { readonly op: "read"; readonly no: number; readonly request: ReadRequest }
  | {
      readonly op: "retain";
      readonly no: number;
      readonly retention: Retention;
      readonly nowMs: number;
    }
  | { readonly op: "stats" | "close"; readonly no: number };

export type LogStats = { readonly days: number; readonly bytes: number };

/** What each operation answers. */
export type LogResults = {
  readonly append: AppendOutcome;
  readonly read: ReadSlice;
  /** Days removed. */
  readonly retain: readonly string[];
  readonly stats: LogStats;
  readonly close: null;
};

export type LogAnswer =
  | { readonly no: number; readonly ok: true; readonly result: LogResults[keyof LogResults] }
  | { readonly no: number; readonly ok: false; readonly message: string }
  /** A file was set aside. */
  | { readonly no: 0; readonly broken: string; readonly message: string };
