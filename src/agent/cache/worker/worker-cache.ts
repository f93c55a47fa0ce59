// The cache as a worker sees it. Reads are its own (memory, read-only connection, files), writes go to the index thread.
//
// Bits, connection and what is held in memory belong to one incarnation of the index: when the shared word says another, all are dropped and nothing is
// servable until the index thread has shown the next one.

import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../../core/faults.ts";
import { BodyReader, type ReadBody } from "./body-reader.ts";
import { DiskRoom } from "../index/disk-room.ts";
import {
  metaFault,
  storeFault,
  type CommitOutcome,
  type Entry,
  type EntryKey,
  type EntryMeta,
  type Refreshed,
  type VariantForm,
} from "../entry.ts";
import { HotLookups, type HeldEntries } from "./hot-lookups.ts";
import { IndexLink } from "./index-link.ts";
import { Lookups, type BodyRow } from "./lookups.ts";
import type { CacheInit, View } from "../messages.ts";
import { ObjectWriter, type ObjectWriterOptions } from "./object-writer.ts";
import { EntryBits } from "../index/entry-bits.ts";
import { KeyPresence } from "../index/key-presence.ts";
import { keyPlace, SharedHeader } from "../index/shared-header.ts";
import { isDamage } from "../index/text-index.ts";
import { UsedIds, usedEveryMs } from "./used-ids.ts";
import { HotBodies } from "./hot-memory.ts";

/** The pause after a failed opening: a visitor pays for each try. */
const reopenMs = 1_000;
/** The share of the memory for looked-up entries, a kilobyte or two each; the rest holds bodies. */
const lookupShare = 1 / 4;

type Current = { readonly view: View; readonly bits: EntryBits; readonly fresh: EntryBits };

export function openWorkerCache(init: CacheInit, port: MessagePort): WorkerCache {
  return new WorkerCache(init, port);
}

export class WorkerCache implements Disposable {
  readonly #init: CacheInit;
  readonly #header: SharedHeader;
  readonly #keys: KeyPresence;
  readonly #hot: HotBodies;
  readonly #hotLookups: HotLookups;
  readonly #bodies: BodyReader;
  readonly #link: IndexLink;
  readonly #room: DiskRoom;
  readonly #usedTimer: NodeJS.Timeout;
  readonly #used = new UsedIds();
  #current: Current | undefined;
  #lookups: Lookups | undefined;
  #reopenAtMs = 0;

  constructor(init: CacheInit, port: MessagePort) {
    this.#init = init;
    this.#header = new SharedHeader(init.header);
    this.#keys = new KeyPresence(init.keys);
    const lookupBytes = Math.floor(init.memoryMax * lookupShare);
    this.#hotLookups = new HotLookups(lookupBytes, this.#header);
    this.#hot = new HotBodies(init.memoryMax - lookupBytes);
    this.#bodies = new BodyReader(init.directory, (id) =>
      this.#link.tell({ kind: "verified", id }),
    );
    this.#link = new IndexLink(port, () => this.#onView());
    this.#room = new DiskRoom(this.#header, init.diskShare, init.diskMax, {
      onShort: () => this.#link.tell({ kind: "used", ids: new Float64Array() }),
    });
    this.#usedTimer = setInterval(() => this.#tellUsed(this.#used.take()), usedEveryMs);
    this.#usedTimer.unref();
  }

  /** The number of the newest clear: to be read before the lookup that leads to a response's oldest byte. */
  sourceNo(): number {
    return this.#header.clearNo;
  }

  /** Returns the mark of clears, which must be read before `sourceNo`; see the port. */
  clearMark(key: EntryKey): number {
    return this.#header.clearMark(key);
  }

  /** Returns the mark of invalidations, which must be read before the origin is asked; see the port. */
  invalidationMark(key: EntryKey): number {
    return this.#header.invalidationMark(key);
  }

  confirmed(domain: string): boolean {
    return this.#header.confirmed && !this.#header.isUnsure(domain);
  }

  /** Finds the servable entries of a key, coded ones among them, newest first. Empty where there is no index or it cannot be read. */
  find(key: EntryKey): readonly Entry[] {
    this.#header.noteLookup();
    const current = this.#usable();
    if (current === undefined) return [];
    const isLive = (entry: Pick<Entry, "id" | "baseId">): boolean => isServable(current, entry);
    try {
      const found = this.#hotLookups
        .find(key, () =>
          this.#keys.isAbsent(key) ? [] : (this.#openLookups(current)?.find(key, isLive) ?? []),
        )
        .filter(isLive);
      // Which of several variants is used is known when it answers.
      for (const { id, vary } of found) if (vary === null) this.#used.note(id);
      return found;
    } catch (error) {
      this.#onReadFailed(error, current);
      return [];
    }
  }

  /** Finds what memory holds of a key, servable or not; undefined where the index has to be asked. Notes nothing. */
  findHeld(key: EntryKey): HeldEntries | undefined {
    return this.#usable() === undefined ? undefined : this.#hotLookups.held(key);
  }

  /** Returns whether the index would still say of the key what was held of it. */
  isCurrent(held: HeldEntries): boolean {
    return this.#usable() !== undefined && this.#hotLookups.isCurrent(held);
  }

  /** Returns the body of a servable entry if it is in memory. */
  held({ id }: Entry): Uint8Array | undefined {
    return this.#hot.get(id);
  }

  /** Notes a look-up that memory answered, and the entry that answers. */
  noteHit({ entries, place }: HeldEntries, entry: Entry): void {
    this.#header.noteLookup();
    for (const one of entries) if (one.vary === null && this.servable(one)) this.#used.note(one.id);
    if (entry.vary !== null) this.#noteVariant(entry, place);
  }

  /** Returns whether the entry is servable; to be asked in the same step as writeHead. */
  servable(entry: Pick<Entry, "id" | "baseId">): boolean {
    const current = this.#usable();
    return current !== undefined && isServable(current, entry);
  }

  /** Returns whether a soft clear has made the entry stale; to be asked in the same step as writeHead. A coded body is as fresh as what it was made of. */
  softened({ id, baseId }: Pick<Entry, "id" | "baseId">): boolean {
    return this.#usable()?.fresh.has(baseId ?? id) === false;
  }

  /** Returns since when a soft clear has made the entry stale; see the port. */
  softenedSinceMs({ id, baseId }: Pick<Entry, "id" | "baseId">): number | undefined {
    const current = this.#usable();
    if (current?.fresh.has(baseId ?? id) !== false) return undefined;
    // Read before the table: where it says nothing of the clear by then, the table tells of it.
    const { softSinceS } = this.#header;
    try {
      const sinceS = this.#openLookups(current)?.softenedSince(baseId ?? id) ?? softSinceS;
      return sinceS > 0 ? sinceS * 1_000 : -Infinity;
    } catch (error) {
      this.#onReadFailed(error, current);
      return -Infinity;
    }
  }

  used(entry: Entry): void {
    if (entry.vary === null) return; // Noted when it was found.
    this.#noteVariant(entry, keyPlace(entry));
  }

  #noteVariant({ id, baseId }: Entry, place: number): void {
    this.#used.note(id, place);
    if (baseId !== null) this.#used.note(baseId, place);
  }

  /**
   * Opens the body of an entry. Undefined where the entry is not servable any more, or its body is missing or torn: a miss, and the entry is dropped. A noted static file has no body
   * here. A stream is disposed by whoever does not read it to its end; it throws when its file turns out shorter than promised.
   */
  async open(entry: Entry): Promise<ReadBody | undefined> {
    const { id } = entry;
    if (!this.servable(entry)) {
      this.#hot.drop(id);
      return undefined;
    }
    const hot = this.#hot.get(id);
    if (hot !== undefined) return hot;
    if (entry.kind === "static" && entry.baseId === null) return undefined;
    const row = this.#bodyRow(id);
    if (row === undefined) return undefined;
    const body = await this.#bodies.read(id, row, id <= (this.#current?.view.suspectTo ?? 0));
    // Cleared or evicted while it was being read is no loss to report.
    if (body === undefined && this.servable(entry)) this.#link.tell({ kind: "lost", id });
    if (body instanceof Uint8Array && this.servable(entry)) this.#hot.put(id, body);
    return body;
  }

  begin(key: EntryKey, invalidationMark: number): ObjectWriter {
    const incarnation = this.#usable()?.view.incarnation ?? 0;
    return this.#writer(key, null, async (meta, body, size, fetched) => {
      const fault = storeFault(meta);
      if (fault !== undefined)
        return { outcome: { kind: "failed", reason: fault }, isCertain: true };
      if (meta.vary !== null) this.#tellUsed(this.#used.takeOf(keyPlace(key)));
      const candidate = { ...fetched, key, meta, body, size, invalidationMark };
      return this.#link.submit({ kind: "commit", incarnation, candidate });
    });
  }

  /** Refreshes an entry in place, while it is servable (else `blocked`). Never rejects. */
  async refresh(entry: Entry, refreshed: Refreshed): Promise<CommitOutcome> {
    const current = this.#usable();
    if (current === undefined || !isServable(current, entry)) return { kind: "blocked" };
    const fault = metaFault({ ...entry, ...refreshed });
    if (fault !== undefined) return { kind: "failed", reason: fault };
    const { incarnation } = current.view;
    const { id } = entry;
    const key = keyOf(entry);
    const { headers, mime, tags, storedAtMs, initialAgeS, freshForS, confirmedNo } = refreshed;
    const { outcome } = await this.#link.submit({
      kind: "refresh",
      incarnation,
      id,
      key,
      refreshed: {
        headers,
        mime,
        storedAtMs,
        initialAgeS,
        freshForS,
        confirmedNo,
        ...(tags !== undefined && { tags }),
      },
    });
    return outcome;
  }

  /** Stores a variant, while the base is servable (else `blocked`). Never rejects; the body must not change afterwards. */
  async storeVariant(base: Entry, form: VariantForm, body: Uint8Array): Promise<CommitOutcome> {
    const current = this.#usable();
    if (current === undefined || !isServable(current, base)) return { kind: "blocked" };
    const { incarnation } = current.view;
    const key = keyOf(base);
    const writer = this.#writer(base, base.id, async (_meta, stored, size) =>
      stored === null
        ? { outcome: { kind: "failed", reason: "a variant has a body" }, isCertain: true }
        : this.#link.submit({
            kind: "variant",
            incarnation,
            baseId: base.id,
            key,
            form,
            body: stored,
            size,
          }),
    );
    await writer.write(body);
    return writer.commit(base);
  }

  /** Notes a static file without a body, in the background. It is dropped when the index cannot keep up. */
  noteStatic(key: EntryKey, meta: EntryMeta, size: number): void {
    const incarnation = this.#usable()?.view.incarnation;
    if (incarnation === undefined || metaFault(meta) !== undefined) return;
    void this.#link.submit({
      kind: "commit",
      incarnation,
      candidate: { key, meta, body: null, size, invalidationMark: null },
    });
  }

  /** Invalidates all variants of the URL, and what of it is being fetched. Durable when it resolves; rejects with INDEX_BROKEN. */
  async invalidate(key: EntryKey): Promise<void> {
    // At once and whatever becomes of it: nobody shares, and the index does not store, what was asked of the origin before.
    this.#header.moveInvalidationMark(key);
    // Most URLs that change something have no entry: then this is all (key-presence.ts says why it is enough).
    if (this.#usable() !== undefined && this.#keys.isAbsent(key)) return;
    await this.#link.invalidate(key);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#usedTimer);
    this.#room[Symbol.dispose]();
    this.#link[Symbol.dispose]();
    this.#drop();
  }

  #writer(
    { domain }: EntryKey,
    baseId: number | null,
    submit: ObjectWriterOptions["submit"],
  ): ObjectWriter {
    return new ObjectWriter({
      directory: this.#init.directory,
      run: this.#usable()?.view.run,
      bytesMax: this.#room.objectBytesMax,
      room: this.#room,
      place: this.#room.placeOf(domain),
      submit,
      onStored: (id, body) => {
        if (this.servable({ id, baseId })) this.#hot.put(id, body);
      },
      onUnwritten: (reason) => this.#link.tell({ kind: "unwritten", reason }),
    });
  }

  #onView(): void {
    this.#drop();
    const { view } = this.#link;
    if (view === undefined) return;
    const { bits, fresh, baseId } = view;
    this.#current = {
      view,
      bits: new EntryBits(bits, baseId),
      fresh: new EntryBits(fresh, baseId),
    };
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
    this.#hotLookups.clear();
    this.#used.clear();
    this.#reopenAtMs = 0;
    this.#lookups?.[Symbol.dispose]();
    this.#lookups = undefined;
  }

  /** Undefined for a while after it could not be read; throws where it cannot be opened. */
  #openLookups({ view }: Current): Lookups | undefined {
    if (this.#lookups !== undefined) return this.#lookups;
    if (performance.now() < this.#reopenAtMs) return undefined;
    this.#lookups = new Lookups(this.#init.directory, view.incarnation);
    return this.#lookups;
  }

  #bodyRow(id: number): BodyRow | undefined {
    const current = this.#usable();
    if (current === undefined) return undefined;
    try {
      return this.#openLookups(current)?.body(id);
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

  /**
   * Tells the ids that were used. It does so even without any when room is short: eviction goes on when the
   * index thread hears something.
   */
  #tellUsed(ids: Float64Array): void {
    if (ids.length > 0 || this.#room.isShort) this.#link.tell({ kind: "used", ids });
  }
}

/** A coded body counts only while what it was made of does. */
function isServable({ bits }: Current, { id, baseId }: Pick<Entry, "id" | "baseId">): boolean {
  return bits.has(id) && (baseId === null || bits.has(baseId));
}

function keyOf({ domain, host, kind, path, query }: EntryKey): EntryKey {
  return { domain, host, kind, path, query };
}
