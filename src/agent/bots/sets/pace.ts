// Work in short pieces: a thread that computes for long keeps others from its core for the slice that the scheduler gives it, some 3 ms on Linux whatever
// its priority is, and a visitor's worker that wakes just then waits for so long. A thread that sleeps often is in nobody's way for longer than a piece.

import { rest } from "../../../base/rest.ts";

const pieceMs = 0.4;
/** With the timer's slack as long as a piece, so about half of a core's time: with rests of 0.1 ms workers were late more than twice as often. */
const restMs = 0.3;

export type PaceClock = { readonly nowMs: () => number; readonly rest: (ms: number) => void };

/** To be called often: sleeps when a piece has been worked. Only for threads that nobody waits for: their event loop stands still meanwhile. */
export function createPace({ nowMs, rest }: PaceClock = threadClock()): () => void {
  let beganMs = nowMs();
  return () => {
    // After a time without work this is the first piece's end; it costs one rest.
    if (nowMs() - beganMs < pieceMs) return;
    rest(restMs);
    beganMs = nowMs();
  };
}

function threadClock(): PaceClock {
  return { nowMs: () => performance.now(), rest };
}
