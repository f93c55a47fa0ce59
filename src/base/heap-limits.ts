// How large the heap of a thread may become. Node would let the young part of each heap grow to 96 MiB,
// whatever lives in it, and hardly ever give it back. With a thread for each worker and each duty, that would
// be most of the memory that the agent takes.

import type { ResourceLimits } from "node:worker_threads";

/**
 * Two halves of 16 MiB, and large objects. The units set the same for the main thread with
 * `--max-semi-space-size=16`.
 */
const youngMiB = 48;

/** The old part of the heap of each thread of the agent. Hot bodies, columns of tables and records lie outside of heaps. */
export const agentHeapMiB = {
  /** Compiled configuration, and what is in flight. */
  worker: 1_024,
  /** A million ids and their bits take a tenth of it. */
  indexer: 1_024,
  /** Names, and what is read. */
  tabler: 1_024,
  /** Lanes and their gaps. */
  spooler: 256,
} as const;

export function heapLimits(oldMiB: number): ResourceLimits {
  return { maxOldGenerationSizeMb: oldMiB, maxYoungGenerationSizeMb: youngMiB };
}
