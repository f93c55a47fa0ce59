// The records of requests that an agent still answers when it has handed its spool over: main gathers them from its workers, until somebody takes them to the
// successor.

import { once } from "node:events";
import { MessageChannel, type MessagePort } from "node:worker_threads";

/** Far more than can be under way when an agent hands over; each has some 1 KiB. */
const waitingMax = 65_536;

export class LateRecords {
  #waiting: string[] = [];
  #take: ((line: string) => void) | undefined;
  #lost = 0;
  /** One for each worker that runs: resolved when it has ended and all that it sent is here. */
  readonly #open = new Set<Promise<void>>();

  /** Returns the port of one worker's PartingLane. */
  openWorker(): MessagePort {
    const { port1: ours, port2: theirs } = new MessageChannel();
    // A PartingLane sends lines and nothing else.
    ours.on("message", (line: string) => this.#hear(line));
    // The event comes behind the last line.
    const closed = once(ours, "close").then(() => void this.#open.delete(closed));
    this.#open.add(closed);
    ours.unref();
    return theirs;
  }

  /** Resolves when every worker has ended and what it sent is here. */
  async complete(): Promise<void> {
    await Promise.all(this.#open);
  }

  /** How many did not fit. */
  get lost(): number {
    return this.#lost;
  }

  /** From now on each goes there, those that wait first. */
  follow(take: (line: string) => void): void {
    this.#take = take;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const line of waiting) take(line);
  }

  #hear(line: string): void {
    if (this.#take !== undefined) this.#take(line);
    else if (this.#waiting.length < waitingMax) this.#waiting.push(line);
    else this.#lost++;
  }
}
