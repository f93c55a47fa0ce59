// What is asked of one origin, and what its connections give: the same over TLS and without.

import type { StopSignal } from "../../../base/stop.ts";
import type { Field } from "../../../core/http/http-fields.ts";
import type { OriginBody } from "./origin-body.ts";
import type { OriginGuard } from "./origin-connector.ts";

export type WireRequest = {
  readonly method: string;
  /** Path and query as sent. */
  readonly path: string;
  /** Host first. */
  readonly fields: readonly Field[];
  /** Bytes leave with the head; what makes the body is called once the head is on its way. */
  readonly body: Uint8Array | (() => AsyncGenerator<Uint8Array>) | undefined;
  readonly stop: StopSignal;
  /** Told of each interim answer but 100. */
  readonly onInterim: ((status: number, fields: readonly Field[]) => void) | undefined;
  /** The time for the head, from the last byte of the request on; and the time in which the body must go on. */
  readonly headMs: number;
  readonly silenceMs: number;
};

export type WireAnswer = {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: OriginBody;
};

export type PoolOptions = {
  readonly origin: URL;
  readonly connectMs: number;
  readonly connectionsMax: number;
  readonly guard: OriginGuard;
  readonly steadyMs: () => number;
};

/** What is told of a request; none of these may throw. */
export type WireEvents = {
  /** The head of the answer has come: in this step, or over TLS in a microtask before. The body is given out when this has returned. */
  readonly onAnswer: (answer: WireAnswer) => void;
  /** There is no answer. */
  readonly onFailure: (error: unknown) => void;
  /** Told once, and before a failure: the request has nothing to do with the origin any more. */
  readonly onOver: () => void;
};

export interface OriginConnections {
  /** Tells of an answer or of a failure, once; a failure may be told before it returns. */
  ask(request: WireRequest, events: WireEvents): void;
  /** Ends all that is under way. */
  destroy(): Promise<void>;
}
