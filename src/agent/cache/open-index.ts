// One opening of index.db: the file, the bits that workers see of it, and what is done to both. Everything here is synchronous; the order is always
// commit first, then bits, then files, so that no bit speaks of a row that a crash could take back.

import type { Sqlite } from "../../base/sqlite.ts";
import { AccelError } from "../../core/faults.ts";
import { Clears, type ClearGone, type ClearRequest } from "./clears.ts";
import { Entries, type Removed } from "./entries.ts";
import type { Candidate, CommitOutcome, EntryKey, Scope } from "./entry.ts";
import { Guard } from "./guard.ts";
import { decodeIdRuns, encodeIdRuns } from "./id-runs.ts";
import { commit, markClean } from "./index-file.ts";
import { makeObjectDirectories, newRun, ObjectSweep, unlinkObject } from "./object-files.ts";
import { idSpanMax, ServableBits } from "./servable-bits.ts";
import type { SharedHeader } from "./shared-header.ts";

/** Deleted per step: 5 ms of rows and 15 ms of files, so that fills never wait longer. */
const stepRows = 500;
/** Eviction makes room for more than the one response that was too many. */
const evictedShare = 0.05;

export type Write =
  | { readonly kind: "commit"; readonly candidate: Candidate }
  | { readonly kind: "invalidate"; readonly key: EntryKey }
  /** The object is missing or torn. */
  | { readonly kind: "lost"; readonly id: number }
  | { readonly kind: "used"; readonly ids: Float64Array };

type Deletion = {
  readonly clearNo: number;
  readonly ids: readonly number[];
  at: number;
  removed: number;
  readonly startedMs: number;
  readonly done: PromiseWithResolvers<ClearGone>;
};

/** Since the thread was started, over all openings. */
export type Counts = { stored: number; blocked: number; evicted: number };

/** `nowS`: wall clock, for the coarse time of last use; `elapsedMs`: monotonic. */
export type Clock = { readonly nowS: () => number; readonly elapsedMs: () => number };

export class OpenIndex implements Disposable {
  readonly incarnation: number;
  readonly run = newRun();
  readonly bits: ServableBits;
  readonly clears: Clears;
  readonly entries: Entries;
  readonly #counts: Counts;
  readonly #db: Sqlite;
  readonly #guard = new Guard();
  readonly #directory: string;
  readonly #header: SharedHeader;
  readonly #diskMax: number;
  readonly #clock: Clock;
  readonly #sweep: ObjectSweep;
  readonly #deletions: Deletion[] = [];
  #evictDownTo: number | undefined;

  /** Takes over the connection. Nobody sees anything servable before `publish`. */
  constructor(
    db: Sqlite,
    options: {
      directory: string;
      header: SharedHeader;
      diskMax: number;
      clock: Clock;
      incarnation: number;
      counts: Counts;
    },
  ) {
    this.#db = db;
    this.#directory = options.directory;
    this.#header = options.header;
    this.#diskMax = options.diskMax;
    this.#clock = options.clock;
    this.incarnation = options.incarnation;
    this.#counts = options.counts;
    makeObjectDirectories(options.directory);
    this.#sweep = new ObjectSweep(options.directory, this.run);
    this.clears = new Clears(db, this.#guard, options.header.clearNo);
    this.entries = new Entries(db);
    const ids = this.entries.idsInScope({ domain: null, host: null });
    this.bits = ServableBits.allocate(ids[0] ?? options.header.lastId + 1);
    for (const id of ids) this.bits.set(id);
    for (const { clearNo, ids: cleared } of this.clears.unfinished()) {
      for (const id of cleared) this.bits.unset(id);
      this.#delete(clearNo, cleared);
    }
    options.header.lastId = Math.max(options.header.lastId, ids.at(-1) ?? 0);
  }

  publish(): void {
    this.#header.clearNo = this.clears.newest;
    this.#header.incarnation = this.incarnation;
  }

  /** Whether the ids that this batch may need still fit under the bits. */
  hasRoomFor(writes: number): boolean {
    return this.#header.lastId + writes < this.bits.baseId + idSpanMax;
  }

  /** One transaction for all. Throws where it fails; then nothing of it happened. Outcomes stand at the places of their commits, null elsewhere. */
  write(writes: readonly Write[]): (CommitOutcome | null)[] {
    const effects: { on?: number; off: readonly Removed[] }[] = [];
    const nowS = this.#clock.nowS();
    const invalidates = writes.some(({ kind }) => kind === "invalidate");
    const outcomes = this.#commit(invalidates ? "full" : "normal", () =>
      writes.map((write): CommitOutcome | null => {
        if (write.kind === "used") this.entries.touch(write.ids, nowS);
        else if (write.kind === "lost") effects.push({ off: this.entries.remove([write.id]) });
        else if (write.kind === "invalidate") {
          this.clears.invalidate(write.key);
          effects.push({ off: this.entries.removeKey(write.key) });
        } else {
          const blocked = this.clears.blocks(write.candidate);
          // Refused for its age alone, what it would have replaced is as old: without it the next request asks the origin for all of it.
          if (blocked === "forgotten")
            effects.push({ off: this.entries.removeKey(write.candidate.key) });
          if (blocked !== false) return { kind: "blocked" };
          const { id, removed } = this.entries.put(write.candidate, nowS);
          effects.push({ on: id, off: removed });
          return { kind: "stored", id };
        }
        return null;
      }),
    );
    for (const { on, off } of effects) {
      if (on !== undefined) {
        this.#header.lastId = on;
        this.bits.set(on);
        this.#counts.stored++;
      }
      this.#forget(off);
    }
    this.#header.clearNo = this.clears.newest;
    this.#counts.blocked += outcomes.filter((outcome) => outcome?.kind === "blocked").length;
    return outcomes;
  }

  /** Numbers the clear; from its return on the guard knows it, and so does every fetch that starts. */
  record(request: ClearRequest): number {
    const clearNo = this.clears.record(request);
    this.#header.clearNo = clearNo;
    return clearNo;
  }

  /** Makes what the matcher found unservable at once: the ids that had been servable, ascending. */
  hide(runs: Uint8Array): number[] {
    return this.hideAll([...decodeIdRuns(runs)]);
  }

  hideScope(scope: Scope): number[] {
    return this.hideAll(this.entries.idsInScope(scope));
  }

  hideAll(ids: readonly number[]): number[] {
    const hidden = ids.filter((id) => this.bits.has(id));
    for (const id of hidden) this.bits.unset(id);
    return hidden;
  }

  /** Durable when it returns. Deletion follows in steps. */
  apply(
    clearNo: number,
    seq: number,
    {
      ids,
      widened,
      invisibleMs,
    }: { ids: readonly number[]; widened: boolean; invisibleMs: number },
  ): void {
    const row = { ids: encodeIdRuns(ids), matched: ids.length, widened, invisibleMs };
    this.clears.apply(clearNo, seq, row);
    this.#delete(clearNo, ids);
  }

  /** When everything that the clear hit is deleted; undefined where no deletion of it is under way. */
  gone(clearNo: number): Promise<ClearGone> | undefined {
    return this.#deletions.find((deletion) => deletion.clearNo === clearNo)?.done.promise;
  }

  get unfinishedClears(): number {
    return this.#deletions.length;
  }

  /** One bounded piece of background work; false when there is none. Throws as SQLite does. */
  step(): boolean {
    const deletion = this.#deletions[0];
    if (deletion !== undefined) this.#stepDeletion(deletion);
    else if (this.#isTooLarge()) this.#stepEviction();
    else if (!this.#sweep.done) this.#sweep.step((object) => this.entries.holdsObject(object));
    return this.#deletions.length > 0 || this.#isTooLarge() || !this.#sweep.done;
  }

  /** After `sync` of what it describes. */
  markClean(): void {
    markClean(this.#db);
  }

  /** The whole file is about to be deleted: so are the rows that clears were still waiting for. */
  deleteAll(): void {
    for (const { done, ids, startedMs } of this.#deletions) {
      const goneMs = this.#clock.elapsedMs() - startedMs;
      done.resolve({ removed: ids.length, blockedInFlight: 0, goneMs });
    }
  }

  [Symbol.dispose](): void {
    this.#db.close();
    this.#guard[Symbol.dispose]();
    for (const { done } of this.#deletions)
      done.reject(
        new AccelError("INDEX_BROKEN", "the cache index was closed before the deletion ended"),
      );
  }

  #delete(clearNo: number, ids: readonly number[]): void {
    const done = Promise.withResolvers<ClearGone>();
    done.promise.catch(() => undefined); // Nobody needs to be waiting.
    const startedMs = this.#clock.elapsedMs();
    this.#deletions.push({ clearNo, ids, at: 0, removed: 0, startedMs, done });
  }

  #stepDeletion(deletion: Deletion): void {
    const ids = deletion.ids.slice(deletion.at, deletion.at + stepRows);
    const isLast = deletion.at + ids.length === deletion.ids.length;
    const { removed, gone } = this.#commit("normal", () => {
      const removed = this.entries.remove(ids);
      const count = deletion.removed + removed.length;
      const goneMs = this.#clock.elapsedMs() - deletion.startedMs;
      return {
        removed,
        gone: isLast ? this.clears.finish(deletion.clearNo, count, goneMs) : undefined,
      };
    });
    this.#forget(removed);
    deletion.at += ids.length;
    deletion.removed += removed.length;
    if (gone === undefined) return;
    this.#deletions.shift();
    deletion.done.resolve(gone);
  }

  #isTooLarge(): boolean {
    return this.entries.bytes > (this.#evictDownTo ?? this.#diskMax);
  }

  /** By time of last use, which is coarse; down to a little below the limit. */
  #stepEviction(): void {
    this.#evictDownTo = this.#diskMax * (1 - evictedShare);
    const removed = this.#commit("normal", () =>
      this.entries.remove(this.entries.longestUnused(stepRows)),
    );
    this.#forget(removed);
    this.#counts.evicted += removed.length;
    if (!this.#isTooLarge()) this.#evictDownTo = undefined;
  }

  #commit<T>(sync: "full" | "normal", action: () => T): T {
    let committed = false;
    try {
      const result = commit(this.#db, sync, action);
      committed = true;
      return result;
    } finally {
      this.entries.settle(committed);
    }
  }

  #forget(removed: readonly Removed[]): void {
    for (const { id } of removed) this.bits.unset(id);
    for (const { object } of removed) if (object !== null) unlinkObject(this.#directory, object);
  }
}
