// The messages between main, the workers and the spool thread. All ends are this program's own, so nothing is
// decoded.

import type { MessagePort } from "node:worker_threads";
import type { Severity } from "../../../base/health.ts";
import type { Dropped, GapReason } from "./gaps.ts";
import type { Durability, WhenFull } from "./spool-policy.ts";

/** What a worker is given of its lane beside the port. */
export type LaneInit = {
  readonly shared: SharedArrayBuffer;
  /** The longest time that a record waits for others with which it is handed over. */
  readonly groupMs: number;
  /** Whether a request is served only with room for its record. */
  readonly blocks?: boolean;
};

/** A message from a worker to the spool thread; they arrive in order. */
export type LaneMessage =
  | {
      readonly type: "group";
      readonly firstSeq: number;
      readonly count: number;
      /** The milliseconds within which they came, where those are more than a group is gathered for. */
      readonly overMs?: number;
      /** The records as NDJSON; the buffer is transferred. */
      readonly payload: Uint8Array;
    }
  | {
      readonly type: "gap";
      readonly firstSeq: number;
      readonly count: number;
      readonly reason: GapReason;
    }
  /** Something is about to come to a lane that rested. */
  | { readonly type: "wake" }
  /** Nothing or little came for a while: the worker gives back the numbers that are reserved beyond this one. */
  | { readonly type: "quiet"; readonly through: number; readonly rests: boolean }
  /** Nothing follows. The thread answers with a message once all is durable. */
  | { readonly type: "end" };

export type SpoolInit = {
  readonly directory: string;
  readonly bytesMax: number;
  readonly whenFull: WhenFull;
  readonly durability: Durability;
  /** The site to which the records belong. */
  readonly name16: string;
  readonly fsyncIntervalMs: number;
  readonly fsyncBytes: number;
  readonly bootEpoch: string;
  /** One 32-bit word that changes while the thread lives. */
  readonly heartbeat: SharedArrayBuffer;
};

/**
 * accepted = committed + spooled + inMemory + dropped, in numbers of records. Numbers that are unproven or unknown
 * are no part of them.
 */
export type Balance = {
  readonly accepted: number;
  readonly committed: number;
  readonly spooled: number;
  readonly inMemory: number;
  readonly dropped: Dropped;
  /** Numbers reserved ahead by processes that ended; nobody knows how many of them stood for a record. */
  readonly unproven: number;
  /**
   * Numbers that central has of processes whose disk took nothing any more: as records or as gaps, and only central knows
   * which.
   */
  readonly unknown: number;
};

export type LaneFacts = {
  /** `<boot epoch>/<lane no>` */
  readonly lane: string;
  /** Whether a worker still writes to it. */
  readonly live: boolean;
  /** Central has everything through this number. */
  readonly mark: number;
  /** Everything through this number can be sent. */
  readonly durable: number;
  /** Whether a batch is on its way. */
  readonly inFlight: boolean;
  /** The bytes of its segments. */
  readonly bytes: number;
  /**
   * How long the oldest record behind the mark has been waiting, to the second; for an earlier run's lane it
   * is a lower bound.
   */
  readonly waitingMs: number;
  readonly balance: Balance;
};

export type SpoolFacts = {
  /** The balance of all lanes since the state began. */
  readonly balance: Balance;
  readonly bytes: number;
  /** Whether requests wait for room under `block`, or did a moment ago. */
  readonly isBlocking: boolean;
  readonly lanesTotal: number;
  /** All live lanes, and the oldest of the others. */
  readonly lanes: readonly LaneFacts[];
};

/** A notice for the operator; it is settled when its code comes without text. */
export type SpoolNotice = {
  readonly code:
    | "spool_failing"
    | "spool_full"
    | "spool_blocking"
    | "spool_damaged"
    | "spool_conflict"
    | "spool_foreign";
  readonly severity: Severity;
  readonly text: string | undefined;
};

/** The lanes of a run that ended without closing them, and the most records that they can have lost together. */
export type CrashLoss = {
  readonly lanes: readonly string[];
  readonly lanesTotal: number;
  readonly atMost: number;
};

export type BatchLimits = { readonly recordsMax: number; readonly bytesMax: number };

/** Lines that cover `firstSeq` to `lastSeq` without hole or overlap. */
export type LaneBatch = {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly lines: number;
  /** Whether the one line is a gap; it matters only when `lines` is 1. */
  readonly isGap: boolean;
  /** Whether there is more to send after it. */
  readonly hasMore: boolean;
  readonly body: Uint8Array<ArrayBuffer>;
};

export type Request =
  | { readonly type: "read"; readonly lane: string; readonly limits: BatchLimits }
  /** Central said that it has everything through `mark`, and nothing after it. */
  | { readonly type: "confirm"; readonly lane: string; readonly mark: number }
  /** Central refused the one record `seq`. */
  | {
      readonly type: "poison";
      readonly lane: string;
      readonly seq: number;
      readonly why: string;
    }
  | { readonly type: "facts" }
  /** Ends the thread once everything received is durable. */
  | { readonly type: "close" };

export type SpoolAnswer = { readonly facts: SpoolFacts; readonly batch: LaneBatch | undefined };

/** A message from main to the spool thread. */
export type ToSpool =
  | { readonly type: "open"; readonly shared: SharedArrayBuffer; readonly port: MessagePort }
  /** Somebody wants to read records as they come (tail-ring.ts). */
  | { readonly type: "tail"; readonly follow: boolean; readonly port: MessagePort }
  | { readonly type: "request"; readonly id: number; readonly request: Request };

/** A message from the spool thread to main. */
export type FromSpool =
  | { readonly type: "answer"; readonly id: number; readonly answer: SpoolAnswer }
  | { readonly type: "facts"; readonly facts: SpoolFacts }
  | { readonly type: "notice"; readonly notice: SpoolNotice }
  | { readonly type: "crashed"; readonly loss: CrashLoss }
  | { readonly type: "fault"; readonly id: number; readonly message: string };
