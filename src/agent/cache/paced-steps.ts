// How many rows a step of background work takes: as many as fit its time, measured by the step before.

/** What a fill or a clear may have to wait for. Rows that go together share the pages that their commit writes: longer steps take a seventh less in all. */
const stepMs = 15;
/** On a busy host too: smaller steps would take more of it. */
const rowsMin = 500;
const rowsMax = 4_000;

export class PacedSteps {
  readonly #elapsedMs: () => number;
  #rows = rowsMin;

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
