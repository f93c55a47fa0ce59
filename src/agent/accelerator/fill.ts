// One origin response on its way into the cache beside the visitor who asked for it. Storing never harms the answer: whatever fails
// here, the visitor gets the body.

import type { CommitOutcome, EntryMeta, ObjectWriter } from "./cache-port.ts";

/**
 * How long the end of an answer waits for its commit. With it, whoever has an answer finds it stored: a second request is a hit. A busy
 * index makes a miss of that second request, never a slow visitor.
 */
const commitWaitMs = 50;

export class Fill {
  readonly #meta: EntryMeta;
  #writer: ObjectWriter | undefined;

  constructor(writer: ObjectWriter, meta: EntryMeta) {
    this.#writer = writer;
    this.#meta = meta;
  }

  async take(chunk: Uint8Array): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined || (await writer.write(chunk))) return;
    this.abort();
  }

  /** The body is complete. Resolves when it is stored, or after a short while. */
  async commit(): Promise<void> {
    const writer = this.#writer;
    this.#writer = undefined;
    if (writer === undefined) return;
    const stored: Promise<CommitOutcome> = writer.commit(this.#meta);
    const { promise: waited, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, commitWaitMs);
    await Promise.race([stored, waited]);
    clearTimeout(timer);
  }

  /** Nothing is stored. After a commit without effect. */
  abort(): void {
    this.#writer?.abort();
    this.#writer = undefined;
  }
}
