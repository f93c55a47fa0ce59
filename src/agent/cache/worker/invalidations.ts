// Invalidations of one worker that the index has not answered. None is given up: whoever waits is told after a while that it is not done, and it stays owed
// to the index thread, also to the next one. Only so many are on their way at a time, the others wait in line; one that is still there when its time is
// over is more than can be remembered, and everything cached has to go for it.

import type { EntryKey } from "../entry.ts";
import type { WorkerToIndexer } from "../messages.ts";

/** The most that are on their way: at some 300 bytes each about 1 MiB, and more than the requests of a worker that wait for one. */
const owedMax = 4_096;

type Order = Extract<WorkerToIndexer, { readonly kind: "invalidate" }>;
/** `late`: there was no answer in time; it is owed all the same. */
type Told =
  | { readonly kind: "durable" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "late" };
type Waiting = {
  readonly order: Order;
  readonly resolve: (told: Told) => void;
};

export class Invalidations implements Disposable {
  readonly #send: (order: Order) => void;
  readonly #answerMs: number;
  /** Both in the order in which they were asked for. */
  readonly #owed = new Map<number, Waiting>();
  readonly #line = new Map<number, Waiting>();
  #asked = 0;
  #isOverrun = false;

  /** `send` does nothing where there is no index thread. */
  constructor(send: (order: Order) => void, answerMs: number) {
    this.#send = send;
    this.#answerMs = answerMs;
  }

  /** Asks. Never rejects. */
  async ask(key: EntryKey): Promise<Told> {
    const no = ++this.#asked;
    const { promise, resolve } = Promise.withResolvers<Told>();
    this.#line.set(no, { order: { kind: "invalidate", no, key }, resolve });
    this.#sendNext();
    const timer = setTimeout(() => {
      if (this.#line.delete(no)) this.#isOverrun = true;
      resolve({ kind: "late" });
    }, this.#answerMs);
    const told = await promise;
    clearTimeout(timer);
    return told;
  }

  answered(no: number, fault: string | undefined): void {
    const told: Told =
      fault === undefined ? { kind: "durable" } : { kind: "failed", reason: fault };
    this.#owed.get(no)?.resolve(told);
    this.#owed.delete(no);
    this.#sendNext();
  }

  /** Sends all invalidations again, to an index thread that knows none of them. */
  sendAgain(): void {
    for (const { order } of this.#owed.values()) this.#send(order);
  }

  /** Whether one was given up since this was asked last. */
  takeOverrun(): boolean {
    const isOverrun = this.#isOverrun;
    this.#isOverrun = false;
    return isOverrun;
  }

  [Symbol.dispose](): void {
    for (const { resolve } of [...this.#owed.values(), ...this.#line.values()])
      resolve({ kind: "late" });
  }

  #sendNext(): void {
    for (const [no, waiting] of this.#line) {
      if (this.#owed.size >= owedMax) return;
      this.#line.delete(no);
      this.#owed.set(no, waiting);
      this.#send(waiting.order);
    }
  }
}
