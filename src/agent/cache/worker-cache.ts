// The cache as a worker sees it. Reads are its own (read-only connection, files, memory), writes go to the index thread.
//
// Bits, connection and hot bodies belong to one incarnation of the index: when the shared word says another, all three are dropped and nothing is servable
// until the index thread has shown the next one.

import { readFile } from "node:fs/promises";
import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../core/faults.ts";
import { BodyStream } from "./body-stream.ts";
import type { Entry, EntryKey, EntryMeta } from "./entry.ts";
import { HotBodies, hotBodyBytesMax } from "./hot-bodies.ts";
import { IndexLink } from "./index-link.ts";
import { Lookups } from "./lookups.ts";
import type { CacheInit, View } from "./messages.ts";
import { objectPath } from "./object-files.ts";
import { ObjectWriter } from "./object-writer.ts";
import { ServableBits } from "./servable-bits.ts";
import { SharedHeader } from "./shared-header.ts";
import { isDamage } from "./text-index.ts";

/** How coarse the time of last use is, and how many ids are remembered until then. */
const usedEveryMs = 60_000;
const usedMax = 8_192;
/** After a failed opening: a visitor pays for each try. */
const reopenMs = 1_000;

type Current = { readonly view: View; readonly bits: ServableBits };

export function openWorkerCache(init: CacheInit, port: MessagePort): WorkerCache {
  return new WorkerCache(init, port);
}

export class WorkerCache implements Disposable {
  readonly #init: CacheInit;
  readonly #header: SharedHeader;
  readonly #hot: HotBodies;
  readonly #link: IndexLink;
  readonly #usedTimer: NodeJS.Timeout;
  #used = new Set<number>();
  #current: Current | undefined;
  #lookups: Lookups | undefined;
  #reopenAtMs = 0;

  constructor(init: CacheInit, port: MessagePort) {
    this.#init = init;
    this.#header = new SharedHeader(init.header);
    this.#hot = new HotBodies(init.memoryMax);
    this.#link = new IndexLink(port, () => this.#onView());
    this.#usedTimer = setInterval(() => this.#tellUsed(), usedEveryMs);
    this.#usedTimer.unref();
  }

  /** The number of the newest clear: to be read before the lookup that leads to a response's oldest byte. */
  sourceNo(): number {
    return this.#header.clearNo;
  }

  confirmed(): boolean {
    return this.#header.confirmed;
  }

  /** Servable ones, newest first. Empty where there is no index or it cannot be read. */
  find(key: EntryKey): readonly Entry[] {
    const current = this.#usable();
    const lookups = current && this.#openLookups(current);
    if (current === undefined || lookups === undefined) return [];
    try {
      const found = lookups.find(key).filter(({ id }) => current.bits.has(id));
      if (this.#used.size < usedMax) for (const { id } of found) this.#used.add(id);
      return found;
    } catch (error) {
      this.#onReadFailed(error, current);
      return [];
    }
  }

  /** To be asked in the same step as writeHead. */
  servable(id: number): boolean {
    return this.#usable()?.bits.has(id) ?? false;
  }

  /**
   * Undefined where the entry is not servable any more, or its body is missing or torn: a miss, and the entry is dropped. A stream is disposed by whoever does not read it to its end; it
   * throws when its file turns out shorter than promised.
   */
  async open({ id }: Pick<Entry, "id">): Promise<Uint8Array | BodyStream | undefined> {
    if (!this.servable(id)) {
      this.#hot.drop(id);
      return undefined;
    }
    const hot = this.#hot.get(id);
    if (hot !== undefined) return hot;
    const row = this.#bodyRow(id);
    if (row === undefined) return undefined;
    if (row.size === 0) return new Uint8Array();
    const path = row.object === null ? undefined : objectPath(this.#init.directory, row.object);
    const body = path === undefined ? undefined : await readBody(path, row.size);
    // Cleared or evicted while it was being read is no loss to report.
    if (body === undefined && this.servable(id)) this.#link.tell({ kind: "lost", id });
    if (body instanceof Uint8Array && this.servable(id)) this.#hot.put(id, body);
    return body;
  }

  begin(key: EntryKey): ObjectWriter {
    const incarnation = this.#usable()?.view.incarnation;
    return new ObjectWriter({
      key,
      directory: this.#init.directory,
      run: this.#usable()?.view.run,
      bytesMax: this.#init.objectBytesMax,
      submit: async (meta, object, size) => {
        const fault = metaFault(meta);
        if (fault !== undefined)
          return { outcome: { kind: "failed", reason: fault }, isCertain: true };
        return this.#link.commit({ key, meta, object, size }, incarnation ?? 0);
      },
      onStored: (id, body) => {
        if (this.servable(id)) this.#hot.put(id, body);
      },
    });
  }

  /** Without a body, in the background; dropped when the index cannot keep up. */
  noteStatic(key: EntryKey, meta: EntryMeta, size: number): void {
    const incarnation = this.#usable()?.view.incarnation;
    if (incarnation === undefined || metaFault(meta) !== undefined) return;
    void this.#link.commit({ key, meta, object: null, size }, incarnation);
  }

  /** All variants of the URL, and what of it is being fetched. Durable when it resolves; rejects with INDEX_BROKEN. */
  invalidate(key: EntryKey): Promise<void> {
    return this.#link.invalidate(key);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#usedTimer);
    this.#link[Symbol.dispose]();
    this.#drop();
  }

  #onView(): void {
    this.#drop();
    const { view } = this.#link;
    this.#current =
      view === undefined ? undefined : { view, bits: new ServableBits(view.bits, view.baseId) };
  }

  #usable(): Current | undefined {
    const current = this.#current;
    if (current === undefined) return undefined;
    if (current.view.incarnation === this.#header.incarnation) return current;
    this.#drop();
    return undefined;
  }

  #drop(): void {
    this.#current = undefined;
    this.#hot.clear();
    this.#used.clear();
    this.#reopenAtMs = 0;
    this.#lookups?.[Symbol.dispose]();
    this.#lookups = undefined;
  }

  #openLookups({ view }: Current): Lookups | undefined {
    if (this.#lookups !== undefined) return this.#lookups;
    if (performance.now() < this.#reopenAtMs) return undefined;
    try {
      this.#lookups = new Lookups(this.#init.directory, view.incarnation);
    } catch {
      // The index thread has the same disk before it, and reports it.
      this.#reopenAtMs = performance.now() + reopenMs;
    }
    return this.#lookups;
  }

  #bodyRow(id: number): ReturnType<Lookups["body"]> {
    const current = this.#usable();
    const lookups = current && this.#openLookups(current);
    if (current === undefined || lookups === undefined) return undefined;
    try {
      return lookups.body(id);
    } catch (error) {
      this.#onReadFailed(error, current);
      return undefined;
    }
  }

  #onReadFailed(error: unknown, { view }: Current): void {
    this.#lookups?.[Symbol.dispose]();
    this.#lookups = undefined;
    this.#reopenAtMs = performance.now() + reopenMs;
    if (!isDamage(error)) return;
    const { incarnation } = view;
    this.#link.tell({ kind: "damaged", incarnation, reason: messageOf(error) });
  }

  #tellUsed(): void {
    if (this.#used.size === 0) return;
    this.#link.tell({ kind: "used", ids: Float64Array.from(this.#used) });
    this.#used = new Set();
  }
}

async function readBody(path: string, size: number): Promise<Uint8Array | BodyStream | undefined> {
  if (size > hotBodyBytesMax) return BodyStream.open(path, size);
  try {
    const body = await readFile(path);
    return body.length === size ? body : undefined;
  } catch {
    return undefined;
  }
}

/** What SQLite would refuse only within a transaction that holds other responses too. */
function metaFault(meta: EntryMeta): string | undefined {
  const { status, storedAtMs, initialAgeS, freshForS, sourceNo } = meta;
  if ([status, sourceNo].every((n) => Number.isSafeInteger(n)))
    if ([storedAtMs, initialAgeS, freshForS].every((n) => Number.isFinite(n))) return undefined;
  return "status, times and source number must be numbers";
}
