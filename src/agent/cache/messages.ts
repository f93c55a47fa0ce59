// What main, the index thread and the workers say to each other. All ends are ours and of one release, so a message is taken for what its sender's type says.
//
//   main ⇄ index thread    calls with answers; attachments of workers; notes for health, log and metrics
//   main → worker          the port of the index thread, anew each time that one is started
//   worker ⇄ index thread  commits and invalidations with answers, notes; the view after attaching and whenever the index is opened anew

import type { WarningCode } from "../../base/warning-codes.ts";
import type { MessagePort } from "node:worker_threads";
import type { FaultCode } from "../../core/faults.ts";
import type { Severity } from "../../base/health.ts";
import type { ClearApplied, ClearGone, ClearRequest, RefusedStores } from "./clearing/clears.ts";
import type { ClearSelection } from "./clearing/selection.ts";
import type { CommitOutcome, EntryKey, Scope } from "./entry.ts";
import type { FoundEntry } from "./index/entry-sql.ts";
import type { IndexFacts } from "./index/opening.ts";
import type { WhyAnswer } from "./index/why.ts";
import type { Write } from "./index/writes.ts";

/** The start of an index thread. */
export type IndexerInit = {
  /** state_dir/cache */
  readonly directory: string;
  readonly matcherEntry: string;
  readonly diskMax: number;
  /** Setting `cache.disk_free_min`. */
  readonly freeMin: number | undefined;
  readonly matchBudgetMs: number;
  readonly facts: IndexFacts;
  readonly header: SharedArrayBuffer;
  /** See key-presence.ts. */
  readonly keys: SharedArrayBuffer;
};

export type SearchResult = {
  readonly matched: number;
  /** Matching took longer than it may: nothing is known, and the clear of these patterns would widen. */
  readonly overBudget: boolean;
  /** The newest first. */
  readonly samples: readonly FoundEntry[];
};
export type CacheStats = {
  readonly isOpen: boolean;
  readonly entries: number;
  readonly bytes: number;
  readonly diskMax: number;
  /** How much of it may not be used, because the disk has to keep room for others. */
  readonly withheldBytes: number;
  /** What the write-ahead log of the index takes on disk, beside `bytes` and `diskMax`. */
  readonly walBytes: number;
  readonly clearNo: number;
  /** The newest of which no crash can take the number away; without an index, the one that the next must know. */
  readonly durableNo: number;
  readonly unfinishedClears: number;
};
export type CheckResult = { readonly ok: boolean; readonly problems: readonly string[] };

/** `unchecked`: nobody knows; it took too long, or there is no index. */
export type IndexVerdict =
  | { readonly kind: "whole" }
  | { readonly kind: "damaged" | "unchecked"; readonly reason: string };

/** The calls by which main asks the index thread, by name. */
export type Calls = {
  readonly clear: { readonly asked: ClearRequest; readonly answer: ClearApplied };
  /** Resolves when the deletion of an applied clear has ended. */
  readonly gone: { readonly asked: { readonly clearId: string }; readonly answer: ClearGone };
  /** Whether a clear by URL may have hit the scope; answered behind all clears that were given before. */
  readonly clearedByUrl: { readonly asked: { readonly scope: Scope }; readonly answer: boolean };
  readonly search: {
    readonly asked: {
      readonly scope: Scope;
      readonly selection: ClearSelection;
      readonly limit: number;
      /** The budget of the matching; undefined takes that of a clear. */
      readonly budgetMs: number | undefined;
    };
    readonly answer: SearchResult;
  };
  readonly why: {
    readonly asked: { readonly keys: readonly EntryKey[] };
    readonly answer: WhyAnswer;
  };
  /** The epoch of the journal that is followed from now on. */
  readonly epoch: { readonly asked: { readonly epoch: string | null }; readonly answer: null };
  readonly stats: { readonly asked: null; readonly answer: CacheStats };
  readonly check: { readonly asked: null; readonly answer: CheckResult };
  /** Whether the index is whole; one that is damaged is replaced. */
  readonly scrub: { readonly asked: null; readonly answer: IndexVerdict };
  /** Bodies that are missing, or not what was written: their entries go. */
  readonly lost: { readonly asked: { readonly ids: readonly number[] }; readonly answer: null };
  /** `isHandedOver`: another process of this boot opens it next, and nothing waits for the disk. */
  readonly close: {
    readonly asked: { readonly isHandedOver: boolean };
    readonly answer: { readonly durableNo: number };
  };
};
export type CallName = keyof Calls;

export type Call = {
  [N in CallName]: { readonly name: N; readonly asked: Calls[N]["asked"] };
}[CallName];

export type MainToIndexer =
  | { readonly kind: "attach"; readonly port: MessagePort }
  | { readonly kind: "call"; readonly no: number; readonly call: Call };

/** Running totals since the thread was started, and what is now. */
export type IndexerTotals = CacheStats & {
  readonly stored: number;
  readonly blocked: number;
  readonly evicted: number;
  readonly failed: number;
};

export type IndexerToMain =
  | { readonly kind: "answer"; readonly no: number; readonly answer: unknown }
  | {
      readonly kind: "fault";
      readonly no: number;
      readonly code: FaultCode;
      readonly reason: string;
    }
  | {
      readonly kind: "raise";
      readonly code: WarningCode;
      readonly severity: Severity;
      readonly text: string;
      readonly hint: string;
    }
  | { readonly kind: "settle"; readonly code: WarningCode }
  /** How many responses these clears have kept from being stored by now. */
  | { readonly kind: "refused"; readonly clears: readonly RefusedStores[] }
  /** An index is open under this name. */
  | { readonly kind: "opened"; readonly opening: string }
  /** Everything cached was dropped. */
  | { readonly kind: "dropped" }
  | { readonly kind: "totals"; readonly totals: IndexerTotals };

/** The start of a worker, beside the port to main. */
export type CacheInit = {
  readonly directory: string;
  readonly header: SharedArrayBuffer;
  /** See key-presence.ts. */
  readonly keys: SharedArrayBuffer;
  readonly memoryMax: number;
  readonly diskMax: number;
  /** The worker's share of the bytes in flight. */
  readonly diskShare: SharedArrayBuffer;
};

export type MainToWorker = { readonly kind: "attached"; readonly port: MessagePort };

/** The index that the worker looks at from now on. */
export type View = {
  readonly incarnation: number;
  readonly run: string;
  /** See entry-bits.ts. */
  readonly bits: SharedArrayBuffer;
  readonly fresh: SharedArrayBuffer;
  readonly baseId: number;
  /** Files of entries up to here may be torn: they are verified before their first use. */
  readonly suspectTo: number;
};

export type WorkerToIndexer =
  /** Answered by its number. */
  | (Extract<Write, { kind: "commit" | "refresh" | "variant" }> & {
      readonly no: number;
      readonly incarnation: number;
    })
  | (Extract<Write, { kind: "invalidate" }> & { readonly no: number })
  | Extract<Write, { kind: "lost" | "verified" | "used" }>
  /** The file of a body could not be written. `reason`: as `ENOSPC: no space left on device`. */
  | { readonly kind: "unwritten"; readonly reason: string }
  | { readonly kind: "damaged"; readonly incarnation: number; readonly reason: string };

export type IndexerToWorker =
  | { readonly kind: "view"; readonly view: View }
  | { readonly kind: "committed"; readonly no: number; readonly outcome: CommitOutcome }
  /** Undefined: done and durable. */
  | { readonly kind: "invalidated"; readonly no: number; readonly fault: string | undefined };
