// Invalidations by requests that an agent still answers when it has handed its index over (decision 0114): main carries them to the successor, whose index it is
// now, and its answers back. Workers notice nothing: they are given a port in the place of the index thread's, and what that thread has not answered they send again.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { EntryKey } from "./entry.ts";
import type { IndexerToWorker, WorkerToIndexer } from "./messages.ts";

export type LateInvalidation = { readonly no: number; readonly key: EntryKey };

type Waiting = {
  readonly key: EntryKey;
  readonly answered: (fault: string | undefined) => void;
};

export class LateInvalidations {
  /** By number, in the order in which they were asked for. */
  readonly #waiting = new Map<number, Waiting>();
  #tell: ((asked: LateInvalidation) => void) | undefined;
  #asked = 0;

  /** Returns the port of one worker. */
  openWorker(): MessagePort {
    const { port1: ours, port2: theirs } = new MessageChannel();
    ours.on("message", (message: WorkerToIndexer) => {
      // Whatever else a worker says is of an index that is another agent's now.
      if (message.kind !== "invalidate") return;
      const { no, key } = message;
      this.#ask(key, (fault) =>
        ours.postMessage({ kind: "invalidated", no, fault } satisfies IndexerToWorker),
      );
    });
    ours.unref();
    return theirs;
  }

  /** From now on each is told there, those that wait first. */
  follow(tell: (asked: LateInvalidation) => void): void {
    this.#tell = tell;
    for (const [no, { key }] of this.#waiting) tell({ no, key });
  }

  /** `fault` undefined: it is durable in the index of the successor. */
  answered(no: number, fault: string | undefined): void {
    this.#waiting.get(no)?.answered(fault);
    this.#waiting.delete(no);
  }

  #ask(key: EntryKey, answered: Waiting["answered"]): void {
    const no = ++this.#asked;
    this.#waiting.set(no, { key, answered });
    this.#tell?.({ no, key });
  }
}
