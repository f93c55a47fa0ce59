// Pauses a whole thread, its event loop included: for threads that nobody waits for, so that others get their
// core.

const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

export function rest(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}
