// Central's request logs as the main thread sees them: one thread takes batches in, one reads, and one counts, so
// that none waits for another.
//
// An append is answered "busy" while too much waits or the thread is being restarted; the agent keeps the
// batch and comes again. While the store fails (disk full, I/O), a write is tried every 10 s, so that its
// recovery is noticed even if nobody sends; of a database so is its failure.

import type { Log } from "../../base/log.ts";
import { Mutex } from "../../base/mutex.ts";
import { every } from "../../base/wait.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import type { AnalyticsPlace } from "./analytics.ts";
import type { AnalyticsAnswer, AnalyticsQuery } from "./analytics-view.ts";
import type { BrokenDay, ReadRequest } from "./log-archive.ts";
import type { CanarySeen } from "./log-day.ts";
import type { LogEngine } from "./log-engine.ts";
import { removeMarked } from "./log-files.ts";
import type { LossDays } from "./log-losses.ts";
import type { LogDatabaseWay, LogStats, RecordRequest, ShownPage } from "./log-messages.ts";
import type { SearchRequest, SearchStep } from "./log-search.ts";
import type { Retention } from "./log-store.ts";
import type { AppendOutcome, AppendRequest } from "./log-take.ts";
import { LogWorker } from "./log-worker.ts";

export type LogThreadOptions = {
  readonly entry: URL;
  /** The directory, which must exist. */
  readonly directory: string;
  /** Where numbers lie. Without it nothing is counted beside the days' files. */
  readonly analytics?: AnalyticsPlace;
  /** Where request logs are written, if not into the directory. */
  readonly database?: LogDatabaseWay;
  /** Ends the threads when it aborts, whatever they wait for. */
  readonly cut?: AbortSignal | undefined;
  readonly log: Log;
  /** Called with the path of each file that was broken and set aside. */
  readonly broken: (path: string) => void;
  /** Called with the reason why batches cannot be stored, and with undefined when they can again. */
  readonly failing?: (reason: string | undefined) => void;
  readonly retryIntervalMs?: number;
};

/** The most bytes that wait, of all agents together: a second or two of the thread's work. */
const waitingBytesMax = 64 * 2 ** 20;
const waitingMax = 256;
/** The most reads that wait, of all customers: a second or two of the reading thread's work. */
const readsWaitingMax = 256;
/** A day may have a million gaps, which take a second to add up. */
const lossesTimeoutMs = 60_000;
const retryIntervalDefaultMs = 10_000;
/** The most searches that wait: each may take the reading thread for a third of a second. */
const searchesWaitingMax = 32;
/** The most files that one read may find broken, one after the other. */
const brokenPerReadMax = 8;

export class LogThread implements LogEngine {
  readonly #options: LogThreadOptions;
  readonly #writer: LogWorker;
  readonly #reader: LogWorker;
  readonly #counter: LogWorker | undefined;
  readonly #ending = new AbortController();
  readonly #retrying: Promise<void>;
  /** Resolves when it is known whether the database answers. */
  readonly #looked: Promise<void>;
  #removing: Promise<void>;
  #waitingBytes = 0;
  readonly #searches = new Mutex();
  #searching = 0;
  /** When the last batch came that could not be stored. */
  #failedMs = 0;
  #failure: string | undefined;

  constructor(options: LogThreadOptions) {
    this.#options = options;
    const { analytics, database } = options;
    this.#writer = new LogWorker({ ...options, database, role: "write" });
    this.#reader = new LogWorker({ ...options, database, role: "read" });
    if (analytics !== undefined)
      this.#counter = new LogWorker({ ...options, database, role: "count", analytics });
    options.cut?.addEventListener("abort", () => void this.#cutOff(), { once: true });
    this.#removing = this.#remove();
    this.#retrying = every(
      options.retryIntervalMs ?? retryIntervalDefaultMs,
      async () => this.#retry(),
      { stop: this.#ending.signal, onError: (error) => this.#notice(error) },
    );
    // A database that cannot be used is told before anybody sends.
    this.#looked = this.isShared
      ? this.#retry().catch((error: unknown) => this.#notice(error))
      : Promise.resolve();
  }

  get isShared(): boolean {
    return this.#options.database !== undefined;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Whether no batch would be taken now. */
  get isBusy(): boolean {
    return (
      !this.#writer.isRunning ||
      this.#waitingBytes >= waitingBytesMax ||
      this.#writer.waiting >= waitingMax
    );
  }

  /** Why the last batch could not be stored; undefined if it was, or none came yet. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Appends a batch. Throws if the store failed (disk full, I/O); then nothing of the batch is committed. */
  async append(request: AppendRequest): Promise<AppendOutcome | { readonly kind: "busy" }> {
    if (this.isBusy) return { kind: "busy" };
    const bytes = request.body.byteLength;
    this.#waitingBytes += bytes;
    try {
      const outcome = await this.#writer.ask({ op: "append", request });
      if (outcome.kind === "committed") this.#isFailing(undefined);
      return outcome;
    } catch (error) {
      this.#failedMs = request.nowMs;
      this.#isFailing(messageOf(error));
      throw error;
    } finally {
      this.#waitingBytes -= bytes;
    }
  }

  /**
   * Reads a page. A file that is found broken is set aside, and the page is read from the others. Rejects
   * with LOGS_UNAVAILABLE while too many reads wait.
   */
  async read(request: ReadRequest): Promise<ShownPage> {
    if (this.#reader.waiting >= readsWaitingMax)
      throw new AccelError("LOGS_UNAVAILABLE", "too many reads of request logs wait");
    for (let left = brokenPerReadMax; ; left--) {
      const page: ShownPage | BrokenDay = await this.#reader.ask({ op: "read", request });
      if (page.kind === "page") return page;
      await this.#setAside(page, left);
    }
  }

  /**
   * Takes one step of a search. Steps of all searches take turns, so that a read waits for one at most. Rejects with
   * LOGS_UNAVAILABLE while too many searches wait.
   */
  async search(request: SearchRequest): Promise<SearchStep> {
    if (this.#searching >= searchesWaitingMax)
      throw new AccelError("LOGS_UNAVAILABLE", "too many searches of request logs wait");
    this.#searching++;
    try {
      return await this.#searches.run(async () => {
        for (let left = brokenPerReadMax; ; left--) {
          const step = await this.#reader.ask({ op: "search", request });
          if (step.kind !== "broken") return step;
          await this.#setAside(step, left);
        }
      });
    } finally {
      this.#searching--;
    }
  }

  /** Returns the JSON text of one record as the API shows it; undefined if there is none. */
  async record(request: RecordRequest): Promise<string | undefined> {
    for (let left = brokenPerReadMax; ; left--) {
      const found = await this.#reader.ask({ op: "record", request });
      if (found.kind === "record") return found.text;
      await this.#setAside(found, left);
    }
  }

  /**
   * Answers a question about numbers. A file that is found broken is set aside. Rejects with LOGS_UNAVAILABLE while too
   * many questions wait, or nothing is counted.
   */
  async numbers(query: AnalyticsQuery): Promise<AnalyticsAnswer> {
    const counter = this.#counting();
    if (counter.waiting >= readsWaitingMax)
      throw new AccelError("LOGS_UNAVAILABLE", "too many questions about numbers wait");
    for (let left = brokenPerReadMax; ; left--) {
      const answer: AnalyticsAnswer | BrokenDay = await counter.ask({ op: "numbers", query });
      if (answer.kind !== "broken") return answer;
      await this.#setAside(answer, left);
    }
  }

  /** Returns the bytes that numbers take. */
  async numbersBytes(timeoutMs: number): Promise<number> {
    return this.#counting().ask({ op: "numbersBytes" }, timeoutMs);
  }

  /**
   * Folds what was counted since into the numbers, piece by piece, and keeps those within their limits. Resolves
   * earlier if `stop` is aborted.
   */
  async fold(nowMs: number, stop?: AbortSignal): Promise<void> {
    const counter = this.#counting();
    await this.#looked;
    if (this.isShared && this.#failure !== undefined) return; // What is away cannot be folded, and loses nothing.
    for (let left = brokenPerReadMax; ;) {
      const step = await counter.ask({ op: "fold", nowMs });
      if (step.kind === "broken") await this.#setAside(step, left--);
      else if (!step.isMore || stop?.aborted === true) return;
    }
  }

  /** Returns when the newest canary of each deployment site was made and arrived. */
  async canaries(timeoutMs: number): Promise<readonly CanarySeen[]> {
    return this.#reader.ask({ op: "canaries" }, timeoutMs);
  }

  /** Returns what agents told as lost in the newest `days` days. It reads every gap of them. */
  async losses(days: number): Promise<LossDays> {
    return this.#reader.ask({ op: "losses", days }, lossesTimeoutMs);
  }

  /** Removes days, each after it was folded. Returns them; their room is free when this resolves. */
  async retain(retention: Retention, nowMs: number): Promise<readonly string[]> {
    const began = performance.now();
    const folded = await this.#folded(nowMs);
    const days = await this.#writer.ask({ op: "retain", retention, nowMs, folded });
    await this.#forget(days);
    this.#removing = this.#removing.then(async () => this.#remove());
    await this.#removing;
    if (days.length === 0) return days;
    const tookMs = Math.round(performance.now() - began);
    this.#options.log.info({ days, took_ms: tookMs }, "days of request logs removed");
    return days;
  }

  /** Returns the statistics. It throws if there is no answer in time, so it shows that both threads live. */
  async stats(timeoutMs: number): Promise<LogStats> {
    const [stats] = await Promise.all([
      this.#writer.ask({ op: "stats" }, timeoutMs),
      this.#reader.ask({ op: "forget", days: [] }, timeoutMs),
    ]);
    return stats;
  }

  async probe(timeoutMs: number): Promise<void> {
    // A thread that waits for the database answers nobody meanwhile, and each of its waits has an end.
    if (!this.isShared) await this.stats(timeoutMs);
  }

  /** Ends the threads after what was asked before is done. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#retrying;
    await this.#looked;
    await Promise.all(
      [this.#reader, this.#counter, this.#writer].map(async (one) => one?.[Symbol.asyncDispose]()),
    );
    await this.#removing;
  }

  /** A thread that waits for a database that is silent hears nothing. */
  async #cutOff(): Promise<void> {
    await Promise.all([this.#reader, this.#counter, this.#writer].map(async (one) => one?.end()));
  }

  /**
   * Returns the days that may go because they are folded; undefined where nothing is. While numbers cannot be written
   * (the disk is full), those that were folded before may go, which makes room.
   */
  async #folded(nowMs: number): Promise<readonly string[] | undefined> {
    if (this.#counter === undefined) return undefined;
    try {
      await this.fold(nowMs);
    } catch (error) {
      this.#options.log.error({ err: error }, "days of request logs stay until they are folded");
    }
    return this.#counter.ask({ op: "folded", nowMs });
  }

  #counting(): LogWorker {
    if (this.#counter === undefined)
      throw new AccelError("LOGS_UNAVAILABLE", "no numbers are kept here");
    return this.#counter;
  }

  /** Sets a day aside that a thread found broken. Throws DATABASE_BROKEN if there were too many. */
  async #setAside({ day, message }: BrokenDay, left: number): Promise<void> {
    if (left <= 0)
      throw new AccelError("DATABASE_BROKEN", `the request logs of ${day} cannot be read`);
    await this.#writer.ask({ op: "setAside", day, message });
    await this.#forget([day]);
  }

  async #forget(days: readonly string[]): Promise<void> {
    await this.#reader.ask({ op: "forget", days });
    await this.#counter?.ask({ op: "forget", days });
  }

  async #retry(): Promise<void> {
    // Of a database nobody else tells that it is away while no agent sends.
    if (this.#failure === undefined && !this.isShared) return;
    await this.#writer.ask({ op: "tryToWrite", nowMs: this.#failedMs });
    this.#isFailing(undefined);
  }

  /** What a file fails of is told when a batch cannot be stored. */
  #notice(error: unknown): void {
    if (this.isShared) this.#isFailing(messageOf(error));
  }

  #isFailing(reason: string | undefined): void {
    const { log, failing } = this.#options;
    if (this.#failure === reason || this.#ending.signal.aborted) return;
    this.#failure = reason;
    if (reason === undefined) log.info("request logs are stored again");
    else
      log.error({ reason }, "request logs cannot be stored; agents keep them and send them again");
    failing?.(reason);
  }

  /** Removes the files of removed days. What fails is tried again at the next removal or start. */
  async #remove(): Promise<void> {
    try {
      await removeMarked(this.#options.directory);
    } catch (error) {
      this.#options.log.error(
        { err: error },
        "a removed file of request logs could not be deleted",
      );
    }
  }
}
