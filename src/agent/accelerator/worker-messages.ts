// What main and an accelerator worker say to each other. Both are of one build, so nothing is validated; what is shared lies in shared-words.ts.

import type { MetricsData } from "../../base/metrics.ts";
import type { ForwardedHeader } from "../../core/client-address.ts";
import type { FaultCode } from "../../core/faults.ts";
import type { ServingState } from "../../core/serving-state.ts";
import type { ProxyProtocol } from "./listener.ts";

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
  /** The port is the one that main found free: never 0. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly proxies: ProxySettings;
  /** Answers for requests addressed by IP address, as localhost or to nobody; null: nobody does. */
  readonly defaultDomain: string | null;
  readonly blobsDir: string;
};

export type ToWorker =
  | { readonly kind: "stage"; readonly state: ServingState }
  /** States of lower versions are not flipped to any more; answered by `dropped` when the worker reads nothing of them any more. */
  | { readonly kind: "drop"; readonly below: number }
  | { readonly kind: "listen" }
  | { readonly kind: "metrics"; readonly id: number }
  | { readonly kind: "drain"; readonly graceMs: number };

export type FromWorker =
  | { readonly kind: "staged"; readonly version: number }
  | { readonly kind: "dropped"; readonly below: number }
  | { readonly kind: "listening" }
  | { readonly kind: "refused"; readonly code: FaultCode; readonly message: string }
  | { readonly kind: "metrics"; readonly id: number; readonly metrics: MetricsData };
