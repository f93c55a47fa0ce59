// Takes entries through their lanes: first the applier, then receipt and cursor in one transaction, then the
// second part of a clear.
//
// Two kinds of entries (`unfinished` in the ledger) outlive a restart and are applied again at the start: a
// clear whose `gone` was not recorded, and an import that a snapshot told of.

import { chainStart } from "../../core/journal/journal-chain.ts";
import { retry } from "../../base/wait.ts";
import {
  decodeEntry,
  enders,
  laneOf,
  type JournalEntry,
  type KnownEntry,
} from "../../wire/journal.ts";
import type { Receipt } from "../../wire/receipt.ts";
import {
  refusedReceipt,
  settleEntry,
  waitsForRoom,
  type Appliers,
  type Settled,
} from "./entry-outcome.ts";
import { Lanes, type Abandoned, type JobSignals, type Unfinished } from "./lanes.ts";
import type { Ledger } from "./ledger.ts";
import type { LinkTelemetry } from "./link-telemetry.ts";
import type { LinkTimings } from "./link-timings.ts";

export type EntryRunnerDeps = {
  readonly ledger: Ledger;
  readonly appliers: Appliers;
  readonly telemetry: LinkTelemetry;
  readonly timings: LinkTimings;
  readonly random: () => number;
  readonly now: () => Date;
  readonly stop: AbortSignal;
  /** Called when an entry is done and written down. */
  readonly onSettled: () => void;
  readonly onReceipt: () => void;
};

export class EntryRunner {
  readonly #deps: EntryRunnerDeps;
  #lanes: Lanes;
  readonly #shortOfRoom = new Set<number>();
  #closed = false;

  constructor(deps: EntryRunnerDeps) {
    this.#deps = deps;
    this.#lanes = this.#newLanes();
    this.#resume();
  }

  /** The number of entries that are taken and not done. */
  get size(): number {
    return this.#lanes.size;
  }

  /** Returns the first entry that is not done, in the order of the journal. */
  oldest(): Unfinished | undefined {
    return this.#lanes.oldest();
  }

  /** An object that is another one after each snapshot. */
  get generation(): object {
    return this.#lanes;
  }

  /** What waits for room on this host does not: what was in force before it is, and no clear is among it. */
  holdsBack(seq: number): boolean {
    return this.#lanes.holdsBack(seq, this.#shortOfRoom);
  }

  add(item: JournalEntry): void {
    const decoded = decodeEntry(item);
    if (decoded.ok) {
      const { entry, unread } = decoded;
      if (unread !== undefined) this.#deps.telemetry.unread(item, unread);
      this.#addJob(entry, async (signals) => {
        const settled = await this.#settle(entry, signals);
        if (settled !== "stopped") await this.#record(item, settled, signals.stop);
      });
      return;
    }
    const settled: Settled = { receipt: refusedReceipt(item.seq, decoded.reason) };
    this.#deps.telemetry.refused(item, decoded.reason);
    this.#lanes.add({
      seq: item.seq,
      kind: item.kind,
      lane: "refused",
      endedBy: [],
      run: async ({ stop }) => this.#record(item, settled, stop),
    });
  }

  async abandon(waitMs: number): Promise<Abandoned> {
    return this.#lanes.abandon(waitMs);
  }

  /** Starts again with new lanes after a snapshot was written down. */
  restart(): void {
    this.#lanes = this.#newLanes();
    this.#resume();
  }

  /** Stops the lanes; afterwards nothing is written any more, whatever still ends. */
  async close(waitMs: number): Promise<void> {
    await this.abandon(waitMs);
    this.#closed = true;
  }

  /**
   * Sends a receipt only when its entry has left the lanes, for the position beside it must not call the
   * entry unfinished.
   */
  #newLanes(): Lanes {
    const { onReceipt, onSettled, now } = this.#deps;
    const settled = (): void => {
      onReceipt();
      onSettled();
    };
    return new Lanes(settled, now);
  }

  #addJob(entry: KnownEntry, run: (signals: JobSignals) => Promise<void>): void {
    const { seq, kind } = entry;
    this.#lanes.add({ seq, kind, lane: laneOf(entry), endedBy: enders(kind), run });
  }

  #resume(): void {
    for (const kept of this.#deps.ledger.unfinished()) {
      const decoded = decodeEntry({ ...kept, chain: chainStart });
      if (!decoded.ok) continue;
      const { entry } = decoded;
      this.#addJob(entry, async (signals) => {
        const settled = await this.#settle(entry, signals);
        if (settled === "stopped") return;
        if (entry.kind !== "cache.clear") await this.#finish(settled.receipt, signals.stop);
        else if (settled.later !== undefined) void this.#awaitGone(settled.later);
        else if (settled.receipt.phase === "applied")
          await this.#release(settled.receipt.seq, signals.stop);
      });
    }
  }

  async #settle(entry: KnownEntry, signals: JobSignals): Promise<Settled | "stopped"> {
    const { appliers, random, timings, telemetry } = this.#deps;
    const settled = await settleEntry(entry, {
      appliers,
      signals,
      random,
      backoff: timings.backoff,
      onWait: (error) => {
        telemetry.waiting(entry, error);
        if (waitsForRoom(entry, error)) this.#shortOfRoom.add(entry.seq);
        else this.#shortOfRoom.delete(entry.seq);
        this.#deps.onSettled();
      },
      onLate: (error) => telemetry.late(entry, error),
    });
    this.#shortOfRoom.delete(entry.seq);
    if (settled !== "stopped") telemetry.settled(entry.kind, settled.receipt);
    return settled;
  }

  async #record(item: JournalEntry, settled: Settled, stop: AbortSignal): Promise<void> {
    const { seq, kind, at, body, chain } = item;
    const { receipt, later, onAmended } = settled;
    const unfinished = later === undefined ? undefined : { seq, kind, at, body };
    const isClear = kind === "cache.clear";
    await this.#write(stop, () =>
      this.#deps.ledger.commit({ seq, chain, receipt, unfinished, isClear }),
    );
    if (later !== undefined) void this.#awaitGone(later);
    const lanes = this.#lanes;
    onAmended?.((receipts) => void this.#amend(receipts, lanes));
  }

  /**
   * Writes both receipts of a clear anew: what it blocked is known only when the fetches that were under way
   * have ended. Never rejects.
   */
  async #amend(receipts: readonly Receipt[], lanes: Lanes): Promise<void> {
    const { ledger, telemetry, stop, onReceipt } = this.#deps;
    try {
      await this.#write(stop, () => {
        if (lanes !== this.#lanes) return; // After a snapshot the same seq may be another entry.
        ledger.amend(receipts);
        onReceipt();
      });
    } catch (error) {
      telemetry.defect(error);
    }
  }

  /** Waits until the bytes of a clear are gone. Never rejects. */
  async #awaitGone(later: Promise<Receipt | undefined>): Promise<void> {
    const { telemetry, stop } = this.#deps;
    const lanes = this.#lanes;
    try {
      const gone = await later;
      // After a snapshot the same seq may be another entry.
      if (gone === undefined || lanes !== this.#lanes) return;
      await this.#finish(gone, stop);
      telemetry.settled("cache.clear", gone);
    } catch (error) {
      telemetry.defect(error);
    }
  }

  async #finish(receipt: Receipt, stop: AbortSignal): Promise<void> {
    await this.#write(stop, () => {
      if (this.#deps.ledger.finish(receipt.seq, receipt)) this.#deps.onReceipt();
    });
  }

  /** Forgets an unfinished clear that had nothing left to delete when it was applied again. */
  async #release(seq: number, stop: AbortSignal): Promise<void> {
    await this.#write(stop, () => this.#deps.ledger.finish(seq, undefined));
  }

  /**
   * Writes until it succeeds or is stopped. It tries again after a failure such as a full disk, for the lane
   * must not go on without the record.
   */
  async #write(stop: AbortSignal, action: () => void): Promise<void> {
    const { random, timings, telemetry } = this.#deps;
    const attempt = async (): Promise<void> => {
      if (!this.#closed) action();
    };
    const onFailure = (error: unknown): boolean => {
      telemetry.unwritable(error);
      return true;
    };
    try {
      await retry(attempt, { stop, random, backoff: timings.backoff, onFailure });
      telemetry.written();
    } catch (error) {
      if (!stop.aborted) throw error;
    }
  }
}
