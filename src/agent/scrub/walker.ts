// A scrubbing thread, as main sees it.

import { threadPeer } from "../../base/thread-client.ts";
import type { WalkPosition, WalkInit, WalkMessage } from "./messages.ts";

export type WalkerOptions = Omit<WalkInit, "control" | "from"> & { readonly entry: URL };

/** A list of the names of one directory of blobs, and of a page of bodies. */
const heapMiB = 128;

/** Walks on from a position; resolves when the walk has ended, whether it was done or stopped. Rejects where the thread failed. */
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
    Atomics.notify(flag, 0); // Out of its rest.
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
