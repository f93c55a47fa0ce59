// One of the threads of request logs, as the main thread sees it: asked by promises, restarted a second
// after it died.

import { ThreadClient, threadPeer, type CallOutcome } from "../../base/thread-client.ts";
import type { Log } from "../../base/log.ts";
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
  /** Called with the path of each file that was broken and set aside. */
  readonly broken: (path: string) => void;
};

const restartPauseMs = 1_000;
const closeTimeoutMs = 10_000;
const heapMiB = 512;

export class LogWorker implements AsyncDisposable {
  readonly #options: LogWorkerOptions;
  readonly #thread: ThreadClient<NumberedRequest, LogAnswer, LogResult>;

  constructor(options: LogWorkerOptions) {
    this.#options = options;
    const { entry, directory, database, role, log } = options;
    const shared = { directory, database };
    const init: LogThreadInit =
      role === "count" ? { ...shared, role, analytics: options.analytics } : { ...shared, role };
    this.#thread = new ThreadClient({
      start: threadPeer(entry, {
        name: `logs-${role}`,
        workerData: init,
        heapMiB,
      }),
      restart: { waitMs: () => restartPauseMs },
      onMessage: (answer) => this.#answered(answer),
      onGone: ({ reason, cause }) =>
        log.error(
          { err: cause ?? new Error(`${this.#name} ${reason}`), role },
          "a log thread ended; it is started again",
        ),
    });
    this.#thread.start();
  }

  get isRunning(): boolean {
    return this.#thread.isRunning;
  }

  /** The number of requests not yet answered. */
  get waiting(): number {
    return this.#thread.waiting;
  }

  /**
   * Asks the thread. Rejects with LOGS_UNAVAILABLE if it cannot be done, the thread ends before it is done,
   * or there is no answer within `deadlineMs`.
   */
  async ask<Op extends LogRequest["op"]>(
    request: Extract<LogRequest, { readonly op: Op }>,
    deadlineMs?: number,
  ): Promise<LogResults[Op]> {
    const numbered = (no: number): NumberedRequest => ({ ...request, no });
    const asked: CallOutcome<LogResult> = await this.#thread.ask(
      numbered,
      deadlineMs === undefined ? {} : { deadlineMs },
    );
    // The thread answers each operation with its own result.
    if (asked.kind === "answered") return asked.answer as LogResults[Op];
    throw new AccelError(
      "LOGS_UNAVAILABLE",
      asked.kind === "late"
        ? `${this.#name} does not answer`
        : asked.cause === undefined
          ? `${this.#name} ${asked.reason}`
          : messageOf(asked.cause),
    );
  }

  /** Ends the thread after what was asked before is done. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.close({ op: "close", no: 0 }, closeTimeoutMs);
  }

  /** Ends the thread in the midst of whatever it does; what was asked is not answered. */
  async end(): Promise<void> {
    await this.#thread.close();
  }

  get #name(): string {
    return `the log thread (${this.#options.role})`;
  }

  #answered(answer: LogAnswer): void {
    if ("broken" in answer) {
      this.#options.log.error(
        { path: answer.broken, reason: answer.message },
        "a request-log file was broken and is set aside",
      );
      this.#options.broken(answer.broken);
    } else if (answer.ok) this.#thread.answer(answer.no, answer.result);
    else this.#thread.fail(answer.no, new AccelError("LOGS_UNAVAILABLE", answer.message));
  }
}
