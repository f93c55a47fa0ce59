// A worker's side of purges: orders that main carries out, each answered within a deadline.

import type { MessagePort } from "node:worker_threads";
import type { PurgeShare } from "../../../core/purge/purge-items.ts";
import type { PurgeAnswered, PurgeOrder, PurgeOutcome } from "./purge-messages.ts";

/** A clear takes milliseconds; the index thread may be restarting. */
const answerMs = 30_000;
/** The most orders of one worker that wait for main. */
const waitingMax = 2_000;

export class PurgeTeller implements Disposable {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, (outcome: PurgeOutcome) => void>();
  #no = 0;

  /** Takes the port, and closes it when it is disposed. */
  constructor(port: MessagePort) {
    this.#port = port;
    port.on("message", ({ no, outcome }: PurgeAnswered) => this.#waiting.get(no)?.(outcome));
    port.once("close", () => this.#fail("the agent is stopping"));
    port.unref();
  }

  /** Undefined without a port. */
  static open(port: MessagePort | undefined): PurgeTeller | undefined {
    return port === undefined ? undefined : new PurgeTeller(port);
  }

  /** Never rejects. */
  async clear(shares: readonly PurgeShare[]): Promise<PurgeOutcome> {
    if (this.#waiting.size >= waitingMax)
      return { kind: "failed", message: "too many purge requests are waiting" };
    const no = ++this.#no;
    const { promise, resolve } = Promise.withResolvers<PurgeOutcome>();
    this.#waiting.set(no, resolve);
    const late = setTimeout(
      () => resolve({ kind: "failed", message: `no clear within ${answerMs / 1_000} s` }),
      answerMs,
    );
    this.#port.postMessage({ no, shares } satisfies PurgeOrder);
    try {
      return await promise;
    } finally {
      clearTimeout(late);
      this.#waiting.delete(no);
    }
  }

  [Symbol.dispose](): void {
    this.#port.close();
    this.#fail("the agent is stopping");
  }

  #fail(message: string): void {
    for (const resolve of this.#waiting.values()) resolve({ kind: "failed", message });
  }
}
