// Writes whose visitors have left. The origin does what it was asked all the same, and its answer tells when that is done: what was stored before must not be served
// any longer then. So the answer is waited for, for as long as the backend's limits allow, by so many writes of a worker at a time: visitors who ask and leave hold no more of an origin.

import { Stop, type StopSignal } from "../../../base/stop.ts";

const lateMax = 64;

/** One write: what ends it, and whoever asks for it says when it is over. */
export type BegunWrite = Disposable & { readonly stop: Stop };

export class LateWrites {
  readonly #late = new Set<Stop>();
  #hasEnded = false;

  /** Returns what ends a write in place of its visitor's `stop`: only where no more may be late. */
  begin(stop: StopSignal): BegunWrite {
    const own = new Stop();
    const onLeft = (): void => {
      if (this.#hasEnded || this.#late.size >= lateMax) own.abort(left);
      else this.#late.add(own);
    };
    if (stop.aborted) onLeft();
    else stop.addEventListener("abort", onLeft);
    return {
      stop: own,
      [Symbol.dispose]: () => {
        stop.removeEventListener("abort", onLeft);
        this.#late.delete(own);
      },
    };
  }

  /** Waits for none any more, for the worker ends. Never throws. */
  end(): void {
    this.#hasEnded = true;
    for (const stop of this.#late) stop.abort(left);
  }
}

const left = new Error("the visitor left");
