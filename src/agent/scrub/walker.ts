// Main's side of a scrubbing thread.

import { threadPeer } from "../../base/thread-client.ts";
import type { WalkPosition, WalkInit, WalkMessage } from "./messages.ts";

export type WalkerOptions = Omit<WalkInit, "control" | "from"> & { readonly entry: URL };

/** Room for the names of one directory of blobs and a page of bodies. */
const heapMiB = 128;

/**
 * Walks on from a position. Resolves when the walk has ended, done or stopped; rejects if the thread failed.
 */
export async function walk(
  { entry, ...init }: WalkerOptions,
  from: WalkPosition,
  onMessage: (message: WalkMessage) => void,
  stop: AbortSignal,
): Promise<void> {
  const control = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const flag = new Int32Array(control);
  const end = (): void => {
    Atomics.store(flag, 0, 1);
    Atomics.notify(flag, 0); // Ends its rest.
  };
  if (stop.aborted) return;
  stop.addEventListener("abort", end, { once: true });
  try {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    threadPeer<never, WalkMessage>(entry, {
      name: "scrubber",
      workerData: { ...init, from, control } satisfies WalkInit,
      heapMiB,
    })({
      heard: onMessage,
      gone: ({ cause }) => (cause === undefined ? resolve() : reject(cause)),
    });
    await promise;
  } finally {
    stop.removeEventListener("abort", end);
  }
}
