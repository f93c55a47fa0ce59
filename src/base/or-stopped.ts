// Waiting for work of others no longer than we live ourselves.

/** The outcome of `work`, or undefined as soon as stopped; the work itself goes on, its failure then belongs to nobody. */
export async function orStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const stopped = (): void => resolve(undefined);
  stop.addEventListener("abort", stopped, { once: true });
  if (stop.aborted) stopped();
  try {
    return await Promise.race([work, promise]);
  } finally {
    stop.removeEventListener("abort", stopped);
  }
}
