// The wake-up of channels within one process.

/**
 * Tells that a site's journal grew. Between processes, something like LISTEN/NOTIFY would replace the local
 * bus below.
 */
export type WakeBus = {
  publish(deploymentSiteIds: Iterable<number>): void;
  /** The listener must not throw. */
  subscribe(listener: (deploymentSiteIds: readonly number[]) => void): Disposable;
};

/** Makes a bus that calls listeners in the same turn; the publisher calls after its commit. */
export function createLocalWakeBus(): WakeBus {
  const listeners = new Set<(deploymentSiteIds: readonly number[]) => void>();
  return {
    publish(deploymentSiteIds) {
      const ids = [...new Set(deploymentSiteIds)];
      if (ids.length > 0) for (const listener of listeners) listener(ids);
    },
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
  };
}
