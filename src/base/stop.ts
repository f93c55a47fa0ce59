// A signal to stop, for what begins with every request: an AbortSignal is an event target of Node's, and making one and listening to it costs several times
// as much as all that this does.

/** Either kind of signal: what both have is asked of them alike. */
export type StopSignal = Stop | AbortSignal;

export class Stop {
  #aborted = false;
  #reason: unknown;
  readonly #listeners: (() => void)[] = [];
  /** Made for those who ask for an AbortSignal. */
  #controller: AbortController | undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** An AbortSignal that aborts with it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Has no effect once it has aborted. Listeners are called in the order in which they were added; one that was removed meanwhile is not. */
  abort(reason: Error): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    for (let next = this.#listeners.shift(); next !== undefined; next = this.#listeners.shift())
      next();
    this.#controller?.abort(reason);
  }

  /** Throws the reason if it has aborted. */
  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }

  /** Calls back once, when it aborts; never if it has. What is added twice is called once. The listener must not throw. */
  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.#aborted && !this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }
}

/** Returns the signal as Node and libraries take it. */
export function signalOf(stop: StopSignal): AbortSignal {
  return stop instanceof Stop ? stop.signal : stop;
}
