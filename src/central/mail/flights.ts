// What a lane of the sender has on its way at one time: so many messages in all, so many of one customer. To one hook there is one at a time, which the
// outbox sees to.

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

  /** Aborts when the next one has landed, or somebody wakes: for who waits for room. */
  get change(): AbortSignal {
    return this.#change.signal;
  }

  /** `fly` never rejects. */
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
