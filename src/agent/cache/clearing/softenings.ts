// Noting what applied soft clears made stale, in the background: their ids go from the row of the clear into the table `softened`, by which workers learn since when
// an entry is stale. Until then the shared header tells since when the oldest such clear is in force, which is no later.
//
// An entry whose bit is set again was confirmed by its origin since, and is passed over.

import { AccelError } from "../../../core/faults.ts";
import type { IndexClock } from "../index/clock.ts";
import type { Entries } from "../index/entries.ts";
import type { EntryBits } from "../index/entry-bits.ts";
import type { SharedHeader } from "../index/shared-header.ts";
import type { ClearGone, Clears } from "./clears.ts";

/** The length of a step. */
const stepMs = 20;
/** The ids of one statement: some milliseconds. */
const piece = 2_000;

type Softening = {
  readonly clearNo: number;
  readonly ids: Float64Array;
  readonly sinceS: number;
  at: number;
  readonly startedMs: number;
  readonly done: PromiseWithResolvers<ClearGone>;
};

export type SofteningsOptions = {
  readonly entries: Pick<Entries, "soften">;
  readonly clears: Pick<Clears, "finish">;
  readonly fresh: Pick<EntryBits, "has">;
  readonly clock: Pick<IndexClock, "elapsedMs">;
  readonly header: Pick<SharedHeader, "softSinceS">;
  /** Runs in one transaction; throws as SQLite does, then nothing of it happened. */
  readonly commit: <T>(action: () => T) => T;
};

export class Softenings {
  readonly #options: SofteningsOptions;
  readonly #queue: Softening[] = [];

  constructor(options: SofteningsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#queue.length;
  }

  /** Shows since when a soft clear is in force; to be called before the bits of what it matches fall. */
  announce(sinceS: number): void {
    const { header } = this.#options;
    header.softSinceS = header.softSinceS === 0 ? sinceS : Math.min(header.softSinceS, sinceS);
  }

  /** Adds what a clear made stale. The ids must ascend and be durable as those of the clear, and their bits must have fallen. */
  add(clearNo: number, ids: Float64Array, sinceS: number): void {
    const done = Promise.withResolvers<ClearGone>();
    done.promise.catch(() => undefined); // Nobody needs to be waiting.
    const startedMs = this.#options.clock.elapsedMs();
    this.#queue.push({ clearNo, ids, sinceS, at: 0, startedMs, done });
  }

  /** Resolves when all that the clear made stale is noted; undefined if none of it is left to be. */
  gone(clearNo: number): Promise<ClearGone> | undefined {
    return this.#queue.find((softening) => softening.clearNo === clearNo)?.done.promise;
  }

  /** Does one step. */
  step(): void {
    const softening = this.#queue[0];
    if (softening === undefined) return;
    const { clears, clock, commit } = this.#options;
    const { clearNo, ids, startedMs } = softening;
    const { at, gone } = commit(() => {
      const at = this.#note(softening);
      const goneMs = clock.elapsedMs() - startedMs;
      return { at, gone: at < ids.length ? undefined : clears.finish(clearNo, 0, goneMs) };
    });
    softening.at = at;
    if (gone === undefined) return;
    this.#queue.shift();
    this.settle();
    softening.done.resolve(gone);
  }

  /** Shows since when those are in force that are not noted. */
  settle(): void {
    const left = this.#queue.map(({ sinceS }) => sinceS);
    this.#options.header.softSinceS = left.length === 0 ? 0 : Math.min(...left);
  }

  /** The whole file is about to be deleted, and so is everything that was waited for. */
  endAll(): void {
    for (const { done, startedMs } of this.#queue) {
      const goneMs = this.#options.clock.elapsedMs() - startedMs;
      done.resolve({ removed: 0, blockedInFlight: 0, goneMs, verified: true, left: 0 });
    }
  }

  rejectAll(): void {
    for (const { done } of this.#queue)
      done.reject(
        new AccelError("INDEX_BROKEN", "the cache index was closed before the clear had ended"),
      );
  }

  /** Notes at least one piece; returns how far it came. */
  #note({ ids, at, sinceS }: Softening): number {
    const { entries, fresh, clock } = this.#options;
    const endMs = clock.elapsedMs() + stepMs;
    let next = at;
    do {
      const some = ids.subarray(next, next + piece);
      entries.soften(
        Array.from(some).filter((id) => !fresh.has(id)),
        sinceS,
      );
      next += some.length;
    } while (next < ids.length && clock.elapsedMs() < endMs);
    return next;
  }
}
