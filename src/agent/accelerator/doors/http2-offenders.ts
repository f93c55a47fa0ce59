// Visitors whose connection of HTTP/2 was cut. For a minute they agree on HTTP/1.1, in which nothing costs so much and says so little: who floods opens the next
// connection at once, and would flood from its first byte until it is cut again. Who offers HTTP/2 alone gets no handshake.
//
// Others may share the address; they are served by HTTP/1.1. Each worker remembers for itself. A trusted proxy is never remembered.

import type { ClientAddress } from "../../../core/http/client-address.ts";
import type { WorkerClock } from "../clock.ts";
import { VisitorNames } from "./visitor-names.ts";

/** Beyond this many the oldest is forgotten. */
const visitorsMax = 10_000;

export class Http2Offenders {
  readonly #clock: Pick<WorkerClock, "steadyMs">;
  readonly #rememberMs: number;
  readonly #names = new VisitorNames();
  /** Until when, in the order of the times. */
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Pick<WorkerClock, "steadyMs">, rememberMs: number) {
    this.#clock = clock;
    this.#rememberMs = rememberMs;
  }

  add(peer: ClientAddress | undefined): void {
    if (peer === undefined || peer.isProxied) return;
    const visitor = this.#names.of(peer.text);
    this.#untilMs.delete(visitor);
    this.#untilMs.set(visitor, this.#clock.steadyMs() + this.#rememberMs);
    const oldest = this.#untilMs.keys().next().value;
    if (this.#untilMs.size > visitorsMax && oldest !== undefined) this.#untilMs.delete(oldest);
  }

  has(peer: ClientAddress | undefined): boolean {
    if (peer === undefined || this.#untilMs.size === 0) return false;
    const visitor = this.#names.of(peer.text);
    const untilMs = this.#untilMs.get(visitor);
    if (untilMs === undefined) return false;
    if (this.#clock.steadyMs() < untilMs) return true;
    this.#untilMs.delete(visitor);
    return false;
  }
}
