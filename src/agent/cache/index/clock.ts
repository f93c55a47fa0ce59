// Time as the index thread has it.

export type IndexClock = {
  /** Wall clock, for the coarse time of last use. */
  readonly nowS: () => number;
  /** Monotonic. */
  readonly elapsedMs: () => number;
  /** The whole thread stands still. */
  readonly rest: (ms: number) => void;
};
