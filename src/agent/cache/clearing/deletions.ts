// Deleting what applied clears hit, in the background: one step of bounded time after the other, so that no fill waits long; in small pieces with rests, so
// that no visitor's worker waits for its core. A clear that is asked for ends the step; while clears are under way steps are brief.
//
// A clear of nearly everything begins by emptying the text index at once: `state.text_from` says that entries up to that id are on their way out and have
// no words any more. Their bits fell and their ids are durable before, so nothing that asks the text index would have wanted them.

import { AccelError } from "../../../core/faults.ts";
import type { IndexClock } from "../index/clock.ts";
import { departuresMax } from "../index/departures.ts";
import type { Entries, Removed } from "../index/entries.ts";
import type { EntryBits } from "../index/entry-bits.ts";
import type { SharedHeader } from "../index/shared-header.ts";
import type { ClearGone, Clears } from "./clears.ts";

/**
 * The most entries stored since a clear of everything for which their words are written again in the same
 * step, at 60 µs each.
 */
const survivorsMax = 100;
/** The text index is emptied at once only where that spares much. */
const manyIds = 2_000;
/**
 * The length of a step: some 4,000 rows. FTS5 notes deletions of a large segment in a hash over the row ids: 1,000 pages for half a million of them, nearly all of
 * which each step writes, however few its rows are. With 4,000 rows a step the same deletion writes a third of what it does with 1,000.
 */
const stepMs = 100;
/**
 * The length of a step while somebody waits for a clear, and so for the step; and beside visitors, whose
 * workers lack a core while a commit is written.
 */
const briefStepMs = 30;
/** The rows, or files, of one piece: some 0.3 ms. */
const piece = 32;

type Deletion = {
  readonly clearNo: number;
  readonly ids: Float64Array;
  at: number;
  removed: number;
  /** The files whose rows are gone. */
  readonly objects: string[];
  /** What came of it, once all rows are gone. */
  gone: ClearGone | undefined;
  readonly startedMs: number;
  readonly done: PromiseWithResolvers<ClearGone>;
};

export type DeletionsOptions = {
  readonly entries: Entries;
  readonly clears: Clears;
  readonly bits: EntryBits;
  readonly clock: IndexClock;
  readonly header: Pick<SharedHeader, "clearsAsked" | "lookups">;
  /** Runs in one transaction; throws as SQLite does, then nothing of it happened. */
  readonly commit: <T>(action: () => T) => T;
  /** Forgets what was deleted: its bits are next, then its files. */
  readonly forget: (removed: readonly Removed[]) => void;
  readonly unlink: (object: string) => void;
};

export class Deletions {
  readonly #options: DeletionsOptions;
  readonly #queue: Deletion[] = [];
  readonly #pace: RowPace;

  constructor(options: DeletionsOptions) {
    this.#options = options;
    this.#pace = new RowPace(options.clock, () => options.header.lookups);
  }

  get count(): number {
    return this.#queue.length;
  }

  /** Adds a deletion. The ids must ascend and be durable as those of the clear, and their bits must have fallen. */
  add(clearNo: number, ids: Float64Array): void {
    const done = Promise.withResolvers<ClearGone>();
    done.promise.catch(() => undefined); // Nobody needs to be waiting.
    const startedMs = this.#options.clock.elapsedMs();
    if (this.#queue.length === 0) this.#pace.begin();
    const begun = { at: 0, removed: 0, objects: [], gone: undefined };
    this.#queue.push({ clearNo, ids, ...begun, startedMs, done });
  }

  /** Resolves when everything that the clear hit is deleted; undefined if no deletion of it is under way. */
  gone(clearNo: number): Promise<ClearGone> | undefined {
    return this.#queue.find((deletion) => deletion.clearNo === clearNo)?.done.promise;
  }

  /** Does one step. `isBrief`: somebody waits for a clear. */
  step(isBrief: boolean): void {
    const deletion = this.#queue[0];
    if (deletion === undefined) return;
    const isFirst = deletion.at === 0 && deletion.ids.length >= manyIds;
    if (isFirst) this.#emptyTexts(deletion);
    const mayGoOn = this.#stepTime(isBrief);
    if (deletion.gone === undefined && deletion.objects.length === 0)
      this.#remove(deletion, mayGoOn);
    this.#unlink(deletion, mayGoOn);
    if (deletion.gone === undefined || deletion.objects.length > 0) return;
    this.#queue.shift();
    deletion.done.resolve(deletion.gone);
  }

  /** Whether the step that begins now may go on to another piece. A brief one is not ended by more clears, so that clears without end do not stop it. */
  #stepTime(isBrief: boolean): () => boolean {
    const { clock, header } = this.#options;
    const endMs = clock.elapsedMs() + (isBrief || this.#pace.isVisited ? briefStepMs : stepMs);
    const asked = header.clearsAsked;
    return () => clock.elapsedMs() < endMs && (isBrief || header.clearsAsked === asked);
  }

  /** The whole file is about to be deleted, and so is everything that was waited for. */
  endAll(): void {
    for (const { done, ids, startedMs } of this.#queue) {
      const goneMs = this.#options.clock.elapsedMs() - startedMs;
      // There is nothing left of the file.
      done.resolve({ removed: ids.length, blockedInFlight: 0, goneMs, verified: true, left: 0 });
    }
  }

  rejectAll(): void {
    for (const { done } of this.#queue)
      done.reject(
        new AccelError("INDEX_BROKEN", "the cache index was closed before the deletion ended"),
      );
  }

  #emptyTexts({ ids }: Deletion): void {
    const { entries, bits, commit } = this.#options;
    const last = ids.at(-1) ?? 0;
    // Whatever is up to there and hidden is on its way out, by this clear or by one behind it.
    if (bits.hasAnyUpTo(last)) return;
    commit(() => entries.emptyTexts(last, survivorsMax));
  }

  #remove(deletion: Deletion, mayGoOn: () => boolean): void {
    const { clears, clock, commit, forget } = this.#options;
    const { removed, taken, gone } = commit(() => {
      const { removed, taken } = this.#removePieces(deletion, mayGoOn);
      const count = deletion.removed + removed.length;
      const goneMs = clock.elapsedMs() - deletion.startedMs;
      const isLast = deletion.at + taken === deletion.ids.length;
      const gone = isLast ? clears.finish(deletion.clearNo, count, goneMs) : undefined;
      return { removed, taken, gone };
    });
    deletion.at += taken;
    deletion.removed += removed.length;
    deletion.gone = gone;
    forget(removed);
    for (const { object } of removed) if (object !== null) deletion.objects.push(object);
  }

  /** Removes at least one piece. */
  #removePieces(
    { clearNo, ids, at }: Deletion,
    mayGoOn: () => boolean,
  ): { removed: readonly Removed[]; taken: number } {
    const { entries, clock } = this.#options;
    // What would be overwritten by what follows is not remembered at all.
    const isRemembered = ids.length - at <= departuresMax;
    const cause = { reason: "cleared", clearNo, atS: clock.nowS() } as const;
    const removed: Removed[] = [];
    let next = at;
    do {
      const some = Array.from(ids.subarray(next, next + piece));
      removed.push(...entries.remove(some, isRemembered ? cause : undefined));
      next += some.length;
      this.#pace.did(some.length);
    } while (next < ids.length && mayGoOn());
    return { removed, taken: next - at };
  }

  /** Removes files. Those that are left are for the next step; after a crash they are swept. */
  #unlink({ objects }: Deletion, mayGoOn: () => boolean): void {
    while (objects.length > 0 && mayGoOn()) {
      const some = objects.splice(-piece);
      for (const object of some) this.#options.unlink(object);
      this.#pace.did(some.length);
    }
  }
}

// How fast deletion goes through its rows. A thread that computes for long holds the core that a visitor's worker wakes on for the slice that the scheduler gives
// it, some milliseconds; one that rests after each piece is in nobody's way for longer than a piece.
//
//   nobody visits   as fast as is promised; where the host is too busy for that there are no rests, and half a second that a checkpoint took is made up for
//   somebody does   a quarter as fast: what is being deleted is unservable already, and nobody waits for its room

/** Somewhat above the 40,000 rows a second that are promised for a host that has time for them. */
const rowsPerMsAlone = 44;
const rowsPerMsBesideVisitors = 10;
const behindMsMax = 500;
/** The same beside visitors: the time that a piece itself takes. */
const behindMsBesideVisitors = 5;
/** Shorter ones are saved up: a timer is no more exact. */
const restMsMin = 0.1;
/** Whether there are visitors is looked at so often. */
const lookMs = 100;

export class RowPace {
  readonly #clock: Pick<IndexClock, "elapsedMs" | "rest">;
  readonly #lookups: () => number;
  #dueMs = 0;
  #seen = { lookups: 0, atMs: 0, isVisited: false };

  /** `lookups` moves with each visitor. */
  constructor(clock: Pick<IndexClock, "elapsedMs" | "rest">, lookups: () => number) {
    this.#clock = clock;
    this.#lookups = lookups;
  }

  /** Whether visitors came, as of the last look. */
  get isVisited(): boolean {
    return this.#seen.isVisited;
  }

  /** Begins after a time without work: nothing is behind. */
  begin(): void {
    this.#dueMs = this.#clock.elapsedMs();
    this.#seen = { lookups: this.#lookups(), atMs: this.#dueMs, isVisited: false };
  }

  /** Notes that so many rows are done, and rests where they were not due yet. */
  did(rows: number): void {
    const { elapsedMs, rest } = this.#clock;
    const nowMs = elapsedMs();
    this.#look(nowMs);
    const { isVisited } = this;
    const rowsPerMs = isVisited ? rowsPerMsBesideVisitors : rowsPerMsAlone;
    const behindMs = isVisited ? behindMsBesideVisitors : behindMsMax;
    this.#dueMs = Math.max(this.#dueMs, nowMs - behindMs) + rows / rowsPerMs;
    const restMs = this.#dueMs - nowMs;
    if (restMs >= restMsMin) rest(restMs);
  }

  #look(nowMs: number): void {
    if (nowMs - this.#seen.atMs < lookMs) return;
    const lookups = this.#lookups();
    this.#seen = { lookups, atMs: nowMs, isVisited: lookups !== this.#seen.lookups };
  }
}
