// Main's handle on one accelerator thread: asks it, and knows when it is gone. What is asked of a thread that dies is answered by its death.

import type { Transferable } from "node:worker_threads";
import { Ending } from "../../../base/ending.ts";
import { agentHeapMiB } from "../../../base/heap-limits.ts";
import type { MetricsData } from "../../../base/metrics.ts";
import { ThreadClient, threadPeer, type ThreadEntry } from "../../../base/thread-client.ts";
import { AccelError } from "../../../core/faults.ts";
import type { Probe, ProbeAnswer } from "../../../core/serving/plan-probes.ts";
import type { ServingState } from "../../../core/serving/serving-state.ts";
import { Heartbeat } from "./shared-words.ts";
import type { Staple } from "../../../core/serving/staple.ts";
import type { TicketKeys } from "../doors/ticket-keys.ts";
import { noVisitors, type VisitorSums } from "../records/visitor-sums.ts";
import type { LateVisitors, LentSockets } from "./visitor-sockets.ts";
import type { AcceleratorInit, BadBlob, FromWorker, ToWorker } from "./worker-messages.ts";

/** The workerData of a thread's root. */
export type WorkerBoot<Parts> = { readonly accelerator: AcceleratorInit; readonly parts: Parts };

/**
 * The time that a scrape waits for a worker. A worker that is busy longer is told with its last known
 * numbers.
 */
const metricsWaitMs = 1_000;

/** A thread that was told to end runs no line of ours after that. */
const endedWaitMs = 1_000;
/** How much longer than others writes are waited for when a successor serves: nobody else waits for them, and systemd gives a stop of both 45 s. */
export const partedWritesMs = 20_000;
/** A lane ends within some 5 s, whatever the disk does. */
const partWaitMs = 6_000;

export class WorkerHandle {
  readonly no: number;
  readonly heartbeat = new Heartbeat();
  readonly startedMs = performance.now();
  readonly #thread: ThreadClient<ToWorker, FromWorker, FromWorker>;
  /** Resolves with the reason when the worker ended or was given up. */
  readonly #gone = new Ending<string>();
  /** Ends when the thread runs no line more. */
  readonly #ended = new Ending<void>();
  /** Ends when it begins no request any more. */
  readonly #quiet = new Ending<void>();
  readonly #dropping = new Set<{ readonly below: number; readonly done: () => void }>();
  #listens = false;
  #metrics: MetricsData = [];
  #sums = noVisitors;

  constructor(
    entry: ThreadEntry,
    init: Omit<AcceleratorInit, "heartbeat">,
    parts: { readonly data: unknown; readonly transfer: readonly Transferable[] },
    onBadBlob: (blob: BadBlob) => void,
  ) {
    this.no = init.no;
    const boot: WorkerBoot<unknown> = {
      accelerator: { ...init, heartbeat: this.heartbeat.buffer },
      parts: parts.data,
    };
    const start = threadPeer<ToWorker, FromWorker>(entry, {
      workerData: boot,
      transferList: parts.transfer,
      name: `accelerator-${init.no}`,
      heapMiB: agentHeapMiB.worker,
    });
    this.#thread = new ThreadClient({
      // What it drops and what it complains of counts from one that was given up, too.
      start: ({ heard, gone }) =>
        start({
          heard: (message) => {
            if (message.kind === "bad-blob") onBadBlob(message.blob);
            else if (message.kind === "dropped") this.#noteDropped(message.below);
            else if (message.kind === "quiet") this.#quiet.end();
            else heard(message);
          },
          gone: (death) => {
            gone(death);
            this.#ended.end();
          },
        }),
      restart: "never",
      onMessage: (message) => {
        if ("no" in message) this.#thread.answer(message.no, message);
      },
      onGone: ({ reason }) => {
        this.#quiet.end();
        this.#gone.end(reason);
      },
    });
    this.#thread.start();
  }

  /** Resolves with the reason when the thread has ended or was given up. */
  get gone(): Promise<string> {
    return this.#gone.promise;
  }

  get isGone(): boolean {
    return this.#gone.isOver;
  }

  /** Whether it takes visitors. */
  get serves(): boolean {
    return this.#listens && !this.isGone;
  }

  /** The last numbers that it gave. */
  get lastMetrics(): MetricsData {
    return this.#metrics;
  }

  get lastSums(): VisitorSums {
    return this.#sums;
  }

  /** Stages a state. Throws why the thread cannot; the state must not be flipped to then. False: the thread is gone. */
  async stage(state: ServingState): Promise<boolean> {
    return granted(await this.#ask((no) => ({ kind: "stage", no, state })));
  }

  /** Resolves when the thread runs no more; of one that a native call holds up, when it has long been told to end and can only return into its end. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Resolves when the thread reads nothing of these states any more. */
  async drop(below: number): Promise<void> {
    this.#thread.tell({ kind: "drop", below });
    const { promise, resolve: done } = Promise.withResolvers<void>();
    const waiting = { below, done };
    this.#dropping.add(waiting);
    await this.#ended.or(promise);
    this.#dropping.delete(waiting);
  }

  /** Lets it listen on sockets that it closes. Throws PORT_TAKEN or ADDRESS_UNUSABLE. False: the thread is gone, maybe without having closed them. */
  async listen(sockets: LentSockets): Promise<boolean> {
    this.#listens = granted(await this.#ask((no) => ({ kind: "listen", no, sockets })));
    return this.#listens;
  }

  /** Gives it the keys, which it looks at in each handshake. */
  takeTicketKeys(keys: TicketKeys): void {
    this.#thread.tell({ kind: "ticket-keys", keys });
  }

  takeStaples(staples: readonly Staple[]): void {
    this.#thread.tell({ kind: "staples", staples });
  }

  async metrics(): Promise<MetricsData> {
    const answer = await this.#ask((no) => ({ kind: "metrics", no }), metricsWaitMs);
    if (answer?.kind === "metrics") this.#metrics = answer.metrics;
    return this.#metrics;
  }

  /** The sums alone, which cost far less. */
  async sums(): Promise<VisitorSums> {
    const answer = await this.#ask((no) => ({ kind: "sums", no }), metricsWaitMs);
    if (answer?.kind === "sums") this.#sums = answer.sums;
    return this.#sums;
  }

  /** Undefined: the thread is gone, or took longer. */
  async probe(
    version: number,
    probes: readonly Probe[],
    waitMs: number,
  ): Promise<readonly ProbeAnswer[] | undefined> {
    const answer = await this.#ask((no) => ({ kind: "probe", no, version, probes }), waitMs);
    return answer?.kind === "probed" ? answer.answers : undefined;
  }

  /** Resolves when what is under way in it now has ended, at the latest after `graceMs`; it serves others all the same. */
  async finish(graceMs: number): Promise<void> {
    await this.#ask((no) => ({ kind: "finish", no, graceMs }), graceMs + endedWaitMs);
  }

  /** Has each answer be the last one of its connection from now on, where HTTP/1 carries it, or not any more. */
  slacken(isSlack: boolean): void {
    this.#thread.tell({ kind: "slacken", isSlack });
  }

  /** Has it end by itself within `graceMs`, or `partedWritesMs` later where a write is under way, with its records going to the successor. Resolves when it accepts no visitor any more and its lane has ended. */
  async part(graceMs: number): Promise<void> {
    const writesMs = partedWritesMs;
    await this.#ask((no) => ({ kind: "part", no, graceMs, writesMs }), partWaitMs);
  }

  /** Resolves when it begins no request any more, behind `part`. */
  get quiet(): Promise<void> {
    return this.#quiet.promise;
  }

  /** Resolves when it has ended, by force after `graceMs` and `waitMs` more. `late`: whom it serves besides. */
  async drain(graceMs: number, waitMs: number, late?: LateVisitors): Promise<void> {
    this.#thread.tell({ kind: "drain", graceMs, ...(late === undefined ? {} : { late }) });
    await this.end(graceMs + waitMs);
  }

  /** Resolves when it has ended, by force after `waitMs`. */
  async end(waitMs: number): Promise<void> {
    const force = setTimeout(() => this.abandon("did not end in time"), waitMs);
    await this.gone;
    clearTimeout(force);
  }

  /** Leaves the quorum at once; the thread ends when it can be ended, which a native call may hold up. */
  abandon(reason: string): void {
    this.#quiet.end();
    this.#gone.end(reason);
    setTimeout(() => this.#ended.end(), endedWaitMs).unref();
    this.#thread.end(reason).catch(() => {}); // Nothing is left to do about it.
  }

  #noteDropped(below: number): void {
    for (const waiting of this.#dropping) if (below >= waiting.below) waiting.done();
  }

  /** Undefined when the thread is gone or the time is over. */
  async #ask(message: (no: number) => ToWorker, waitMs?: number): Promise<FromWorker | undefined> {
    const asked = await this.#thread.ask(
      message,
      waitMs === undefined ? {} : { deadlineMs: waitMs },
    );
    return asked.kind === "answered" ? asked.answer : undefined;
  }
}

/** Throws why not. False: the thread is gone. */
function granted(answer: FromWorker | undefined): boolean {
  if (answer?.kind === "refused") throw new AccelError(answer.code, answer.message);
  return answer !== undefined;
}
