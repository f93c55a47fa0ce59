// Long loops over a set call out now and then, so that a thread that has a million ranges to go through need not hold a core for as long as that takes.

export type Pause = () => void;

export const noPause: Pause = () => {};

/** Steps of 10 to 100 ns between two calls; a power of two. */
const steps = 4_096;

/** Whether a loop that has come to this step is to call. */
export const isPauseDue = (step: number): boolean => step % steps === 0;

/** 256 KiB, some 0.1 ms where the pages are new. */
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
