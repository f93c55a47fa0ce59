// One origin response on its way into the cache beside the visitor who asked for it. Storing never harms the answer: whatever fails
// here, the visitor gets the body.

import type { CommitOutcome, EntryKey, EntryMeta, Fetched } from "../../cache/entry.ts";
import type { Storing } from "../../cache/worker/object-writer.ts";
import type { BodyWriter, ResponseCache } from "./cache-port.ts";
import type { OriginDeps } from "../origin/origin-answer.ts";

/**
 * How long the end of an answer waits for its commit. With it, whoever has an answer finds it stored: a second request is a hit. A busy
 * index makes a miss of that second request, never a slow visitor.
 */
const commitWaitMs = 50;

export class Fill {
  readonly #meta: EntryMeta;
  readonly #fetched: Omit<Fetched, "isAwaited">;
  readonly #outcome = Promise.withResolvers<CommitOutcome | undefined>();
  #writer: BodyWriter | undefined;
  #isRefused = false;

  constructor(writer: BodyWriter, meta: EntryMeta, fetched: Omit<Fetched, "isAwaited">) {
    this.#writer = writer;
    this.#meta = meta;
    this.#fetched = fetched;
  }

  /** Resolves to the outcome of the commit, whenever that comes, or to undefined if nothing was stored. */
  get outcome(): Promise<CommitOutcome | undefined> {
    return this.#outcome.promise;
  }

  /** False: nothing will be stored, as far as is known now. `size` of the whole body, undefined where it is not stated. */
  mayStore(size: number | undefined): boolean {
    return !this.#isRefused && this.#writer?.mayStore(this.#meta, size) !== false;
  }

  async take(chunk: Uint8Array): Promise<Storing> {
    const storing = (await this.#writer?.write(chunk)) ?? "given-up";
    if (storing === "given-up") this.abort();
    return storing;
  }

  /** The body is complete. Resolves when it is stored, or after a short while. `isAwaited`: a visitor waits for its rest. */
  async commit(isAwaited: boolean): Promise<void> {
    const writer = this.#writer;
    this.#writer = undefined;
    if (writer === undefined) return;
    const stored = writer.commit(this.#meta, { ...this.#fetched, isAwaited });
    void stored.then(({ kind }) => (this.#isRefused = kind !== "stored"));
    this.#outcome.resolve(stored);
    await shortly(stored);
  }

  /** Stores nothing. It has no effect after a commit. */
  abort(): void {
    if (this.#writer !== undefined) this.#isRefused = true;
    this.#writer?.abort();
    this.#writer = undefined;
    this.#outcome.resolve(undefined);
  }
}

/** Resolves with the commit or after a short while. */
export async function shortly(commit: Promise<unknown>): Promise<void> {
  const { promise: waited, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, commitWaitMs);
  await Promise.race([commit, waited]);
  clearTimeout(timer);
}

/** Invalidates all variants of the URLs. Never rejects: the visitor is answered whether or not the index could. */
export async function dropStored(
  { cache, problems }: Pick<OriginDeps, "problems"> & { readonly cache: ResponseCache },
  keys: readonly EntryKey[],
): Promise<void> {
  try {
    await Promise.all(keys.map((key) => cache.invalidate(key)));
  } catch (error) {
    problems.tell("warn", keys[0]?.domain ?? null, "invalidation failed", error);
  }
}
