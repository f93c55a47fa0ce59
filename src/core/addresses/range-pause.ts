// Long loops over a set call `pause` now and then, so that a thread with a million ranges to go through does
// not hold a core for as long as that takes.

export type Pause = () => void;

export const noPause: Pause = () => {};

/** The steps between two pauses, each of 10 to 100 ns; a power of two. */
const steps = 4_096;

/** Returns whether a loop at this step has to pause. */
export const isPauseDue = (step: number): boolean => step % steps === 0;

/** The words copied between two pauses: 256 KiB, some 0.1 ms where the pages are new. */
const copiedWords = 65_536;

export function copyColumn(
  from: Uint32Array | Uint8Array,
  to: Uint32Array | Uint8Array,
  at: number,
  pause: Pause,
): void {
  for (let done = 0; done < from.length; done += copiedWords) {
    to.set(from.subarray(done, done + copiedWords), at + done);
    pause();
  }
}
