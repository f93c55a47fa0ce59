// Follows central's journal: takes items from channel and poll alike, hands them to the lanes, and starts
// again from a snapshot where our history is not central's.
//
//   received   in memory: the last item that was taken; at a start, the cursor
//   cursor     in agent.db: everything up to it is done
// What lies between is in the lanes or done; a crash loses only that memory, since central sends everything
// after the cursor again.

import { AccelError, codeOf } from "../../core/faults.ts";
import type { Backoff } from "../../core/backoff.ts";
import { retry } from "../../base/wait.ts";
import type { JournalItem, JournalPage, JournalEntry } from "../../wire/journal.ts";
import type { Position } from "../../wire/position.ts";
import type { Receipt } from "../../wire/receipt.ts";
import type { Snapshot } from "../../wire/snapshot.ts";
import type { Json } from "../../core/journal/canonical-json.ts";
import { bodyDigest, nextChain } from "../../core/journal/journal-chain.ts";
import type { JournalQuery } from "./central-client.ts";
import { EntryRunner, type EntryRunnerDeps } from "./entry-runner.ts";
import type { EntryReceipt, KeptEntry } from "./ledger.ts";
import { isBetweenUs, isNobodyThere } from "./refusal.ts";

/** The most entries that are taken and not done; no more are taken then. 2,000 of up to 16 KiB are 32 MiB. */
const pendingMax = 2_000;
const pendingLow = 1_000;

export type FollowerDeps = Omit<EntryRunnerDeps, "onSettled"> & {
  readonly instanceId: string;
  readonly central: {
    getJournal(query: JournalQuery, signal: AbortSignal): Promise<JournalPage>;
    getSnapshot(signal: AbortSignal): Promise<Snapshot>;
  };
  /**
   * Makes the whole state durable and in force; called again after a crash. What it returns goes into the
   * receipt.
   */
  readonly applySnapshot: (
    snapshot: Snapshot,
    stop: AbortSignal,
  ) => Promise<
    Readonly<Record<string, unknown>> & {
      readonly cleared: readonly string[];
      /** Receipts of single entries, sent beside the snapshot's own. */
      readonly entries?: readonly EntryReceipt[];
    }
  >;
  readonly onHeadApplied: () => void;
  /** Called when a request failed that no caller waits for; it is tried again. */
  readonly onFailure: (error: unknown) => void;
  /** Called when a snapshot is about to change our position: a channel must say hello again. */
  readonly onResync: () => void;
};

export class Follower {
  readonly #deps: FollowerDeps;
  readonly #runner: EntryRunner;
  #received: Mark;
  #headSeq: number;
  /** When central last told its head; undefined until it does since this start. */
  #headToldAt: Date | undefined;
  /** The head that is still to be applied before what is stored counts as confirmed. */
  #confirmSeq: number | undefined;
  /** Whether items came that could not be taken and are still to be fetched. */
  #missed = false;
  #resyncing: Promise<void> | undefined;
  #catchingUp: Promise<void> | undefined;
  #closed = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
    this.#received = deps.ledger.position;
    this.#headSeq = deps.ledger.position.seq;
    this.#runner = new EntryRunner({ ...deps, onSettled: () => this.#settled() });
    deps.telemetry.position(deps.ledger.position.seq, undefined);
  }

  get headSeq(): number {
    return this.#headSeq;
  }

  /** Central's head as told last, and when; undefined if it was not told since this start. */
  get headTold(): { readonly seq: number; readonly at: string } | undefined {
    if (this.#headToldAt === undefined) return undefined;
    return { seq: this.#headSeq, at: this.#headToldAt.toISOString() };
  }

  /** Returns where this agent stands now, as central is told. */
  position(): Position {
    const { epoch, seq, chain } = this.#deps.ledger.position;
    const oldest = this.#runner.oldest();
    return {
      epoch,
      applied_seq: seq,
      chain: chain as Position["chain"], // Written by our own ledger from a digest that was checked.
      oldest_unfinished:
        oldest === undefined ? null : { ...oldest, since: oldest.since.toISOString() },
    };
  }

  /**
   * Settles the history before each new contact. Resolves when there is a history to go on from, or when
   * stopped.
   */
  async settleHistory(): Promise<void> {
    await this.#resyncing;
    if (this.#deps.ledger.position.epoch === null) await this.#resync(undefined);
  }

  /**
   * Notes the head that a new contact told: `onHeadApplied` is called once everything up to it is applied.
   */
  confirmAt(headSeq: number): void {
    this.#noteHead(headSeq);
    this.#confirmSeq = headSeq;
    this.#advanced();
  }

  /** Takes items from the channel. What cannot be taken now is fetched later. */
  offer(items: readonly JournalItem[]): void {
    if (this.#resyncing !== undefined || this.#closed) return;
    const verdict = this.#take(items);
    if (verdict === "mismatch") void this.resync("the chain digest of an entry differs");
    else if (verdict !== "all") this.#fetchMissed();
  }

  /**
   * Fetches pages until the head is reached; callers at the same time share one run. Throws what the request
   * throws.
   */
  async catchUp(): Promise<void> {
    this.#catchingUp ??= this.#fetchAll().finally(() => {
      this.#catchingUp = undefined;
    });
    return this.#catchingUp;
  }

  /**
   * Fetches one page, long-polled for `waitMs`, and returns the head that it told. `not-asked`: nothing can
   * be asked now. Throws what the request throws.
   */
  async fetchPage(waitMs: number, stop: AbortSignal): Promise<number | "not-asked"> {
    await this.#resyncing;
    const { epoch } = this.#deps.ledger.position;
    if (epoch === null || stop.aborted || this.#closed) return "not-asked";
    if (this.#runner.size > pendingLow) {
      this.#missed = true;
      return "not-asked";
    }
    const { seq: after, chain } = this.#received;
    const { generation } = this.#runner;
    this.#missed = false;
    const page = await this.#deps.central.getJournal(
      { instanceId: this.#deps.instanceId, after, epoch, chain, waitMs },
      stop,
    );
    // A snapshot came between the question and its answer.
    if (this.#resyncing !== undefined || generation !== this.#runner.generation || this.#closed)
      return page.head_seq;
    if (page.resync || page.epoch !== epoch) {
      await this.resync(`central's journal has no position ${after} like ours`);
      return page.head_seq;
    }
    this.#noteHead(page.head_seq);
    const verdict = this.#take(page.entries);
    if (verdict === "full") this.#missed = true;
    if (verdict === "gap") await this.resync(`the journal does not continue after ${after}`);
    if (verdict === "mismatch") await this.resync("the chain digest of an entry differs");
    return page.head_seq;
  }

  /** Takes a snapshot, however often it has to be tried; ends early only when stopped. Never rejects. */
  async resync(reason: string): Promise<void> {
    return this.#resync(reason);
  }

  async #resync(reason: string | undefined): Promise<void> {
    this.#resyncing ??= this.#startAnew(reason).finally(() => {
      this.#resyncing = undefined;
      this.#advanced();
    });
    return this.#resyncing;
  }

  /** Stops the entries and waits for them, at most `waitMs`. Afterwards nothing is written any more. */
  async close(waitMs: number): Promise<void> {
    this.#closed = true;
    await this.#runner.close(waitMs);
  }

  async #fetchAll(): Promise<void> {
    for (;;) {
      const before = this.#received.seq;
      const head = await this.fetchPage(0, this.#deps.stop);
      if (head === "not-asked" || this.#closed) return;
      const grows = this.#received.seq > before && this.#received.seq < this.#headSeq;
      if (!grows && !this.#missed) return;
    }
  }

  #take(items: readonly JournalItem[]): IntakePlan["verdict"] {
    const { ledger, onReceipt } = this.#deps;
    const plan = planIntake(this.#received, items, pendingMax - this.#runner.size);
    for (const step of plan.steps) {
      // `#received` moves step by step, so that what was handed to the lanes is not taken again when a write
      // fails in between.
      if (step.kind === "skip") {
        ledger.skip(step.fromSeq, step.toSeq, step.chain);
        this.#received = { seq: step.toSeq, chain: step.chain };
      } else {
        this.#received = { seq: step.entry.seq, chain: step.entry.chain };
        if (!ledger.isDone(step.entry.seq)) this.#runner.add(step.entry);
      }
    }
    if (items.length > 0) this.#noteHead(this.#received.seq);
    if (plan.steps.length > 0) onReceipt();
    this.#advanced();
    return plan.verdict;
  }

  #noteHead(seq: number): void {
    this.#headSeq = Math.max(this.#headSeq, seq);
    this.#headToldAt = this.#deps.now();
  }

  #settled(): void {
    this.#advanced();
    if (this.#missed && this.#runner.size <= pendingLow && !this.#closed) this.#fetchMissed();
  }

  #fetchMissed(): void {
    this.#missed = true;
    void this.catchUp().catch((error: unknown) => this.#deps.onFailure(error));
  }

  #advanced(): void {
    const { ledger, telemetry, onHeadApplied } = this.#deps;
    telemetry.position(ledger.position.seq, this.headTold?.seq);
    const target = this.#confirmSeq;
    if (target === undefined || this.#resyncing !== undefined || this.#closed) return;
    if (this.#received.seq < target || this.#runner.holdsBack(target)) return;
    this.#confirmSeq = undefined;
    onHeadApplied();
  }

  async #startAnew(reason: string | undefined): Promise<void> {
    const { stop, random, timings, telemetry, onResync, onFailure } = this.#deps;
    telemetry.resync(reason);
    onResync();
    const again = (error: unknown): boolean => {
      if (isBetweenUs(error) || codeOf(error) === "SITE_DELETED") onFailure(error);
      else telemetry.snapshotFailed(error);
      return true;
    };
    try {
      const attempt = async (): Promise<void> => this.#takeSnapshot();
      const backoff = (error: unknown): Backoff =>
        isNobodyThere(error) ? timings.refused : timings.backoff;
      await retry(attempt, { stop, random, backoff, onFailure: again });
      telemetry.snapshotTaken(this.#received.seq);
    } catch (error) {
      if (!stop.aborted) telemetry.defect(error);
    }
  }

  async #takeSnapshot(): Promise<void> {
    const { ledger, central, applySnapshot, stop, timings, onReceipt } = this.#deps;
    if ((await this.#runner.abandon(timings.abandonMs)) === "still-running")
      throw new AccelError("INTERNAL", "entries under way did not stop for the snapshot");
    const beganMs = performance.now();
    const snapshot = await central.getSnapshot(stop);
    const { epoch, seq, chain } = snapshot;
    const { entries = [], ...outcome } = await applySnapshot(snapshot, stop);
    stop.throwIfAborted();
    const receipt: Receipt = {
      seq,
      phase: "applied",
      detail: { snapshot: true, ...outcome },
      took_ms: Math.round(performance.now() - beganMs),
    };
    // Entries count from 1: a snapshot at 0 has no entry to receipt.
    const proof = seq === 0 ? undefined : receipt;
    const imports = importsOf(snapshot);
    ledger.restart({ epoch, seq, chain, receipt: proof, entries, imports });
    this.#received = { seq, chain };
    this.#headSeq = seq;
    this.#noteHead(seq);
    this.#runner.restart();
    onReceipt();
  }
}

function importsOf({ imports }: Snapshot): readonly KeptEntry[] {
  return imports.map(({ seq, import_id, domain }) => ({
    seq,
    kind: "viewset.import",
    at: "",
    body: { import_id, domain },
  }));
}

// Decides what to do with items of the journal, from whichever path they came; pure. Channel and poll may
// bring the same item twice; each is taken once, in order, if its digest continues ours.

/** The last item that was taken and the chain digest there. */
type Mark = { readonly seq: number; readonly chain: string };

type IntakeStep =
  | {
      readonly kind: "skip";
      readonly fromSeq: number;
      readonly toSeq: number;
      readonly chain: string;
    }
  | { readonly kind: "entry"; readonly entry: JournalEntry };

export type IntakePlan = {
  readonly steps: readonly IntakeStep[];
  /**
   * Why it stopped. `gap`: items between ours and the next are missing. `mismatch`: the history is another.
   * `full`: there is no room for more now.
   */
  readonly verdict: "all" | "gap" | "mismatch" | "full";
};

/** Plans the steps for these items; at most `room` entries are taken. */
export function planIntake(
  received: Mark,
  items: readonly JournalItem[],
  room: number,
): IntakePlan {
  const steps: IntakeStep[] = [];
  let mark = received;
  let left = room;
  const end = (verdict: IntakePlan["verdict"]): IntakePlan => ({ steps, verdict });
  for (const item of items) {
    const [fromSeq, toSeq] =
      "superseded" in item ? [item.from_seq, item.to_seq] : [item.seq, item.seq];
    if (toSeq <= mark.seq) continue;
    if (fromSeq > mark.seq + 1) return end("gap");
    if ("superseded" in item) {
      // The digest of a superseded range cannot be computed without the bodies; that of the next entry is
      // computed from it.
      steps.push({ kind: "skip", fromSeq: mark.seq + 1, toSeq, chain: item.chain });
    } else {
      const { seq, kind, at, body } = item;
      // The body was parsed from JSON.
      const digest = bodyDigest(body as Json);
      if (nextChain(mark.chain, { seq, kind, at, bodyDigest: digest }) !== item.chain)
        return end("mismatch");
      if (left <= 0) return end("full");
      left -= 1;
      steps.push({ kind: "entry", entry: item });
    }
    mark = { seq: toSeq, chain: item.chain };
  }
  return end("all");
}
