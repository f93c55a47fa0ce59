// Main's side of the decision log: it takes what the workers tell, keeps the last 100,000 decisions, and
// counts those that were dropped.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import { createMetrics, type Registry } from "../../../base/metrics.ts";
import { DecisionRing, type KeptDecision } from "./decision-ring.ts";
import type { DecisionBatch, DecisionLine } from "./decision-teller.ts";

export const decisionsKept = 100_000;
/**
 * The most decisions that all workers may tell in a batch. At 20 batches a second 40,000 decisions a second
 * take a twenty-fifth of main's time.
 */
const batchesMax = 2_000;

export const decisionMetrics = {
  accel_agent_decisions_total: {
    kind: "counter",
    help: "Blocks, requests that were too many, and requests that monitor mode let through. Each can be looked up by its id while it is among the last 100,000.",
  },
  accel_agent_decisions_dropped_total: {
    kind: "counter",
    help: "Decisions that are not kept, and that why does not know, because more came at once than the log takes in (40,000 a second).",
  },
} as const;

/** The start of one worker's DecisionTeller; the port is transferred. */
export type DecisionInit = { readonly port: MessagePort; readonly batchMax: number };

export class DecisionLog implements Disposable {
  readonly #ring: DecisionRing;
  readonly #metrics;
  readonly #ports = new Set<MessagePort>();
  #dropped = 0;

  constructor(registry: Registry, capacity = decisionsKept) {
    this.#ring = new DecisionRing(capacity);
    this.#metrics = createMetrics(decisionMetrics, registry);
  }

  /** Opens a worker's part. What a worker told is kept after the worker is gone. */
  openWorker(workers: number): DecisionInit {
    const { port1, port2 } = new MessageChannel();
    let dropped = 0;
    this.#ports.add(port1);
    port1.on("message", (batch: DecisionBatch) => {
      this.#add(batch.lines);
      this.#drop(batch.dropped - dropped);
      ({ dropped } = batch);
      port1.postMessage(null, []);
    });
    port1.once("close", () => this.#ports.delete(port1));
    port1.unref();
    return { port: port2, batchMax: Math.ceil(batchesMax / workers) };
  }

  facts(): { readonly kept: number; readonly dropped: number } {
    return { kept: this.#ring.size, dropped: this.#dropped };
  }

  find(id: string): KeptDecision | undefined {
    return this.#ring.find(id);
  }

  about(address: string, limit: number): ReturnType<DecisionRing["about"]> {
    return this.#ring.about(address, limit);
  }

  #add(lines: string): void {
    const decisions = lines.split("\n");
    decisions.pop();
    // The lines were written by a worker of this program.
    for (const line of decisions) this.#ring.add(JSON.parse(line) as DecisionLine);
    this.#metrics.accel_agent_decisions_total.inc(decisions.length);
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#metrics.accel_agent_decisions_dropped_total.inc(count);
  }

  [Symbol.dispose](): void {
    for (const port of this.#ports) port.close();
  }
}
