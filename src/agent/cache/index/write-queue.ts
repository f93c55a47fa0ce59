// What workers send to the index: committed once per turn of the loop, in order of arrival; the pauses go to deletion, eviction and sweeping.

import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../../core/faults.ts";
import type { StoredBody } from "../entry.ts";
import type { IndexerToWorker, WorkerToIndexer } from "../messages.ts";
import type { IndexClock } from "./clock.ts";
import type { IndexKeeper } from "./index-keeper.ts";
import type { OpenIndex } from "./open-index.ts";
import { isDamage, isSqliteFull } from "./text-index.ts";
import type { Write } from "./writes.ts";

/** The most writes of a transaction: about 20 ms at worst, which is how long an answer may wait for those before it. Workers bound what they have in flight. */
const turnWritesMax = 200;
/** The most bytes of bodies in one turn: what SQLite writes out in those milliseconds. */
const turnBytesMax = 2_097_152;
/** Background work rests that long after the disk refused it. */
const restMs = 5_000;
/**
 * The time between steps of other work while clears are under way, so that clears without end do not keep it
 * from going on.
 */
const yieldMs = 100;

/** Responses, with all that is stored of them; the larger ones, whose bodies are files that workers write. */
type Kept = "responses" | "larger responses";
export type StoreTrouble = { readonly what: Kept; readonly reason: string };

/** A queued write. One without a number is not answered. */
type Queued = { readonly write: Write } & (
  | { readonly port: MessagePort; readonly no: number }
  | { readonly port: MessagePort | undefined; readonly no: undefined }
);

export type WriteQueueOptions = {
  readonly keeper: IndexKeeper;
  readonly clock: IndexClock;
  /** Whether somebody waits for a clear. */
  readonly isClearing: () => boolean;
  /** Told at each change: what cannot be stored and why; undefined when everything can again. */
  readonly onTrouble: (trouble: StoreTrouble | undefined) => void;
};

export class WriteQueue implements Disposable {
  readonly #options: WriteQueueOptions;
  readonly #ports = new Set<MessagePort>();
  #queue: Queued[] = [];
  #turn: NodeJS.Immediate | undefined;
  #rest: NodeJS.Timeout | undefined;
  #wake: NodeJS.Timeout | undefined;
  #steppedMs = 0;
  readonly #troubles = new Map<Kept, string>();
  #failed = 0;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** Commits that failed since the start. */
  get failed(): number {
    return this.#failed;
  }

  attach(port: MessagePort): void {
    this.#ports.add(port);
    port.once("close", () => this.#ports.delete(port));
    // Our own worker code is at the other end.
    port.on("message", (message: unknown) => this.#receive(port, message as WorkerToIndexer));
    const { index } = this.#options.keeper;
    if (index !== undefined) sendView(port, index);
  }

  /** Removes entries whose bodies were found to be missing or damaged, without anybody having asked for them. */
  lose(ids: readonly number[]): void {
    for (const id of ids)
      this.#queue.push({ port: undefined, no: undefined, write: { kind: "lost", id } });
    this.schedule();
  }

  onOpened(index: OpenIndex): void {
    for (const port of this.#ports) sendView(port, index);
    this.schedule();
  }

  /**
   * Schedules the next turn. Also called when background work has come up, and when an opening has failed.
   */
  schedule(): void {
    this.#turn ??= setImmediate(() => {
      this.#turn = undefined;
      this.#runTurn();
    });
  }

  [Symbol.dispose](): void {
    clearImmediate(this.#turn);
    clearTimeout(this.#rest);
    clearTimeout(this.#wake);
    for (const port of this.#ports) port.close();
  }

  #receive(port: MessagePort, message: WorkerToIndexer): void {
    const { keeper } = this.#options;
    const isCurrent = (incarnation: number): boolean => incarnation === keeper.index?.incarnation;
    if (message.kind === "unwritten") {
      this.#report("larger responses", message.reason);
      return;
    }
    if (message.kind === "damaged") {
      if (isCurrent(message.incarnation)) void keeper.drop(message.reason);
      return;
    }
    const queued: Queued =
      "no" in message
        ? { port, no: message.no, write: message }
        : { port, no: undefined, write: message };
    if ("incarnation" in message && !isCurrent(message.incarnation))
      this.#fail(queued, "the cache index was opened anew meanwhile");
    else {
      this.#queue.push(queued);
      this.schedule();
    }
  }

  #runTurn(): void {
    const { index } = this.#options.keeper;
    if (index === undefined) {
      this.#runClosed();
      return;
    }
    const batch = this.#queue.splice(0, this.#turnLength());
    if (batch.length > 0) this.#commit(index, batch);
    const hasMore = this.#options.keeper.index === index && this.#stepBackground(index);
    if (this.#queue.length > 0 || hasMore) this.schedule();
  }

  /** An invalidation waits for an opening that is under way, whose end brings the next turn. */
  #runClosed(): void {
    const { isOpening } = this.#options.keeper;
    const queue = this.#queue;
    const waits = ({ write }: Queued): boolean => isOpening && write.kind === "invalidate";
    this.#queue = queue.filter(waits);
    this.#failClosed(
      queue.filter((queued) => !waits(queued)),
      "the cache index is closed",
    );
  }

  /** No index is on its way. What is opened in the end may hold what an invalidation was about, so it must not be one of before. */
  #failClosed(batch: readonly Queued[], reason: string): void {
    const { keeper } = this.#options;
    if (batch.some(({ write }) => write.kind === "invalidate")) keeper.numberWhileClosed();
    for (const queued of batch) this.#fail(queued, reason);
  }

  /** Returns the length of the turn: at least one write, if there is any. */
  #turnLength(): number {
    let bytes = 0;
    const end = this.#queue.findIndex(({ write }, at) => {
      bytes += inlineBytes(write);
      return at === turnWritesMax || (at > 0 && bytes > turnBytesMax);
    });
    return end < 0 ? this.#queue.length : end;
  }

  #commit(index: OpenIndex, batch: readonly Queued[]): void {
    try {
      if (!index.hasRoomFor(batch.length)) throw new RangeError("the index has used up its ids");
      const outcomes = index.write(batch.map(({ write }) => write));
      this.#report("responses", undefined);
      if (batch.some(({ write }) => bodyOf(write)?.kind === "file"))
        this.#report("larger responses", undefined);
      batch.forEach((queued, at) => {
        const outcome = outcomes[at];
        if (queued.no === undefined) return;
        const { port, no, write } = queued;
        if (write.kind === "invalidate") send(port, { kind: "invalidated", no, fault: undefined });
        else if (outcome !== null && outcome !== undefined)
          send(port, { kind: "committed", no, outcome });
      });
    } catch (error) {
      this.#onCommitFailed(batch, error);
    }
  }

  /** An invalidation that cannot be made durable leaves nothing that could be served in spite of it. */
  #onCommitFailed(batch: readonly Queued[], error: unknown): void {
    const reason = messageOf(error);
    const invalidations = batch.filter(({ write }) => write.kind === "invalidate");
    for (const queued of batch) if (queued.write.kind !== "invalidate") this.#fail(queued, reason);
    if (invalidations.length > 0 || isDamage(error) || error instanceof RangeError)
      void this.#dropInstead(invalidations, reason);
    else this.#report("responses", reason);
  }

  async #dropInstead(invalidations: readonly Queued[], reason: string): Promise<void> {
    const { keeper } = this.#options;
    await keeper.drop(reason);
    if (keeper.index === undefined) this.#failClosed(invalidations, reason);
    else
      for (const one of invalidations)
        if (one.no !== undefined)
          send(one.port, { kind: "invalidated", no: one.no, fault: undefined });
  }

  #stepBackground(index: OpenIndex): boolean {
    if (this.#rest !== undefined || this.#yields()) return false;
    try {
      const hasMore = index.step(this.#options.isClearing());
      this.#steppedMs = this.#options.clock.elapsedMs();
      return hasMore;
    } catch (error) {
      // On a full disk nothing can be deleted row by row, for each step is written first: only the whole file gives its space back.
      if (isDamage(error) || isSqliteFull(error)) void this.#options.keeper.drop(messageOf(error));
      else this.#report("responses", messageOf(error));
      this.#rest = setTimeout(() => {
        this.#rest = undefined;
        this.schedule();
      }, restMs);
      return false;
    }
  }

  /** Returns whether background work yields to a clear: a step in its middle would delay who waits for it. */
  #yields(): boolean {
    const { isClearing, clock } = this.#options;
    const waitMs = this.#steppedMs + yieldMs - clock.elapsedMs();
    if (!isClearing() || waitMs <= 0) return false;
    this.#wake ??= setTimeout(() => {
      this.#wake = undefined;
      this.schedule();
    }, waitMs);
    return true;
  }

  #fail(queued: Queued, reason: string): void {
    if (queued.no === undefined) return;
    const { port, no, write } = queued;
    if (write.kind === "invalidate") send(port, { kind: "invalidated", no, fault: reason });
    else {
      this.#failed++;
      send(port, { kind: "committed", no, outcome: { kind: "failed", reason } });
    }
  }

  /** A small response that was stored says nothing of larger ones: a disk may be full for these alone. */
  #report(what: Kept, reason: string | undefined): void {
    const troubles = this.#troubles;
    if (reason === troubles.get(what)) return;
    if (reason === undefined) troubles.delete(what);
    else troubles.set(what, reason);
    const [trouble] = Array.from(troubles, ([each, why]) => ({ what: each, reason: why }));
    this.#options.onTrouble(trouble);
  }
}

function bodyOf(write: Write): StoredBody | null | undefined {
  if (write.kind === "commit") return write.candidate.body;
  return write.kind === "variant" ? write.body : undefined;
}

function inlineBytes(write: Write): number {
  const body = bodyOf(write);
  return body?.kind === "inline" ? body.bytes.length : 0;
}

function sendView(
  port: MessagePort,
  { incarnation, run, bits, fresh, suspectTo }: OpenIndex,
): void {
  const { buffer, baseId } = bits;
  const view = { incarnation, run, bits: buffer, fresh: fresh.buffer, baseId, suspectTo };
  send(port, { kind: "view", view });
}

function send(port: MessagePort, message: IndexerToWorker): void {
  port.postMessage(message);
}
