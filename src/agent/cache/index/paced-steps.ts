// How many rows a step of background work takes: as many as fit its time, measured by the step before.

export type Pace = {
  /** What a fill may have to wait for. */
  readonly stepMs: number;
  /** On a busy host too: smaller steps would take more of it. */
  readonly rowsMin: number;
  readonly rowsMax: number;
};

/** Few at first: what is evicted beyond what is needed is asked for again. */
export const evictionPace: Pace = { stepMs: 15, rowsMin: 50, rowsMax: 4_000 };

export class PacedSteps {
  readonly #elapsedMs: () => number;
  readonly #pace: Pace;
  #rows: number;

  constructor(elapsedMs: () => number, pace: Pace) {
    this.#elapsedMs = elapsedMs;
    this.#pace = pace;
    this.#rows = pace.rowsMin;
  }

  run(step: (rows: number) => void): void {
    const { stepMs, rowsMin, rowsMax } = this.#pace;
    const startedMs = this.#elapsedMs();
    step(this.#rows);
    const tookMs = Math.max(0.1, this.#elapsedMs() - startedMs);
    // Half the way at most: one slow disk access is no reason to crawl.
    const factor = Math.min(2, Math.max(0.5, stepMs / tookMs));
    this.#rows = Math.min(rowsMax, Math.max(rowsMin, Math.round(this.#rows * factor)));
  }
}
