// What main and an accelerator worker say to each other. Both are of one build, so nothing is validated; what is shared lies in shared-words.ts.

import type { MetricsData } from "../../../base/metrics.ts";
import type { ForwardedHeader } from "../../../core/http/client-address.ts";
import type { FaultCode } from "../../../core/faults.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Probe, ProbeAnswer } from "../../../core/serving/plan-probes.ts";
import type { ServingState } from "../../../core/serving/serving-state.ts";
import type { Staple } from "../../../core/serving/staple.ts";
import type { ProxyProtocol } from "../doors/proxy-gate.ts";
import type { RequestBodyLimits } from "../bodies/request-bodies.ts";
import type { OriginShareLimits } from "../origin/origin-shares.ts";
import type { VisitorSums } from "../records/visitor-sums.ts";
import type { UpgradeLimits } from "../upgrades/open-upgrades.ts";
import type { VisitorLimits } from "../doors/visitor-shares.ts";
import type { TicketKeys } from "../doors/ticket-keys.ts";
import type { LateVisitors, LentSockets } from "./visitor-sockets.ts";

/** Whom a visitor may come through, and how it says who that is. */
export type ProxySettings = {
  readonly trusted: readonly string[];
  readonly forwardedHeader: ForwardedHeader;
  readonly proxyProtocol: ProxyProtocol;
};

export type AcceleratorInit = {
  readonly no: number;
  readonly poolWords: SharedArrayBuffer;
  readonly heartbeat: SharedArrayBuffer;
  /** The port is the one that main bound: never 0. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Null: HTTPS is not served. */
  readonly tlsListen: { readonly host: string; readonly port: number } | null;
  readonly ticketKeys: TicketKeys;
  readonly staples: readonly Staple[];
  readonly proxies: ProxySettings;
  /** Answers for requests addressed by IP address, as localhost or to nobody; null: nobody does. */
  readonly defaultDomain: string | null;
  readonly blobsDir: string;
  /** The memory of one worker for small files of viewsets, bytes. */
  readonly filesMemoryMax: number;
  /** The memory of one worker for whole answers, bytes. */
  readonly answersMemoryMax: number;
  readonly upgrades: UpgradeLimits;
  readonly requestBodies: RequestBodyLimits;
  readonly visitors: VisitorLimits;
  readonly originShares: OriginShareLimits;
};

/** `no` stands in the answer again. */
export type ToWorker =
  | { readonly kind: "stage"; readonly no: number; readonly state: ServingState }
  /** States of lower versions are not flipped to any more; answered by `dropped` when the worker reads nothing of them any more. */
  | { readonly kind: "drop"; readonly below: number }
  | { readonly kind: "listen"; readonly no: number; readonly sockets: LentSockets }
  /** The keys with which tickets are sealed from now on. */
  | { readonly kind: "ticket-keys"; readonly keys: TicketKeys }
  /** All answers of OCSP that are sent along with certificates from now on. */
  | { readonly kind: "staples"; readonly staples: readonly Staple[] }
  | { readonly kind: "metrics"; readonly no: number }
  | { readonly kind: "sums"; readonly no: number }
  /** The answers that the staged state of this version would give. */
  | {
      readonly kind: "probe";
      readonly no: number;
      readonly version: number;
      readonly probes: readonly Probe[];
    }
  /** Answered by `finished` when what is under way now has ended, or `graceMs` are over; others are served all the same. */
  | { readonly kind: "finish"; readonly no: number; readonly graceMs: number }
  /** `late`: who is to be served besides, although nobody listens any more. */
  | { readonly kind: "drain"; readonly graceMs: number; readonly late?: LateVisitors }
  /** Whether each answer is the last one of its connection from now on, where HTTP/1 carries it. */
  | { readonly kind: "slacken"; readonly isSlack: boolean }
  /**
   * The agent hands over: as `drain`, with records going to the successor from now on. Answered by `parted` when no visitor is accepted any more and the lane has
   * ended; `quiet` follows.
   */
  | {
      readonly kind: "part";
      readonly no: number;
      readonly graceMs: number;
      /** How much longer writes may take. */
      readonly writesMs: number;
    };

/** A blob that could not be read as the manifest has it. */
export type BadBlob = {
  readonly sha256: Sha256;
  readonly size: number;
  readonly reason: string;
};

export type FromWorker =
  | { readonly kind: "staged"; readonly no: number }
  | { readonly kind: "dropped"; readonly below: number }
  | { readonly kind: "listening"; readonly no: number }
  | { readonly kind: "finished"; readonly no: number }
  | { readonly kind: "parted"; readonly no: number }
  /** No request begins any more. */
  | { readonly kind: "quiet" }
  | {
      readonly kind: "refused";
      readonly no: number;
      readonly code: FaultCode;
      readonly message: string;
    }
  | { readonly kind: "metrics"; readonly no: number; readonly metrics: MetricsData }
  | { readonly kind: "sums"; readonly no: number; readonly sums: VisitorSums }
  | { readonly kind: "probed"; readonly no: number; readonly answers: readonly ProbeAnswer[] }
  | { readonly kind: "bad-blob"; readonly blob: BadBlob };
