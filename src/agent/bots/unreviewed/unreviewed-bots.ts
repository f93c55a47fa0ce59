// Counts the unreviewed bots of this agent over its workers and tells central in batches. A batch is sent
// again under its number until central has acknowledged it, so that it is added once whatever is lost on the
// way. What is counted meanwhile waits for the next batch.
//
// Both are kept in agent.db: every few seconds, before a batch is sent, and when the agent ends. A batch has to be
// there before it is sent, because the next start would send counts that are in no batch under another number. So a
// kill loses what was counted since the last time, and nothing is added twice.
//
// After a hand-over the state directory is the successor's. What workers still tell then goes to it.

import { once } from "node:events";
import { MessageChannel, receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { Log } from "../../../base/log.ts";
import { createMetrics, type Registry } from "../../../base/metrics.ts";
import { messageOf } from "../../../core/faults.ts";
import type { CountedBatch } from "../../../wire/channel.ts";
import { fakeDescription } from "../../../wire/other-bots.ts";
import type { KeptCounts, UnreviewedBatch } from "./kept-counts.ts";
import { UnreviewedCounts, type UnreviewedCount } from "./unreviewed-counts.ts";
import type { UnreviewedMessage } from "./unreviewed-teller.ts";

/** The time between two writes of what is counted. In a flood of made-up names one has a megabyte. */
export const keepPeriodMs = 5_000;

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

export type UnreviewedOptions = {
  /** Random for each start of the agent; the numbers of batches begin again with it. */
  readonly bootId: string;
  readonly kept: Pick<KeptCounts, "read" | "write" | "hasCounts">;
  readonly registry: Registry;
  readonly log: Log;
};

export class UnreviewedBots implements Disposable {
  readonly #bootId: string;
  readonly #kept: UnreviewedOptions["kept"];
  readonly #log: Log;
  readonly #metrics;
  /** The ports of workers that run, each with its end: resolved when all that the worker told is here. */
  readonly #ports = new Map<MessagePort, Promise<void>>();
  #counts = new UnreviewedCounts();
  #seq = 0;
  #sent: UnreviewedBatch | undefined;
  #isKept = true;
  #isFailing = false;
  #isOver = false;
  #take: ((counts: UnreviewedMessage) => void) | undefined;

  /** Goes on with what was kept. */
  constructor({ bootId, kept, registry, log }: UnreviewedOptions) {
    this.#bootId = bootId;
    this.#kept = kept;
    this.#log = log;
    this.#metrics = createMetrics(unreviewedMetrics, registry);
    const { sent, counts } = kept.read();
    this.#sent = sent;
    this.#gather(counts);
  }

  /**
   * Opens a port for one worker's UnreviewedTeller, to be transferred. What a worker told is counted even if
   * the worker is gone by then.
   */
  openWorker(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (message: UnreviewedMessage) => this.add(message));
    // The event comes behind the last message.
    const closed = once(port1, "close").then(() => void this.#ports.delete(port1));
    this.#ports.set(port1, closed);
    port1.unref();
    return port2;
  }

  /** Adds what a worker told, or what the process before still answered. */
  add(message: UnreviewedMessage): void {
    for (const { domain, requests } of message)
      this.#metrics.accel_agent_unreviewed_bots_total.inc({ domain }, requests);
    if (this.#take !== undefined) this.#take(message);
    else this.#gather(message);
    this.#isKept = false;
  }

  /**
   * Returns the batch to send, the same one until it is acknowledged; undefined when there is nothing to
   * tell, or when it cannot be kept although what is in it is: then it is told later.
   */
  batch(): UnreviewedBatch | undefined {
    if (this.#sent === undefined && !this.#counts.isEmpty) this.#close();
    return this.#sent;
  }

  /** Notes that central has stored the batch; any other batch is ignored. */
  acknowledged({ boot_id, seq }: CountedBatch): void {
    if (boot_id !== this.#sent?.id.boot_id || seq !== this.#sent.id.seq) return;
    this.#sent = undefined;
    this.#isKept = false;
  }

  /** Writes what has changed since the last time; it is durable on return. Never throws. */
  keep(): void {
    if (this.#isKept || this.#isOver) return;
    this.#isKept = this.#write(this.#sent, this.#counts.rows()) === "kept";
  }

  /**
   * Keeps what workers have told, those that have ended included. What comes afterwards waits for `follow`, and
   * with it what the disk had no room for.
   */
  [Symbol.dispose](): void {
    if (this.#isOver) return;
    for (const port of this.#ports.keys())
      for (let told = receiveMessageOnPort(port); told; told = receiveMessageOnPort(port))
        this.add(told.message as UnreviewedMessage); // A teller sends nothing else.
    if (this.#isKept || this.#write(this.#sent, this.#counts.rows()) === "kept")
      this.#counts = new UnreviewedCounts();
    this.#isOver = true;
  }

  /** From now on each count goes there, those that wait first. For an agent that has handed over. */
  follow(take: (counts: UnreviewedMessage) => void): void {
    this.#take = take;
    const waiting = this.#counts.take();
    if (waiting.length > 0) take(waiting);
  }

  /** Resolves when every worker has ended and what it told is here. */
  async complete(): Promise<void> {
    await Promise.all(this.#ports.values());
  }

  #gather(counts: readonly UnreviewedCount[]): void {
    for (const { domain, requests, ...bot } of counts) this.#counts.add(domain, bot, requests);
  }

  /** Makes a batch of what is counted. */
  #close(): void {
    const id = { boot_id: this.#bootId, seq: this.#seq + 1 };
    const sent = { id, counts: this.#counts.rows().map(described) };
    const outcome = this.#write(sent, []);
    // The next start would send them once more, under another number.
    if (outcome === "failed" && this.#kept.hasCounts) return;
    this.#isKept = outcome === "kept";
    this.#seq++;
    this.#sent = sent;
    this.#counts.take();
  }

  #write(
    sent: UnreviewedBatch | undefined,
    counts: readonly UnreviewedCount[],
  ): "kept" | "no room" | "failed" {
    try {
      const isKept = this.#kept.write({ sent, counts });
      this.#isFailing = false;
      return isKept ? "kept" : "no room";
    } catch (error) {
      if (!this.#isFailing)
        this.#log.error(
          { error: messageOf(error) },
          "counts of unreviewed bots cannot be kept in agent.db: those that central does not have are lost if the agent ends",
        );
      this.#isFailing = true;
      return "failed";
    }
  }
}
