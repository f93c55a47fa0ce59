// Main's handle on one accelerator thread: asks it, and knows when it is gone. What is asked of a thread that dies is answered by its death.

import { Worker, type Transferable } from "node:worker_threads";
import { Ending } from "../../../base/ending.ts";
import { heapLimits } from "../../../base/heap-limits.ts";
import type { MetricsData } from "../../../base/metrics.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import type { Probe, ProbeAnswer } from "../../../core/serving/plan-probes.ts";
import type { ServingState } from "../../../core/serving/serving-state.ts";
import { Heartbeat } from "./shared-words.ts";
import type { TicketKeys } from "../doors/ticket-keys.ts";
import type { AcceleratorInit, BadBlob, FromWorker, ToWorker } from "./worker-messages.ts";

/** What a thread's root gets as workerData. */
export type WorkerBoot<Parts> = { readonly accelerator: AcceleratorInit; readonly parts: Parts };

/** Of one worker. Its heap holds compiled configuration and what is in flight; hot bodies lie outside of it. */
const heapMiB = 1_024;
/** For a scrape; a worker that is busy longer is told with its last known numbers. */
const metricsWaitMs = 1_000;

/** A thread that was told to end runs no line of ours after that. */
const endedWaitMs = 1_000;

export class WorkerHandle {
  readonly no: number;
  readonly heartbeat = new Heartbeat();
  readonly startedMs = performance.now();
  readonly #worker: Worker;
  readonly #waiting = new Set<(message: FromWorker) => void>();
  /** With the reason: it ended or was given up. */
  readonly #gone = new Ending<string>();
  /** It runs no line more. */
  readonly #ended = new Ending<void>();
  #listens = false;
  #metrics: MetricsData = [];
  #asked = 0;

  constructor(
    entry: URL,
    init: Omit<AcceleratorInit, "heartbeat">,
    parts: { readonly data: unknown; readonly transfer: readonly Transferable[] },
    onBadBlob: (blob: BadBlob) => void,
  ) {
    this.no = init.no;
    const boot: WorkerBoot<unknown> = {
      accelerator: { ...init, heartbeat: this.heartbeat.buffer },
      parts: parts.data,
    };
    this.#worker = new Worker(entry, {
      workerData: boot,
      transferList: [...parts.transfer],
      name: `accelerator-${init.no}`,
      resourceLimits: heapLimits(heapMiB),
      execArgv: [],
    });
    this.#worker.on("message", (message: FromWorker) => {
      if (message.kind === "bad-blob") onBadBlob(message.blob);
      for (const told of this.#waiting) told(message);
    });
    let failure = "";
    this.#worker.once("error", (error) => (failure = `: ${messageOf(error)}`));
    this.#worker.once("exit", (code) => {
      this.#gone.end(`ended with code ${code}${failure}`);
      this.#ended.end();
    });
  }

  /** Resolves with the reason when the thread has ended or was given up. */
  get gone(): Promise<string> {
    return this.#gone.promise;
  }

  get isGone(): boolean {
    return this.#gone.isOver;
  }

  /** Takes visitors. */
  get serves(): boolean {
    return this.#listens && !this.isGone;
  }

  /** The last numbers that it gave. */
  get lastMetrics(): MetricsData {
    return this.#metrics;
  }

  /** False: the thread is gone. */
  async stage(state: ServingState): Promise<boolean> {
    const staged = this.#next(
      (message) => message.kind === "staged" && message.version === state.version,
    );
    this.#tell({ kind: "stage", state });
    return (await staged) !== undefined;
  }

  /** Resolves when the thread runs no more; of one that a native call holds up, when it has long been told to end and can only return into its end. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Resolves when the thread reads nothing of these states any more. */
  async drop(below: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const told = (message: FromWorker): void => {
      if (message.kind === "dropped" && message.below >= below) resolve();
    };
    this.#waiting.add(told);
    this.#tell({ kind: "drop", below });
    await this.#ended.or(promise);
    this.#waiting.delete(told);
  }

  /** Throws PORT_TAKEN or ADDRESS_UNUSABLE. False: the thread is gone. */
  async listen(): Promise<boolean> {
    const answered = this.#next(({ kind }) => kind === "listening" || kind === "refused");
    this.#tell({ kind: "listen" });
    const answer = await answered;
    if (answer?.kind === "refused") throw new AccelError(answer.code, answer.message);
    this.#listens = answer !== undefined;
    return this.#listens;
  }

  /** It asks for them at each handshake. */
  takeTicketKeys(keys: TicketKeys): void {
    this.#tell({ kind: "ticket-keys", keys });
  }

  async metrics(): Promise<MetricsData> {
    const id = ++this.#asked;
    const answered = this.#next(
      (message) => message.kind === "metrics" && message.id === id,
      metricsWaitMs,
    );
    this.#tell({ kind: "metrics", id });
    const answer = await answered;
    if (answer?.kind === "metrics") this.#metrics = answer.metrics;
    return this.#metrics;
  }

  /** Undefined: the thread is gone, or took longer. */
  async probe(
    version: number,
    probes: readonly Probe[],
    waitMs: number,
  ): Promise<readonly ProbeAnswer[] | undefined> {
    const id = ++this.#asked;
    const answered = this.#next(
      (message) => message.kind === "probed" && message.id === id,
      waitMs,
    );
    this.#tell({ kind: "probe", id, version, probes });
    const answer = await answered;
    return answer?.kind === "probed" ? answer.answers : undefined;
  }

  /** Resolves when it has ended, by force after `graceMs` and `waitMs` more. */
  async drain(graceMs: number, waitMs: number): Promise<void> {
    this.#tell({ kind: "drain", graceMs });
    const force = setTimeout(() => this.abandon("did not end in time"), graceMs + waitMs);
    await this.gone;
    clearTimeout(force);
  }

  /** Leaves the quorum at once; the thread ends when it can be ended, which a native call may hold up. */
  abandon(reason: string): void {
    this.#gone.end(reason);
    setTimeout(() => this.#ended.end(), endedWaitMs).unref();
    this.#worker.terminate().catch(() => {}); // Nothing is left to do about it.
  }

  #tell(message: ToWorker): void {
    if (!this.isGone) this.#worker.postMessage(message, []);
  }

  /** The first message that fits; undefined when the thread is gone or the time is over. */
  async #next(
    fits: (message: FromWorker) => boolean,
    waitMs?: number,
  ): Promise<FromWorker | undefined> {
    const { promise, resolve } = Promise.withResolvers<FromWorker | undefined>();
    const told = (message: FromWorker): void => {
      if (fits(message)) resolve(message);
    };
    this.#waiting.add(told);
    const timer = waitMs === undefined ? undefined : setTimeout(() => resolve(undefined), waitMs);
    const answer = await this.#gone.or(promise);
    this.#waiting.delete(told);
    clearTimeout(timer);
    return typeof answer === "string" ? undefined : answer;
  }
}
