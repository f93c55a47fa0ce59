// Sends the body of one answer no faster than a rule of `limits.bytes` says. It holds one piece at a time: whoever makes the body waits for it as for a slow visitor.

import type { StopSignal } from "../../../base/stop.ts";
import { pauseMs, pieceOf, startMs, type BytePace } from "../../../core/limits/byte-pace.ts";
import type { WorkerClock } from "../clock.ts";
import type { VisitorResponse } from "./carrier.ts";

/** What it needs of an exchange. */
export type PacedExchange = {
  readonly response: Pick<VisitorResponse, "write">;
  readonly stop: StopSignal;
  drained(stallMs: number): Promise<void>;
};

export type PacerOptions = {
  readonly clock: Pick<WorkerClock, "steadyMs">;
  /** A visitor who takes nothing for so long is cut off. */
  readonly stallMs: number;
};

export class Pacer {
  readonly #pace: BytePace;
  readonly #options: PacerOptions;
  #sent = 0;
  /** From when the pace counts; undefined while the bytes before it go out. */
  #fromMs: number | undefined;

  constructor(pace: BytePace, options: PacerOptions) {
    this.#pace = pace;
    this.#options = options;
  }

  /** Resolves when more may be given; the bytes have to stay as they are until then. Throws when the visitor left. */
  async write(exchange: PacedExchange, bytes: Uint8Array): Promise<void> {
    const { response, stop } = exchange;
    for (let at = 0; at < bytes.length;) {
      await this.#wait(stop);
      stop.throwIfAborted();
      const piece = bytes.subarray(at, at + pieceOf(this.#pace, this.#sent));
      at += piece.length;
      this.#sent += piece.length;
      if (!response.write(piece)) await exchange.drained(this.#options.stallMs);
    }
  }

  async #wait(stop: StopSignal): Promise<void> {
    if (this.#sent < this.#pace.afterBytes) return;
    const nowMs = this.#options.clock.steadyMs();
    this.#fromMs = startMs(this.#pace, this.#sent, this.#fromMs ?? nowMs, nowMs);
    const ms = pauseMs(this.#pace, this.#sent, nowMs - this.#fromMs);
    if (ms > 0) await pause(ms, stop);
  }
}

/** Resolves after the time, or when `stop` aborts. */
async function pause(ms: number, stop: StopSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  stop.addEventListener("abort", resolve);
  if (stop.aborted) resolve();
  await promise;
  clearTimeout(timer);
  stop.removeEventListener("abort", resolve);
}
