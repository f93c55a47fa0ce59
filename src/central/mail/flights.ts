// What a lane of the sender has under way at one time: a limited number of messages in all, and of one
// customer. The outbox sees to it that each hook has only one at a time.

import type { Busy, TakenMessage } from "../../core/outgoing.ts";

export type FlightLimits = { readonly all: number; readonly perCustomer: number };

export class Sendings {
  readonly #limits: FlightLimits;
  readonly #flights = new Map<number, { readonly taken: TakenMessage; landed: Promise<void> }>();
  #change = new AbortController();

  constructor(limits: FlightLimits) {
    this.#limits = limits;
  }

  get isFull(): boolean {
    return this.#flights.size >= this.#limits.all;
  }

  get busy(): Busy {
    const messages = [...this.#flights.values()].map(({ taken }) => taken);
    const customers = [...Map.groupBy(messages, ({ customerId }) => customerId)]
      .filter(([, own]) => own.length >= this.#limits.perCustomer)
      .map(([customerId]) => customerId);
    return { customers, messages };
  }

  /** Aborts when the next message has landed, or somebody wakes; for those who wait for room. */
  get change(): AbortSignal {
    return this.#change.signal;
  }

  /** Starts a sending. `fly` must not reject. */
  start(taken: TakenMessage, fly: () => Promise<void>): void {
    const landed = fly().finally(() => {
      this.#flights.delete(taken.id);
      this.wake();
    });
    this.#flights.set(taken.id, { taken, landed });
  }

  wake(): void {
    this.#change.abort();
    this.#change = new AbortController();
  }

  async ended(): Promise<void> {
    await Promise.all([...this.#flights.values()].map(async ({ landed }) => landed));
  }
}
