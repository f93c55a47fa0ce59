// The log thread seen from the main thread: bounded, restarted when it dies, asked for by promises.
//
// An append is answered "busy" while too much waits or the thread is being restarted: the agent keeps the batch and comes again.

import { Worker } from "node:worker_threads";
import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import type { LogAnswer, LogRequest, LogResults, LogStats, LogThreadInit } from "./log-messages.ts";
import type { AppendOutcome, AppendRequest, ReadRequest, Retention } from "./log-store.ts";

export type LogThreadOptions = {
  readonly entry: URL;
  /** Exists. */
  readonly directory: string;
  readonly log: Log;
  /** Told of each file that was broken and set aside. */
  readonly broken: (path: string) => void;
};

/** Of all agents together: a second or two of the thread's work. */
const waitingBytesMax = 64 * 2 ** 20;
const waitingMax = 256;
const restartPauseMs = 1_000;
const closeTimeoutMs = 10_000;

type Waiting = {
  readonly resolve: (result: LogResults[keyof LogResults]) => void;
  readonly reject: (error: unknown) => void;
  readonly bytes: number;
};

export class LogThread implements AsyncDisposable {
  readonly #options: LogThreadOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ending = new AbortController();
  #worker: Worker | undefined;
  #restarting = Promise.resolve();
  #lastNo = 0;
  #waitingBytes = 0;

  constructor(options: LogThreadOptions) {
    this.#options = options;
    this.#start();
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** No batch would be taken now. */
  get isBusy(): boolean {
    return (
      this.#worker === undefined ||
      this.#waitingBytes >= waitingBytesMax ||
      this.#waiting.size >= waitingMax
    );
  }

  /** Throws when the store failed (disk full, I/O): nothing of the batch is committed then. */
  async append(request: AppendRequest): Promise<AppendOutcome | { readonly kind: "busy" }> {
    if (this.isBusy) return { kind: "busy" };
    return this.#ask({ op: "append", no: this.#nextNo(), request }, request.body.byteLength);
  }

  /** One slice of a walk. */
  async read(request: ReadRequest): Promise<LogResults["read"]> {
    return this.#ask({ op: "read", no: this.#nextNo(), request });
  }

  async retain(retention: Retention, nowMs: number): Promise<LogResults["retain"]> {
    return this.#ask({ op: "retain", no: this.#nextNo(), retention, nowMs });
  }

  /** Also shows that the thread lives: throws when there is no answer in time. */
  async stats(timeoutMs: number): Promise<LogStats> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new AccelError("SPOOL_FAILED", "the log thread does not answer")),
      timeoutMs,
    );
    try {
      return await Promise.race([this.#ask({ op: "stats", no: this.#nextNo() }), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** What was asked before is done first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#restarting;
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = Promise.withResolvers<void>();
    worker.once("exit", () => ended.resolve());
    const cut = setTimeout(() => void worker.terminate(), closeTimeoutMs);
    worker.postMessage({ op: "close", no: this.#nextNo() } satisfies LogRequest, []);
    await ended.promise;
    clearTimeout(cut);
  }

  #nextNo(): number {
    return ++this.#lastNo;
  }

  async #ask<Op extends keyof LogResults>(
    request: LogRequest & { readonly op: Op },
    bytes = 0,
  ): Promise<LogResults[Op]> {
    const worker = this.#worker;
    if (worker === undefined || this.#ending.signal.aborted)
      throw new AccelError("SPOOL_FAILED", "the log thread is not running");
    const { promise, resolve, reject } = Promise.withResolvers<LogResults[keyof LogResults]>();
    this.#waiting.set(request.no, { resolve, reject, bytes });
    this.#waitingBytes += bytes;
    worker.postMessage(request, []);
    // The thread answers each operation with its own result.
    return promise as Promise<LogResults[Op]>;
  }

  #start(): void {
    const { entry, directory, log } = this.#options;
    const worker = new Worker(entry, {
      workerData: { directory } satisfies LogThreadInit,
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    this.#worker = worker;
    let failure: unknown = new Error("the log thread ended");
    worker.on("message", (answer: LogAnswer) => this.#answered(answer));
    worker.on("error", (error) => {
      failure = error;
    });
    worker.once("exit", () => {
      this.#worker = undefined;
      for (const { reject } of this.#waiting.values())
        reject(new AccelError("SPOOL_FAILED", messageOf(failure)));
      this.#waiting.clear();
      this.#waitingBytes = 0;
      if (this.#ending.signal.aborted) return;
      log.error({ err: failure }, "the log thread ended; it is started again");
      this.#restarting = this.#restart();
    });
  }

  async #restart(): Promise<void> {
    if (await sleep(restartPauseMs, this.#ending.signal)) this.#start();
  }

  #answered(answer: LogAnswer): void {
    if ("broken" in answer) {
      this.#options.log.error(
        { path: answer.broken, reason: answer.message },
        "a request-log file was broken and is set aside",
      );
      return this.#options.broken(answer.broken);
    }
    const waiting = this.#waiting.get(answer.no);
    if (waiting === undefined) return;
    this.#waiting.delete(answer.no);
    this.#waitingBytes -= waiting.bytes;
    if (answer.ok) waiting.resolve(answer.result);
    else waiting.reject(new AccelError("SPOOL_FAILED", answer.message));
  }
}
