// Lets a request in only with room for its record (`spool.when_full: block`). One that finds none waits, in order of arrival and for a few seconds at
// most; then, or when too many wait, it is answered 503. Without this policy requests wait for nothing but a lane that is just waking: a sync of the disk.

import type { LaneWriter } from "../../requests/worker/lane-writer.ts";
import { sendText } from "../doors/answer.ts";
import type { WorkerClock } from "../clock.ts";
import type { Exchange } from "../doors/exchange.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

const heldMs = 3_000;
/** The most requests that one worker holds; each holds a connection and its request's head, some 40 KiB. */
const heldMaxDefault = 1_024;
const lookMs = 10;
const retryAfterS = 5;

export type RecordGateDeps = {
  readonly records: Pick<LaneWriter, "begins">;
  /** Undefined where requests do not wait for it. */
  readonly recordRoom: Pick<LaneWriter, "claim"> | undefined;
  readonly metrics: WorkerMetrics;
  readonly clock: WorkerClock;
  /** Requests that may wait at a time. */
  readonly heldMax?: number | undefined;
};

/** `turned-away`: the visitor was told, or has left. */
type Admission = "admitted" | "turned-away";

type Held = {
  readonly exchange: Exchange;
  readonly untilMs: number;
  readonly decide: (admission: Admission) => void;
};

export class RecordGate implements Disposable {
  readonly #deps: RecordGateDeps;
  #held: Held[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: RecordGateDeps) {
    this.#deps = deps;
  }

  /** Wraps `answer`, which answers those that are admitted. */
  before(answer: (exchange: Exchange) => Promise<void>): (exchange: Exchange) => Promise<void> {
    const { records, recordRoom } = this.#deps;
    if (recordRoom === undefined)
      return (exchange) => records.begins()?.then(() => answer(exchange)) ?? answer(exchange);
    return async (exchange) => {
      if ((await this.#admit(exchange)) === "admitted") await answer(exchange);
    };
  }

  /**
   * Lets in a request that is answered in this step. `has-to-wait`: it comes in by `before`. Accept the record of
   * a `claimed` one as claimed.
   */
  admitsNow(): "admitted" | "claimed" | "has-to-wait" {
    const { records, recordRoom } = this.#deps;
    if (recordRoom === undefined)
      return records.begins() === undefined ? "admitted" : "has-to-wait";
    return this.#held.length === 0 && recordRoom.claim() ? "claimed" : "has-to-wait";
  }

  async #admit(exchange: Exchange): Promise<Admission> {
    if (this.#held.length === 0 && this.#claim(exchange)) return "admitted";
    const { metrics, clock, heldMax = heldMaxDefault } = this.#deps;
    let admission: Admission = "turned-away";
    if (this.#held.length < heldMax) {
      metrics.accel_agent_log_held_total.inc();
      const { promise, resolve } = Promise.withResolvers<Admission>();
      const untilMs = clock.steadyMs() + heldMs;
      this.#held.push({ exchange, untilMs, decide: resolve });
      this.#timer ??= setInterval(() => this.#look(), lookMs);
      admission = await promise;
    }
    if (admission === "turned-away" && !exchange.stop.aborted) this.#refuse(exchange);
    return admission;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const { decide } of this.#held.splice(0)) decide("turned-away");
  }

  #claim(exchange: Exchange): boolean {
    exchange.hasRecordRoom = this.#deps.recordRoom?.claim() ?? true;
    return exchange.hasRecordRoom;
  }

  /** Looks at those who wait. Those who left have had their record. */
  #look(): void {
    const now = this.#deps.clock.steadyMs();
    let isOpen = true;
    this.#held = this.#held.filter(({ exchange, untilMs, decide }) => {
      const isGone = exchange.stop.aborted;
      isOpen &&= isGone || this.#claim(exchange);
      const isOver = isGone || isOpen || now >= untilMs;
      if (isOver) decide(!isGone && isOpen ? "admitted" : "turned-away");
      return !isOver;
    });
    if (this.#held.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #refuse(exchange: Exchange): void {
    this.#deps.metrics.accel_agent_log_unserved_total.inc();
    sendText(exchange, 503, "There is no room for the record of this request.", [
      ["Retry-After", `${retryAfterS}`],
      ["X-Accel-Reason", "request-log-full"],
    ]);
  }
}
