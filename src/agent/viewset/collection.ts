// Removes blobs that nothing needs any more. Nothing that is in use is ever removed:
//
//   a release that is in force, kept or pinned        its blobs stay
//   a release that was in force `graceMs` ago         they stay: a request that began before may still open
//                                                     them (one that has a blob open can still read it)
//   whatever was asked for, stored or fetched lately  it stays (BlobStore): an activation or import that is
//                                                     being prepared relies on it
//   a transfer that broke off                         it stays while somebody may continue it (PartialFiles)
//
// A needed release whose manifest cannot be read stops the collection, for nobody knows what it needs.
// Collections are requested at the start and by activations. Each runs a minute later, so that several
// requests are met by one collection and what was prepared has been committed. An activation that fails
// leaves its files for another try; they are looked at when they are old enough to go. Without requests there
// is one collection a day. They work in pieces, between which the event loop turns.

import { readdir } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";
import { blobKey, type BlobList } from "../../core/blob-list.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import type { BlobStore } from "./blob-store.ts";
import type { ViewsetMetrics } from "./metrics.ts";

export type Referenced = {
  readonly manifest: Sha256;
  /** Whether it is in force or pinned. */
  readonly isNeeded: boolean;
};

export type CollectionOptions = {
  readonly store: BlobStore;
  readonly blobsOf: (manifest: Sha256) => Promise<BlobList | undefined>;
  /** Returns the releases of all domains, as committed. */
  readonly references: () => readonly Referenced[];
  readonly metrics: ViewsetMetrics;
  readonly log: Log;
  /** A monotonic clock. */
  readonly nowMs?: () => number;
  /** Resolves with false when the signal ended it. */
  readonly wait?: (ms: number, stop: AbortSignal) => Promise<boolean>;
  readonly stop: AbortSignal;
};

export type Collected = {
  readonly removed: number;
  readonly removedBytes: number;
  /** The number of blobs that are left. */
  readonly blobs: number;
  readonly bytes: number;
  /** The blobs that are unreferenced but too young to go. */
  readonly young: number;
};

/** Ten times as long as a request may be silent. */
const graceMs = 600_000;
const aheadMs = 60_000;
const dayMs = 86_400_000;
/** 64 removals of 30 µs, renames and stats, between two turns of the event loop. */
const removalsPerTurn = 64;
/** 256 looks of 3 µs between two turns of the event loop. */
const looksPerTurn = 256;

export class Collection implements AsyncDisposable {
  readonly #options: CollectionOptions;
  readonly #nowMs: () => number;
  readonly #wait: (ms: number, stop: AbortSignal) => Promise<boolean>;
  readonly #own = new AbortController();
  readonly #stop: AbortSignal;
  readonly #loop: Promise<void>;
  /** The lists that were needed at the last collection. */
  #needed = new Map<Sha256, BlobList>();
  /** The lists that are no longer needed, and until when their blobs stay. */
  readonly #departed = new Map<Sha256, { readonly blobs: BlobList; readonly untilMs: number }>();
  #wanted = Promise.withResolvers<void>();
  #leftovers = Promise.withResolvers<void>();
  #running: Promise<Collected | undefined> = Promise.resolve(undefined);

  constructor(options: CollectionOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#wait = options.wait ?? sleep;
    this.#stop = AbortSignal.any([options.stop, this.#own.signal]);
    this.#loop = this.#run();
  }

  /** Requests a collection in a minute; requests until then are met by the same one. */
  request(): void {
    this.#wanted.resolve();
  }

  /** Requests a collection in eleven minutes, when what broke off, or is not needed after all, can go. */
  requestLate(): void {
    this.#leftovers.resolve();
  }

  /**
   * Collects now, after the collection that is under way. Returns undefined, having removed no blob, if
   * nobody knows what is needed.
   */
  async collect(): Promise<Collected | undefined> {
    const next = this.#running.then(async () => this.#collect());
    this.#running = next.catch(() => undefined);
    return next;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    this.#wanted.resolve();
    await this.#loop;
    await this.#running;
  }

  async #run(): Promise<void> {
    let isPending = false;
    while (!this.#stop.aborted) {
      // Blobs that were too young are looked at again when they are old enough.
      await this.#due(isPending ? graceMs : dayMs);
      await this.#wait(aheadMs, this.#stop);
      if (this.#stop.aborted) return;
      this.#wanted = Promise.withResolvers();
      this.#leftovers = Promise.withResolvers();
      const collected = await this.collect().catch((error: unknown) => {
        this.#options.log.error({ err: error }, "collecting unreferenced files failed");
        return undefined;
      });
      isPending = this.#departed.size > 0 || (collected?.young ?? 0) > 0;
    }
  }

  async #due(latestMs: number): Promise<void> {
    const enough = new AbortController();
    const stop = AbortSignal.any([this.#stop, enough.signal]);
    const left = this.#leftovers.promise.then(async () => this.#wait(graceMs, stop));
    await Promise.race([this.#wanted.promise, left, this.#wait(latestMs, stop)]);
    enough.abort();
  }

  async #collect(): Promise<Collected | undefined> {
    const { store, metrics, log } = this.#options;
    const parts = await store.parts.sweep();
    if (parts.removed > 0) log.info(parts, "files that nobody fetches any more were removed");
    const marks = await this.#mark();
    if (marks === undefined) return undefined;
    const total = { removed: 0, removedBytes: 0, blobs: 0, bytes: 0, young: parts.young };
    const counted = store.beginCount();
    for (const fan of await store.fans()) {
      if (this.#stop.aborted) return total;
      await this.#sweep(fan, marks, total);
    }
    counted(total.bytes);
    metrics.accel_agent_viewset_blobs_collected_total.inc(total.removed);
    metrics.accel_agent_viewset_blobs_stored.set(total.blobs);
    metrics.accel_agent_viewset_blob_bytes_stored.set(total.bytes);
    if (total.removed > 0) log.info(total, "unreferenced files of viewsets were removed");
    return total;
  }

  /** Returns the keys of the blobs that stay; undefined if a needed manifest cannot be read. */
  async #mark(): Promise<ReadonlySet<number> | undefined> {
    const { references, blobsOf, log } = this.#options;
    const nowMs = this.#nowMs();
    const referenced = new Map<Sha256, BlobList>();
    const needed = new Map<Sha256, BlobList>();
    for (const { manifest, isNeeded } of references()) {
      const blobs = referenced.get(manifest) ?? (await blobsOf(manifest));
      if (blobs !== undefined) {
        referenced.set(manifest, blobs);
        if (isNeeded) needed.set(manifest, blobs);
      } else if (isNeeded) {
        const reason = "files are not collected: a manifest that is needed is not readable";
        log.warn({ manifest }, reason);
        return undefined;
      }
    }
    for (const [manifest, blobs] of this.#needed)
      if (!needed.has(manifest)) this.#departed.set(manifest, { blobs, untilMs: nowMs + graceMs });
    for (const [manifest, { untilMs }] of this.#departed)
      if (needed.has(manifest) || untilMs <= nowMs) this.#departed.delete(manifest);
    this.#needed = needed;
    const keys = new Set<number>();
    const departed = [...this.#departed.values()].map(({ blobs }) => blobs);
    for (const list of [...referenced.values(), ...departed]) {
      for (const key of list.keys) keys.add(key);
      await nextTurn();
    }
    return keys;
  }

  async #sweep(
    fan: string,
    marks: ReadonlySet<number>,
    total: { -readonly [K in keyof Collected]: Collected[K] },
  ): Promise<void> {
    const { store } = this.#options;
    let looked = 0;
    for (const name of await readdir(fan)) {
      if (++looked % looksPerTurn === 0) await nextTurn();
      const sha256 = parseSha256(name);
      if (sha256 === undefined) continue;
      const isMarked = marks.has(blobKey(sha256));
      // This is one synchronous step: nobody can begin to rely on the blob between the question and the
      // removal.
      const removed = isMarked ? undefined : store.removeUnlessUsed(sha256);
      if (removed === undefined) {
        if (!isMarked) total.young++;
        total.blobs++;
        total.bytes += store.sizeOf(sha256);
        continue;
      }
      total.removedBytes += removed;
      if (++total.removed % removalsPerTurn === 0) await nextTurn();
    }
    if (looked > 0) await nextTurn();
  }
}
