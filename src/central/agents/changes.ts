// Hints within one process that something of a customer changed, for whoever shows it.
//
// A hint may be too much, and one that is lost does no harm for long: whoever shows something asks again by itself. Several processes on one store would pass
// hints on as they pass on wake-ups (wake.ts); all of a hint is plain data.

import type { ChangeTopic } from "../../wire/customer/events.ts";

export type Change =
  | {
      readonly kind: "customer";
      readonly customerId: number;
      readonly topics: readonly ChangeTopic[];
      /** Main domains that it concerns; empty: none in particular. */
      readonly domains: readonly string[];
    }
  | {
      readonly kind: "site";
      readonly siteId: number;
      readonly topics: readonly ChangeTopic[];
    }
  /** Agents proved entries of the site's journal; these say what changed. */
  | { readonly kind: "proved"; readonly siteId: number; readonly seqs: readonly number[] };

export type ChangeBus = {
  /** Called after the commit. Never throws. */
  publish(change: Change): void;
  /** The listener must not throw. */
  subscribe(listener: (change: Change) => void): Disposable;
};

export function createChangeBus(): ChangeBus {
  const listeners = new Set<(change: Change) => void>();
  return {
    publish(change) {
      for (const listener of listeners) listener(change);
    },
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
  };
}
