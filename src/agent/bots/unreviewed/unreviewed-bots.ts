// Counts the unreviewed bots of this agent over its workers and tells central in batches. A batch is sent
// again under its number until central has acknowledged it, so that it is added once whatever is lost on the
// way. What is counted meanwhile waits for the next batch.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import { createMetrics, type Registry } from "../../../base/metrics.ts";
import type { CountedBatch } from "../../../wire/channel.ts";
import { fakeDescription } from "../../../wire/other-bots.ts";
import { UnreviewedCounts, type UnreviewedCount } from "./unreviewed-counts.ts";
import type { UnreviewedMessage } from "./unreviewed-teller.ts";

export type UnreviewedBatch = {
  readonly id: CountedBatch;
  readonly counts: readonly UnreviewedCount[];
};

/** A fake has the name that it claims, and is described as what it is. */
function described(count: UnreviewedCount): UnreviewedCount {
  return count.isFake ? { ...count, description: fakeDescription } : count;
}

export const unreviewedMetrics = {
  accel_agent_unreviewed_bots_total: {
    kind: "counter",
    help: "Requests of bots from addresses that are in no set.",
    labels: ["domain"],
  },
} as const;

export class UnreviewedBots implements Disposable {
  readonly #bootId: string;
  readonly #metrics;
  readonly #counts = new UnreviewedCounts();
  readonly #ports = new Set<MessagePort>();
  #seq = 0;
  #sent: UnreviewedBatch | undefined;

  /** `bootId` is random for each start of the agent; the numbers of batches begin again with it. */
  constructor(bootId: string, registry: Registry) {
    this.#bootId = bootId;
    this.#metrics = createMetrics(unreviewedMetrics, registry);
  }

  /**
   * Opens a port for one worker's UnreviewedTeller, to be transferred. What a worker told is counted even if
   * the worker is gone by then.
   */
  openWorker(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#ports.add(port1);
    port1.on("message", (message: UnreviewedMessage) => this.#add(message));
    port1.once("close", () => this.#ports.delete(port1));
    port1.unref();
    return port2;
  }

  /**
   * Returns the batch to send, the same one until it is acknowledged; undefined when there is nothing to
   * tell.
   */
  batch(): UnreviewedBatch | undefined {
    if (this.#sent === undefined && !this.#counts.isEmpty) {
      const id = { boot_id: this.#bootId, seq: ++this.#seq };
      this.#sent = { id, counts: this.#counts.take().map(described) };
    }
    return this.#sent;
  }

  /** Notes that central has stored the batch; any other batch is ignored. */
  acknowledged({ boot_id, seq }: CountedBatch): void {
    if (boot_id === this.#bootId && seq === this.#sent?.id.seq) this.#sent = undefined;
  }

  #add(message: UnreviewedMessage): void {
    for (const { domain, requests, ...bot } of message) {
      this.#counts.add(domain, bot, requests);
      this.#metrics.accel_agent_unreviewed_bots_total.inc({ domain }, requests);
    }
  }

  [Symbol.dispose](): void {
    for (const port of this.#ports) port.close();
  }
}
