// Keeps one index open: opens it, drops what it holds when it can no longer be trusted, tries again while the disk refuses.
//
// Closed means: nothing is servable (incarnation 0), nothing is stored. That is the answer to every doubt, for a miss is never stale.

import { randomBytes } from "node:crypto";
import { kernelBootId } from "../../../base/boot-id.ts";
import { isDiskFault } from "../../../base/sqlite.ts";
import { messageOf } from "../../../core/faults.ts";
import type { WalLengths, WriteBack } from "./checkpoints.ts";
import type { IndexClock } from "./clock.ts";
import { openIndexFile } from "./index-file.ts";
import type { KeyPresence } from "./key-presence.ts";
import { OpenIndex, type Counts } from "./open-index.ts";
import type { IndexFacts } from "./opening.ts";
import type { SharedHeader } from "./shared-header.ts";

export type KeeperEvents = {
  /** A new index is open and published. `opening`: its name from now on, for whoever remembers it across restarts. */
  readonly opened: (index: OpenIndex, opening: string) => void;
  readonly dropped: (reason: string) => void;
  /** The disk refuses; tried again by `retryOpen`. */
  readonly failed: (reason: string) => void;
};

export type KeeperOptions = {
  readonly directory: string;
  readonly header: SharedHeader;
  /** Where workers look which keys have no entry; if undefined, nobody does. */
  readonly keys?: KeyPresence;
  readonly diskMax: number;
  /** See OpenIndexOptions. */
  readonly lacking?: () => number;
  readonly clock: IndexClock;
  readonly facts: IndexFacts;
  readonly events: KeeperEvents;
  /** Writes the WAL back beside this thread; if undefined, SQLite does it within commits. */
  readonly writeBack?: WriteBack;
};

export class IndexKeeper {
  readonly #options: KeeperOptions;
  readonly counts: Counts = { stored: 0, blocked: 0, evicted: 0 };
  #index: OpenIndex | undefined;
  /** An index that is opened must know all this, or start empty. */
  #facts: IndexFacts;
  /** Set when the file on disk must not be used again. */
  #makeAnew: string | undefined;
  #opening: Promise<void> | undefined;
  /** The checkpoint under way: while it runs no file takes the place of the one it works on. */
  #checkpointing: Promise<WalLengths | undefined> | undefined;
  #isClosed = false;
  /** Why the disk refused the last opening; undefined since one succeeded. */
  #refusal: string | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#facts = options.facts;
  }

  get index(): OpenIndex | undefined {
    return this.#index;
  }

  /** Says that there is no index, and why. */
  get closedText(): string {
    const why = this.#refusal === undefined ? "" : `: ${this.#refusal}`;
    return `the cache index is closed${why}`;
  }

  /** Notes a clear: from here on no index is used that does not know it. Within an epoch seqs ascend. */
  noteCursor(seq: number): void {
    if (seq > 0) this.#facts = { ...this.#facts, clearSeq: seq };
  }

  /** Whether an opening is under way: `opened` or `failed` tells its end. */
  get isOpening(): boolean {
    return this.#opening !== undefined;
  }

  /** The number that an index must know to be used, or it starts empty. */
  get demandedNo(): number {
    return this.#facts.clearNo;
  }

  /** Numbers a clear, or invalidations, for which there is no index: from here on none is used that was made before. */
  numberWhileClosed(): number {
    const { header } = this.#options;
    const clearNo = Math.max(header.clearNo, this.#facts.clearNo) + 1;
    header.noteClear(clearNo, null);
    this.#facts = { ...this.#facts, clearNo };
    return clearNo;
  }

  /** Notes central's store whose journal is followed from now on. */
  noteEpoch(epoch: string | null): void {
    if (this.#facts.epoch === epoch) return;
    // Seqs of another journal say nothing of this one; what the index missed of it was dropped with the snapshot.
    this.#facts = { ...this.#facts, epoch, clearSeq: 0 };
    this.#index?.noteEpoch(epoch);
  }

  /** Opens the index. Resolves when it is open, or when the disk has refused. Never rejects. */
  open(): Promise<void> {
    if (this.#index !== undefined || this.#isClosed) return Promise.resolve();
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** Drops the index: everything cached is unservable when it returns; a new index is on its way when it resolves, or the disk refuses. */
  drop(reason: string): Promise<void> {
    this.#options.header.incarnation = 0;
    this.#makeAnew = reason;
    const index = this.#index;
    this.#index = undefined;
    index?.deleteAll();
    index?.[Symbol.dispose]();
    return this.open();
  }

  /** Without `sync` for a process that opens it at once: whoever opens it in another boot distrusts the bodies. */
  async close(sync: ((directory: string) => Promise<boolean>) | undefined): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    await this.#checkpointing;
    const index = this.#index;
    this.#options.header.incarnation = 0;
    this.#index = undefined;
    if (index === undefined) return;
    // Bodies were left to the kernel to write; only when they are on disk may the next boot trust them.
    try {
      if (sync === undefined) index.markHandedOver();
      else if (await sync(this.#options.directory)) index.markClean();
    } finally {
      index[Symbol.dispose]();
    }
  }

  async #open(): Promise<void> {
    const { events } = this.#options;
    try {
      await this.#tryOpen().catch((error: unknown) => {
        // Whatever is not the disk's fault lies in the file: without it, it must work.
        if (this.#makeAnew !== undefined || isDiskFault(error)) throw error;
        this.#makeAnew = messageOf(error);
        return this.#tryOpen();
      });
    } catch (error) {
      this.#index = undefined;
      this.#refusal = messageOf(error);
      events.failed(this.#refusal);
    }
  }

  async #tryOpen(): Promise<void> {
    const { directory, header, keys, diskMax, lacking, clock, events } = this.#options;
    await this.#checkpointing;
    const { clearNo, lastId } = header;
    const opening = randomBytes(16).toString("hex");
    const place = { bootId: kernelBootId(), clearNo, lastId, nowS: clock.nowS() };
    const expected = { facts: this.#facts, opening, ...place };
    const { db, dropped, isUnchecked } = await openIndexFile(directory, expected, this.#makeAnew);
    try {
      const incarnation = header.nextIncarnation();
      const { counts } = this;
      const { writeBack: given } = this.#options;
      const run = given && (() => (this.#checkpointing = given.run()));
      const writeBack = run && { ...given, run };
      const opened = { directory, header, diskMax, clock, incarnation, counts, isUnchecked };
      this.#index = new OpenIndex(db, { ...opened, keys, lacking, writeBack });
    } catch (error) {
      db.close();
      throw error;
    }
    this.#makeAnew = undefined;
    this.#refusal = undefined;
    this.#facts = { ...this.#facts, opening, moved: undefined };
    if (dropped !== undefined) events.dropped(dropped);
    this.#index.publish();
    events.opened(this.#index, opening);
  }
}
