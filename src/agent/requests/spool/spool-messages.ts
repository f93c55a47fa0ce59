// What main, the workers and the spool thread say to each other. All ends are this program's own, so nothing is decoded.

import type { MessagePort } from "node:worker_threads";
import type { Severity } from "../../../base/health.ts";
import type { Dropped, GapReason } from "./gaps.ts";
import type { Durability, WhenFull } from "./spool-policy.ts";

/** Given to the worker that a lane is for, beside its port. */
export type LaneInit = {
  readonly shared: SharedArrayBuffer;
  /** A record waits at most so long for others to be handed over with. */
  readonly groupMs: number;
  /** A request is served only with room for its record. */
  readonly blocks?: boolean;
};

/** Worker → spool thread, in order. */
export type LaneMessage =
  | {
      readonly type: "group";
      readonly firstSeq: number;
      readonly count: number;
      /** NDJSON, transferred. */
      readonly payload: Uint8Array;
    }
  | {
      readonly type: "gap";
      readonly firstSeq: number;
      readonly count: number;
      readonly reason: GapReason;
    }
  /**
   * Nothing came for a while: the worker gives back what is reserved, except for numbers through this one.
   */
  | { readonly type: "quiet"; readonly through: number }
  /** Nothing follows. The thread answers with any message once all is durable. */
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
  /** One 32-bit word that moves while the thread lives. */
  readonly heartbeat: SharedArrayBuffer;
};

/** accepted = committed + spooled + inMemory + dropped, in numbers of records. */
export type Balance = {
  readonly accepted: number;
  readonly committed: number;
  readonly spooled: number;
  readonly inMemory: number;
  readonly dropped: Dropped;
};

export type LaneFacts = {
  /** `<boot epoch>/<lane no>` */
  readonly lane: string;
  /** A worker still writes to it. */
  readonly live: boolean;
  /** Central has everything through here. */
  readonly mark: number;
  /** Everything through here can be sent. */
  readonly durable: number;
  /** A batch is on its way. */
  readonly inFlight: boolean;
  /** The bytes of its segments. */
  readonly bytes: number;
  /** How long the oldest record behind the mark has been waiting, to the second; of an earlier run's lane at least so long. */
  readonly waitingMs: number;
  readonly balance: Balance;
};

export type SpoolFacts = {
  /** Over all lanes, since the state began. */
  readonly balance: Balance;
  readonly bytes: number;
  /** Under `block`: requests wait for room, or did a moment ago. */
  readonly isBlocking: boolean;
  readonly lanesTotal: number;
  /** All live lanes, and the oldest of the others. */
  readonly lanes: readonly LaneFacts[];
};

/** A notice for the operator; it is settled when the same code comes without text. */
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

/** The lanes of a run that ended without a word, and the most records that all of them together lost. */
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
  /** The one line is a gap. Only looked at when `lines` is 1. */
  readonly isGap: boolean;
  /** There is more to send behind it. */
  readonly hasMore: boolean;
  readonly body: Uint8Array<ArrayBuffer>;
};

export type Request =
  | { readonly type: "read"; readonly lane: string; readonly limits: BatchLimits }
  /** Central said that it has everything through `mark`, and nothing behind it. */
  | { readonly type: "confirm"; readonly lane: string; readonly mark: number }
  /** Central refused the record `seq`, and it alone. */
  | {
      readonly type: "poison";
      readonly lane: string;
      readonly seq: number;
      readonly why: string;
    }
  | { readonly type: "facts" }
  /** Ends the thread, after everything received is durable. */
  | { readonly type: "close" };

export type SpoolAnswer = { readonly facts: SpoolFacts; readonly batch: LaneBatch | undefined };

/** Main → spool thread. */
export type ToSpool =
  | { readonly type: "open"; readonly shared: SharedArrayBuffer; readonly port: MessagePort }
  /** Somebody reads records as they come: see tail-ring.ts. */
  | { readonly type: "tail"; readonly follow: boolean; readonly port: MessagePort }
  | { readonly type: "request"; readonly id: number; readonly request: Request };

/** Spool thread → main. */
export type FromSpool =
  | { readonly type: "answer"; readonly id: number; readonly answer: SpoolAnswer }
  | { readonly type: "facts"; readonly facts: SpoolFacts }
  | { readonly type: "notice"; readonly notice: SpoolNotice }
  | { readonly type: "crashed"; readonly loss: CrashLoss }
  | { readonly type: "fault"; readonly id: number; readonly message: string };
