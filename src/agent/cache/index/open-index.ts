// One opening of index.db: the file, the bits that workers see of it, and what is done to both. Everything here is synchronous; the order is always
// commit first, then bits, then files, so that no bit speaks of a row that a crash could take back.

import type { Sqlite } from "../../../base/sqlite.ts";
import { Clears, type ClearGone, type ClearRequest } from "../clearing/clears.ts";
import { Deletions } from "../clearing/deletions.ts";
import { encodeIdRuns } from "../clearing/id-runs.ts";
import { IdSet } from "../clearing/id-set.ts";
import { Softenings } from "../clearing/softenings.ts";
import type { CommitOutcome, Scope } from "../entry.ts";
import { Checkpoints, type WriteBack } from "./checkpoints.ts";
import type { IndexClock } from "./clock.ts";
import { Departures } from "./departures.ts";
import { Entries, type Removed } from "./entries.ts";
import { EntrySites, type Site } from "./entry-sites.ts";
import { Eviction } from "./eviction.ts";
import { Guard } from "./guard.ts";
import { commit, markClean, readState, touchState } from "./index-file.ts";
import { PresentKeys, type KeyPresence } from "./key-presence.ts";
import { makeObjectDirectories, newRun, ObjectSweep, unlinkObject } from "./object-files.ts";
import { madeAnew, noteEpoch } from "./opening.ts";
import { idSpanMax, EntryBits, type IdBits } from "./entry-bits.ts";
import { keyPlace, type SharedHeader } from "./shared-header.ts";
import { Shrinking } from "./shrinking.ts";
import { Writes, type Effect, type Write } from "./writes.ts";

/** Counts since the thread was started, over all openings. */
export type Counts = { stored: number; blocked: number; evicted: number };

export type OpenIndexOptions = {
  readonly directory: string;
  readonly header: SharedHeader;
  readonly diskMax: number;
  /** How many bytes the disk lacks for others. */
  readonly lacking?: (() => number) | undefined;
  readonly clock: IndexClock;
  readonly incarnation: number;
  readonly counts: Counts;
  readonly isUnchecked: boolean;
  /** See KeeperOptions. */
  readonly keys?: KeyPresence | undefined;
  /** Undefined: SQLite writes the WAL back within commits. */
  readonly writeBack?: WriteBack | undefined;
};

/** What a clear did. `ids`: what it made unservable or stale. */
type Applied = {
  readonly ids: Float64Array;
  /** How many it matches; absent: all of these. */
  readonly matched?: number;
  readonly widened: boolean;
  readonly invisibleMs: number;
  /** Of a soft clear: since when they are stale, s of the wall clock. */
  readonly softSinceS?: number | undefined;
};

export class OpenIndex implements Disposable {
  readonly incarnation: number;
  readonly run = newRun();
  /** Servable entries. */
  readonly bits: EntryBits;
  /** Entries that no soft clear made stale since they were fetched or confirmed. */
  readonly fresh: EntryBits;
  readonly clears: Clears;
  readonly entries: Entries;
  readonly departures: Departures;
  #isUnchecked: boolean;
  /** Files of entries up to this id may be torn. */
  readonly suspectTo: number;
  readonly #sites = new EntrySites();
  readonly #writes: Writes;
  readonly #counts: Counts;
  readonly #db: Sqlite;
  readonly #guard = new Guard();
  readonly #directory: string;
  readonly #header: SharedHeader;
  readonly #clock: IndexClock;
  readonly #sweep: ObjectSweep;
  readonly #checkpoints: Checkpoints | undefined;
  readonly #deletions: Deletions;
  readonly #softenings: Softenings;
  readonly #eviction: Eviction;
  readonly #shrinking: Shrinking;
  readonly #keys: PresentKeys | undefined;
  /** Segments of the text index may have to be merged. */
  #mayMerge = true;

  /** Takes over the connection. Nobody sees anything servable before `publish`. */
  constructor(db: Sqlite, options: OpenIndexOptions) {
    this.#db = db;
    this.#directory = options.directory;
    this.#header = options.header;
    this.#clock = options.clock;
    this.incarnation = options.incarnation;
    this.#counts = options.counts;
    this.#isUnchecked = options.isUnchecked;
    this.#checkpoints = options.writeBack && new Checkpoints(db, options.writeBack);
    makeObjectDirectories(options.directory);
    this.#sweep = new ObjectSweep(options.directory, this.run);
    this.clears = new Clears(db, this.#guard, options.header.clearNo);
    this.departures = new Departures(db);
    this.entries = new Entries(db, this.departures);
    this.#keys =
      options.keys &&
      new PresentKeys(options.keys, db, {
        entriesCount: () => this.entries.count,
        makeDurable: () => this.#commit("full", () => touchState(db)),
      });
    this.suspectTo = readState(db).suspect_to;
    const { oldest, newest } = this.entries.span() ?? {
      oldest: options.header.lastId + 1,
      newest: 0,
    };
    this.bits = EntryBits.allocate(oldest);
    this.fresh = EntryBits.allocate(oldest);
    this.#setStored();
    const { entries, clears, bits, fresh } = this;
    const { header } = options;
    this.#writes = new Writes({ entries, clears, bits, fresh, keys: this.#keys, header });
    this.#showAllBytes();
    this.#eviction = new Eviction({
      ...options,
      entries,
      commit: (action) => this.#commit("normal", action),
    });
    this.#shrinking = new Shrinking(db, options.lacking ?? (() => 0));
    this.#deletions = new Deletions({
      entries,
      clears,
      bits,
      clock: options.clock,
      header,
      commit: (action) => this.#commit("normal", action),
      forget: (removed) => this.#unset(removed),
      unlink: (object) => unlinkObject(this.#directory, object),
    });
    this.#softenings = new Softenings({
      entries,
      clears,
      fresh,
      clock: options.clock,
      header,
      commit: (action) => this.#commit("normal", action),
    });
    this.#goOnClearing();
    options.header.lastId = Math.max(options.header.lastId, newest);
  }

  /**
   * Whether the text index is unchecked. Until it is checked, a clear has it checked before it believes its
   * answers.
   */
  get isUnchecked(): boolean {
    return this.#isUnchecked;
  }
  noteChecked(): void {
    this.#isUnchecked = false;
  }

  publish(): void {
    const { newest } = this.clears;
    // A file that was made anew counts all before it as cleared: nobody shares a fetch of then.
    if (newest > this.#header.clearNo) this.#header.noteClear(newest, null);
    this.#header.incarnation = this.incarnation;
  }

  /** Whether the ids that this batch may need still fit under the bits. */
  hasRoomFor(writes: number): boolean {
    return this.#header.lastId + writes < this.bits.baseId + idSpanMax;
  }

  /** Carries out writes, in one transaction for all. Throws where it fails; then nothing of it happened. Outcomes stand at the places of their commits, null elsewhere. */
  write(writes: readonly Write[]): (CommitOutcome | null)[] {
    const effects: Effect[] = [];
    const turn = { on: new Set<number>(), off: new Set<number>() };
    const nowS = this.#clock.nowS();
    const invalidates = writes.some(({ kind }) => kind === "invalidate");
    const outcomes = this.#commit(invalidates ? "full" : "normal", () =>
      writes.map((write): CommitOutcome | null => {
        const { outcome, effect } = this.#writes.decide(write, turn, nowS);
        if (effect === undefined) return outcome;
        effects.push(effect);
        return outcome;
      }),
    );
    for (const effect of effects) this.#show(effect);
    if (effects.length > 0) this.#mayMerge = true;
    for (const write of writes)
      if (write.kind === "invalidate") this.#header.noteInvalidation(this.clears.newest, write.key);
    this.#counts.blocked += outcomes.filter((outcome) => outcome?.kind === "blocked").length;
    return outcomes;
  }

  /** Numbers the clear; from its return on the guard knows it, and so does every fetch that starts. */
  record(request: ClearRequest, nowS = this.#clock.nowS()): number {
    const clearNo = this.clears.record(request, nowS);
    this.#header.noteClear(clearNo, request.domain);
    return clearNo;
  }

  /** Returns the servable ids in scope, ascending; with `found` only those that the matcher found, whoever else has some among them. */
  servableIds(scope: Scope, found?: IdBits): Float64Array {
    const servable = new IdSet(this.bits.snapshot());
    const ids = (found === undefined ? servable : servable.intersect(new IdSet(found))).ascending();
    return this.#sites.among(ids, scope);
  }

  /** Makes entries unservable at once. Returns those that had been servable, ascending. */
  hideAll(ids: Float64Array): Float64Array {
    return this.bits.take(ids);
  }

  /** Makes entries stale at once, for a clear that was given then. Returns those that had been fresh, ascending. */
  soften(ids: Float64Array, sinceS: number): Float64Array {
    this.#softenings.announce(sinceS);
    return this.fresh.take(ids);
  }

  /** Applies a clear: durable when it returns. Deletion follows in steps; of a soft one, that its entries are noted as stale. */
  apply(clearNo: number, seq: number, applied: Applied): void {
    const { ids, matched = ids.length, widened, invisibleMs, softSinceS } = applied;
    this.clears.apply(clearNo, seq, { ids: encodeIdRuns(ids), matched, widened, invisibleMs });
    if (softSinceS === undefined) this.#deletions.add(clearNo, ids);
    else this.#softenings.add(clearNo, ids, softSinceS);
  }

  /** Resolves when everything that the clear hit is deleted, or noted as stale; undefined if none of it is left to be. */
  gone(clearNo: number): Promise<ClearGone> | undefined {
    return this.#deletions.gone(clearNo) ?? this.#softenings.gone(clearNo);
  }

  /** See SharedHeader. */
  get softSinceS(): number {
    return this.#header.softSinceS;
  }

  get unfinishedClears(): number {
    return this.#deletions.count + this.#softenings.count;
  }

  /** One bounded piece of background work; false when there is none, or it waits for a checkpoint. `isClearing`: a clear waits for it. Throws as SQLite does. */
  step(isClearing = false): boolean {
    const isPressed = this.#shrinking.press();
    if (this.#checkpoints?.mustWait(isPressed) === true) return false;
    const { staleKeys } = this.entries;
    if (staleKeys.isFull) this.#stepKeys();
    else if (this.#softenings.count > 0) this.#softenings.step();
    else if (this.#deletions.count > 0) this.#deletions.step(isClearing);
    else if (this.#eviction.isDue) this.#evict();
    else if (isPressed && this.#shrinking.step()) return true;
    else if (this.entries.isIndexing) this.#indexOlder();
    else return this.#stepRest();
    return true;
  }

  /** Does a piece of the work that can wait longest; returns whether there was any. */
  #stepRest(): boolean {
    const { staleKeys } = this.entries;
    this.#eviction.settle();
    if (this.#keys?.step() === true) return true;
    if (!staleKeys.isEmpty) this.#stepKeys();
    else if (!this.#sweep.done) this.#sweep.step((object) => this.entries.holdsObject(object));
    // Not while there is more to delete: merging would write again and again what is about to go.
    else if (this.#mayMerge)
      this.#mayMerge = this.#commit("normal", () => this.entries.mergeTexts());
    else return false;
    return true;
  }

  /** Bytes of the file that hold nothing. */
  get spareBytes(): number {
    return this.#shrinking.spareBytes;
  }

  noteEpoch(epoch: string | null): void {
    this.#commit("normal", () => noteEpoch(this.#db, epoch));
  }

  madeAnew(): ReturnType<typeof madeAnew> {
    return madeAnew(this.#db);
  }

  /** Marks the index clean, after `sync` of what it describes. */
  markClean(): void {
    markClean(this.#db);
  }

  /** Ends all deletions: the whole file is about to be deleted, and with it the rows that clears were still waiting for. */
  deleteAll(): void {
    this.#deletions.endAll();
    this.#softenings.endAll();
  }

  [Symbol.dispose](): void {
    this.#db.close();
    this.#guard[Symbol.dispose]();
    this.#deletions.rejectAll();
    this.#softenings.rejectAll();
  }

  /** All that is stored is servable, and fresh but for what soft clears have made stale. */
  #setStored(): void {
    for (const { site, ids } of this.entries.ofSites()) this.#setServable(ids, site);
    for (const id of this.entries.softened()) this.fresh.unset(id);
  }

  /** Hides again what applied clears hit, and goes on with what of them was not ended. */
  #goOnClearing(): void {
    for (const { clearNo, isSoft, atS, ids } of this.clears.unfinished()) {
      const hidden = isSoft ? this.fresh : this.bits;
      for (const id of ids) hidden.unset(id);
      if (isSoft) this.#softenings.add(clearNo, ids, atS);
      else this.#deletions.add(clearNo, ids);
    }
    this.#softenings.settle();
  }

  #show({ on, off, changed, confirmed }: Effect): void {
    if (on !== undefined) {
      this.#header.lastId = on.id;
      this.#setServable([on.id], on.site);
      this.#counts.stored++;
    }
    this.#forget(off);
    if (confirmed !== undefined) this.fresh.set([confirmed]);
    if (changed !== undefined) this.#header.moveKeyMark(keyPlace(changed));
  }

  #stepKeys(): void {
    this.entries.staleKeys.step((action) => this.#commit("normal", action));
  }

  #indexOlder(): void {
    const nowS = this.#clock.nowS();
    this.#forget(this.#commit("normal", () => this.entries.indexOlder(nowS)));
    this.#mayMerge = true;
  }

  #evict(): void {
    const removed = this.#eviction.step();
    this.#forget(removed);
    this.#counts.evicted += removed.length;
  }

  #commit<T>(sync: "full" | "normal", action: () => T): T {
    let committed = false;
    try {
      const result = commit(this.#db, sync, action);
      committed = true;
      if (sync === "full") this.clears.madeDurable();
      return result;
    } finally {
      this.#showBytes(this.entries.settle(committed));
      this.clears.settle(committed);
    }
  }

  /** Shows each domain's bytes. Those of the index before this one no longer count. */
  #showAllBytes(): void {
    this.#header.domains.forgetStored();
    this.#showBytes(Array.from(this.entries.byDomain(), ({ domain, bytes }) => [domain, bytes]));
  }

  #showBytes(changes: readonly (readonly [domain: string, bytes: number])[]): void {
    const { domains } = this.#header;
    for (const [domain, bytes] of changes) domains.addStored(domains.placeOf(domain), bytes);
    if (changes.length > 0) domains.holders = this.entries.domains;
    this.#header.storedBytes = this.entries.bytes;
  }

  #setServable(ids: readonly number[], site: Site): void {
    this.#sites.set(ids, site);
    this.fresh.set(ids);
    this.bits.set(ids);
  }

  #unset(removed: readonly Removed[]): void {
    for (const { id } of removed) {
      this.bits.unset(id);
      this.#sites.unset(id);
    }
    if (removed.length > 0) this.#mayMerge = true;
  }

  #forget(removed: readonly Removed[]): void {
    this.#unset(removed);
    for (const { object } of removed) if (object !== null) unlinkObject(this.#directory, object);
  }
}
