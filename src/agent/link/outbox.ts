// Receipts on their way to central: each is sent over whichever path there is, and again on each new one,
// until it is acknowledged; then it is forgotten.
//
// On a channel each is sent once, in order, with at most `inFlightMax` unanswered. Of one {seq, phase} only
// one is under way at a time, so that an acknowledgement says which one is meant. A receipt that stays
// unanswered shows a dead channel: `oldestWaitMs` lets its owner end it.

import { Mutex } from "../../base/mutex.ts";
import type { Receipt } from "../../wire/receipt.ts";
import type { ReceiptAck } from "./central-client.ts";
import type { Ledger, StoredReceipt } from "./ledger.ts";

const inFlightMax = 100;
const batchMax = 200;

type InFlight = { readonly id: number; readonly sentAtMs: number };

export class ReceiptOutbox {
  readonly #ledger: Ledger;
  readonly #inFlight = new Map<string, InFlight>();
  readonly #posting = new Mutex();
  #send: ((receipt: Receipt) => void) | undefined;
  #lastSentId = 0;
  #heldAtMs = 0;
  /** Receipts that are acknowledged and not yet deleted; those that arrive together cost one commit. */
  #acknowledged: number[] = [];
  #change = Promise.withResolvers<void>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Sends over a channel that is up, until disposed. */
  attach(send: (receipt: Receipt) => void): Disposable {
    this.#begin(send);
    this.#pump();
    return {
      [Symbol.dispose]: () => {
        if (this.#send === send) this.#begin(undefined);
      },
    };
  }

  /** Notes that the ledger has another receipt. */
  recorded(): void {
    this.#pump();
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  /** Resolves at the next `recorded`. */
  async changed(): Promise<void> {
    await this.#change.promise;
  }

  acknowledged({ seq, phase }: ReceiptAck): void {
    const key = keyOf({ seq, phase });
    const sent = this.#inFlight.get(key);
    if (sent === undefined) return;
    this.#inFlight.delete(key);
    if (this.#acknowledged.push(sent.id) === 1) setImmediate(() => this.#forget());
    this.#pump();
  }

  /** Notes that central has what was sent, and waits for its store: nobody can expect an answer yet. */
  held(): void {
    this.#heldAtMs = performance.now();
  }

  /** Returns how long the oldest receipt on the channel could have been answered, and was not; 0 if there is none. */
  oldestWaitMs(): number {
    const [oldest] = this.#inFlight.values();
    if (oldest === undefined) return 0;
    return performance.now() - Math.max(oldest.sentAtMs, this.#heldAtMs);
  }

  /**
   * Sends all receipts by requests, in batches. Throws what `post` throws; what was not acknowledged stays.
   */
  async flush(post: (batch: readonly Receipt[]) => Promise<readonly ReceiptAck[]>): Promise<void> {
    await this.#posting.run(async () => {
      for (;;) {
        const batch = distinct(this.#ledger.receiptsAfter(0, batchMax));
        if (batch.size === 0) return;
        const acks = await post([...batch.values()].map(({ receipt }) => receipt));
        const known = acks.map((ack) => batch.get(keyOf(ack))).filter((one) => one !== undefined);
        this.#ledger.acknowledge(known.map(({ id }) => id));
        if (known.length === 0) return;
      }
    });
  }

  #forget(): void {
    const ids = this.#acknowledged;
    this.#acknowledged = [];
    try {
      this.#ledger.acknowledge(ids);
    } catch {
      // The disk is full, or the database was closed: they are sent again on the next channel, which does no
      // harm.
    }
  }

  #begin(send: ((receipt: Receipt) => void) | undefined): void {
    this.#send = send;
    this.#inFlight.clear();
    this.#lastSentId = 0;
  }

  #pump(): void {
    while (this.#send !== undefined && this.#inFlight.size < inFlightMax) {
      const [next] = this.#ledger.receiptsAfter(this.#lastSentId, 1);
      if (next === undefined || this.#inFlight.has(keyOf(next.receipt))) return;
      this.#inFlight.set(keyOf(next.receipt), { id: next.id, sentAtMs: performance.now() });
      this.#lastSentId = next.id;
      this.#send(next.receipt);
    }
  }
}

function keyOf({ seq, phase }: ReceiptAck): string {
  return `${seq} ${phase}`;
}

/** Returns the first receipt of each key; the others wait for its acknowledgement. */
function distinct(rows: readonly StoredReceipt[]): ReadonlyMap<string, StoredReceipt> {
  const batch = new Map<string, StoredReceipt>();
  for (const row of rows) if (!batch.has(keyOf(row.receipt))) batch.set(keyOf(row.receipt), row);
  return batch;
}
