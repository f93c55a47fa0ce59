// The end of what a stop waits for. A server that is silent, or answered what the network lost, would keep this process for minutes: each question has an end of its own, but some are
// asked one after the other, and those ends are made for a central that serves.

/**
 * What still waits for a PostgreSQL then waits in vain: the connections end, and with them all that waits. Whoever waits for an answer has one 16 s behind a stop (front.ts), and what is done
 * at the end takes a moment; the unit has `TimeoutStopSec=30`.
 */
const endMs = 20_000;
/** A server that answers closes a connection that says goodbye at once. One that does not would keep this process. */
const goodbyeMs = 2_000;

/** Returns a signal that aborts some time behind the stop, which is told, or a moment after it is disposed of. `onLate` must not throw. */
export function endBehind(
  stop: AbortSignal,
  { onLate, ms = endMs }: { readonly onLate: (ms: number) => void; readonly ms?: number },
): { readonly signal: AbortSignal } & Disposable {
  const end = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => {
      onLate(ms);
      end.abort();
    }, ms);
  };
  if (stop.aborted) begin();
  else stop.addEventListener("abort", begin, { once: true });
  return {
    signal: end.signal,
    [Symbol.dispose]: () => {
      stop.removeEventListener("abort", begin);
      clearTimeout(timer);
      setTimeout(() => end.abort(), goodbyeMs).unref();
    },
  };
}
