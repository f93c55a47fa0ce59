// How large the heap of a thread may become. Node would let the young part of each grow to 96 MiB, whatever lives in it, and hardly ever give it back: with
// a thread for each worker and each duty that is most of what a host would see the agent take.

import type { ResourceLimits } from "node:worker_threads";

/** Two halves of 16 MiB, and large objects: what `--max-semi-space-size=16` in the units says for the main thread. */
const youngMiB = 48;

export function heapLimits(oldMiB: number): ResourceLimits {
  return { maxOldGenerationSizeMb: oldMiB, maxYoungGenerationSizeMb: youngMiB };
}
