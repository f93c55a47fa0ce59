// How many rows a step of background work takes: as many as fit its time, measured by the step before.

/**
 * What a fill or a clear may have to wait for. Rows that go together share the pages that their commit writes: steps of 8 ms write three times as much and
 * take twice as long in all.
 */
const stepMs = 50;
const rowsMin = 50;
const rowsMax = 4_000;

export class PacedSteps {
  readonly #elapsedMs: () => number;
  #rows = 250;

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  run(step: (rows: number) => void): void {
    const startedMs = this.#elapsedMs();
    step(this.#rows);
    const tookMs = Math.max(0.1, this.#elapsedMs() - startedMs);
    // Half the way at most: one slow disk access is no reason to crawl.
    const factor = Math.min(2, Math.max(0.5, stepMs / tookMs));
    this.#rows = Math.min(rowsMax, Math.max(rowsMin, Math.round(this.#rows * factor)));
  }
}
