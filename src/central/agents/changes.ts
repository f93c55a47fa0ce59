// Hints that something of a customer changed, for whoever shows it, at whichever central that is.
//
// A hint may be too much, and one that is lost does no harm for long: whoever shows something asks again by itself. All of a hint is plain data.

import type { BusMessage } from "../../wire/bus-message.ts";
import type { ChangeTopic } from "../../wire/customer/events.ts";
import type { CentralBus } from "../cluster/bus.ts";

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
  | { readonly kind: "proved"; readonly siteId: number; readonly seqs: readonly number[] }
  /** Hints of other centrals were missed: anything may have changed. */
  | { readonly kind: "anything" };

export type ChangeBus = {
  /** Called after the commit. Never throws. */
  publish(change: Change): void;
  /** The listener must not throw. */
  subscribe(listener: (change: Change) => void): Disposable;
};

/** Without a `bus` there is one central. What agents proved is told to others by whoever waits for receipts. */
export function createChangeBus(bus?: Pick<CentralBus, "tell" | "hear" | "onMissed">): ChangeBus {
  const listeners = new Set<(change: Change) => void>();
  const here = (change: Change): void => {
    for (const listener of listeners) listener(change);
  };
  bus?.hear((message) => {
    const change = changeOf(message);
    if (change !== undefined) here(change);
  });
  bus?.onMissed(() => here({ kind: "anything" }));
  return {
    publish(change) {
      here(change);
      if (change.kind === "customer")
        bus?.tell({
          kind: "customer",
          customer_id: change.customerId,
          topics: [...change.topics],
          domains: [...change.domains],
        });
      else if (change.kind === "site")
        bus?.tell({ kind: "site", site_id: change.siteId, topics: [...change.topics] });
    },
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
  };
}

function changeOf(message: BusMessage): Change | undefined {
  switch (message.kind) {
    case "customer": {
      const { customer_id: customerId, topics, domains } = message;
      return { kind: "customer", customerId, topics, domains };
    }
    case "site":
      return { kind: "site", siteId: message.site_id, topics: message.topics };
    case "proved":
      if (message.site_id === undefined) return undefined;
      return { kind: "proved", siteId: message.site_id, seqs: message.seqs };
    default:
      return undefined; // Others listen to the rest.
  }
}
