// Whether systemd starts nothing behind the stop of this process. SIGTERM does not say that. The unit's ExecStop= looks at the job that systemd has for the unit, and where
// that is a stop and no restart, it sends SIGWINCH to the unit's processes first: a signal that a process which does not know of this ignores (signal(7)).

/** What `process` has of signals. */
export type SignalSource = {
  on(signal: "SIGWINCH", hear: () => void): unknown;
  off(signal: "SIGWINCH", hear: () => void): unknown;
};

export class LastStop implements Disposable {
  readonly #source: SignalSource;
  readonly #hear = (): void => void (this.#isTold = true);
  #isTold = false;

  constructor(source: SignalSource) {
    this.#source = source;
    source.on("SIGWINCH", this.#hear);
  }

  /** Whether it was told so. It is asked behind SIGTERM. */
  get isTold(): boolean {
    return this.#isTold;
  }

  [Symbol.dispose](): void {
    this.#source.off("SIGWINCH", this.#hear);
  }
}
