// One transfer for all callers that want the same blob at the same time; it goes on while anyone waits for
// it.

import type { Sha256 } from "../../core/ids.ts";

type Transfer = {
  readonly size: number | undefined;
  readonly ended: Promise<void>;
  readonly stop: AbortController;
  waiting: number;
};

export class SharedTransfers {
  readonly #running = new Map<Sha256, Transfer>();

  isRunning(sha256: Sha256): boolean {
    return this.#running.has(sha256);
  }

  /**
   * Joins the transfer of this blob that is under way, or begins one. A caller that expects another size
   * waits for its end and begins anew.
   */
  async join(
    want: { readonly sha256: Sha256; readonly size?: number | undefined },
    begin: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const running = this.#running.get(want.sha256);
      if (running === undefined) return this.#wait(this.#begin(want, begin), signal);
      if (running.size === want.size && !running.stop.signal.aborted)
        return this.#wait(running, signal);
      await unlessAborted(
        running.ended.catch(() => undefined),
        signal,
      );
    }
  }

  #begin(
    { sha256, size }: { readonly sha256: Sha256; readonly size?: number | undefined },
    begin: (signal: AbortSignal) => Promise<void>,
  ): Transfer {
    const stop = new AbortController();
    const ended = begin(stop.signal).finally(() => this.#running.delete(sha256));
    const transfer: Transfer = { size, ended, stop, waiting: 0 };
    this.#running.set(sha256, transfer);
    return transfer;
  }

  async #wait(transfer: Transfer, signal: AbortSignal): Promise<void> {
    transfer.waiting++;
    try {
      await unlessAborted(transfer.ended, signal);
    } finally {
      if (--transfer.waiting === 0 && signal.aborted) {
        // The last caller that leaves stops the transfer and waits for its end.
        transfer.stop.abort(signal.reason);
        await transfer.ended.catch(() => undefined);
      }
    }
  }
}

/** Waits for the promise; throws the signal's reason if that aborts first. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
