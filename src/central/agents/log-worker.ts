// One of the two threads of request logs, seen from the main thread: asked by promises, started again when it dies.

import { Worker } from "node:worker_threads";
import { heapLimits } from "../../base/heap-limits.ts";
import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import type {
  LogAnswer,
  LogRequest,
  LogResult,
  LogResults,
  LogThreadInit,
  NumberedRequest,
} from "./log-messages.ts";

export type LogWorkerOptions = LogThreadInit & {
  readonly entry: URL;
  readonly log: Log;
  /** Told of each file that was broken and set aside. */
  readonly broken: (path: string) => void;
};

const restartPauseMs = 1_000;
const closeTimeoutMs = 10_000;

type Waiting = {
  readonly resolve: (result: LogResult) => void;
  readonly reject: (error: unknown) => void;
};

export class LogWorker implements AsyncDisposable {
  readonly #options: LogWorkerOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ending = new AbortController();
  #worker: Worker | undefined;
  #restarting = Promise.resolve();
  #lastNo = 0;

  constructor(options: LogWorkerOptions) {
    this.#options = options;
    this.#start();
  }

  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Requests not yet answered. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Rejects with SPOOL_FAILED when it cannot be done, or the thread ends before it is. */
  async ask<Op extends LogRequest["op"]>(
    request: Extract<LogRequest, { readonly op: Op }>,
  ): Promise<LogResults[Op]> {
    const worker = this.#worker;
    if (worker === undefined || this.#ending.signal.aborted)
      throw new AccelError("SPOOL_FAILED", `${this.#name} is not running`);
    const { promise, resolve, reject } = Promise.withResolvers<LogResult>();
    const no = ++this.#lastNo;
    this.#waiting.set(no, { resolve, reject });
    worker.postMessage({ ...request, no } satisfies NumberedRequest, []);
    // The thread answers each operation with its own result.
    return promise as Promise<LogResults[Op]>;
  }

  /** As `ask`, but rejects, too, when there is no answer in time. */
  async askWithin<Op extends LogRequest["op"]>(
    timeoutMs: number,
    request: Extract<LogRequest, { readonly op: Op }>,
  ): Promise<LogResults[Op]> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new AccelError("SPOOL_FAILED", `${this.#name} does not answer`)),
      timeoutMs,
    );
    try {
      return await Promise.race([this.ask(request), late.promise]);
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
    worker.postMessage({ op: "close", no: ++this.#lastNo } satisfies NumberedRequest, []);
    await ended.promise;
    clearTimeout(cut);
  }

  get #name(): string {
    return `the log thread (${this.#options.role})`;
  }

  #start(): void {
    const { entry, directory, role, log } = this.#options;
    const worker = new Worker(entry, {
      workerData: { directory, role } satisfies LogThreadInit,
      resourceLimits: heapLimits(512),
    });
    this.#worker = worker;
    let failure: unknown = new Error(`${this.#name} ended`);
    worker.on("message", (answer: LogAnswer) => this.#answered(answer));
    worker.on("error", (error) => {
      failure = error;
    });
    worker.once("exit", () => {
      this.#worker = undefined;
      for (const { reject } of this.#waiting.values())
        reject(new AccelError("SPOOL_FAILED", messageOf(failure)));
      this.#waiting.clear();
      if (this.#ending.signal.aborted) return;
      log.error({ err: failure, role }, "a log thread ended; it is started again");
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
    if (answer.ok) waiting.resolve(answer.result);
    else waiting.reject(new AccelError("SPOOL_FAILED", answer.message));
  }
}
