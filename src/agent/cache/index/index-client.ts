// The cache as main sees it: starts the index thread, replaces it when it dies, and asks it. While there is no thread nothing is servable.

import { join } from "node:path";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { agentHeapMiB } from "../../../base/heap-limits.ts";
import type { Instruments } from "../../../base/metrics.ts";
import { ThreadClient, threadPeer, type ThreadEntry } from "../../../base/thread-client.ts";
import { backoffMs } from "../../../core/backoff.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import { CacheMetrics } from "../cache-metrics.ts";
import { DiskRoom, giveShare } from "./disk-room.ts";
import { ClearOrders, type ClearOrder, type ClearProof } from "../clearing/clear-orders.ts";
import type { ClearGroup, EntryKey, Scope } from "../entry.ts";
import type { LateInvalidations } from "../late-invalidations.ts";
import type {
  CacheInit,
  CacheStats,
  Call,
  CallName,
  Calls,
  CheckResult,
  IndexerInit,
  IndexVerdict,
  IndexerToMain,
  MainToIndexer,
  MainToWorker,
  SearchResult,
} from "../messages.ts";
import type { IndexMemory } from "./opening.ts";
import { KeyPresence } from "./key-presence.ts";
import { SharedHeader } from "./shared-header.ts";
import type { WhyAnswer } from "./why.ts";

/** The budget of a clear for all its patterns together: with checking 64 of them before and hiding a million entries after, within 2.5 s. */
const matchBudgetMs = 1_500;
const restartBackoff = { firstMs: 200, mostMs: 5_000 };
/** Far above what a call takes (a check: two minutes at most); only a thread that hangs reaches it. Waiting for `gone` ends with the thread. */
const callMs: Readonly<Partial<Record<CallName, number>>> = {
  clear: 60_000,
  search: 10_000,
  why: 5_000,
  epoch: 60_000,
  stats: 5_000,
  check: 150_000,
  close: 20_000,
};
const callsMax = 10_000;

export type IndexerOptions = Instruments & {
  readonly entry: ThreadEntry;
  readonly matcherEntry: URL;
  readonly stateDir: string;
  readonly diskMax: number;
  /** Setting `cache.disk_free_min`; if undefined, as much as is usual. */
  readonly freeMin?: number | undefined;
  /** The memory for hot bodies of all workers together. */
  readonly memoryMax: number;
  readonly workers: number;
  /** The memory of the index in agent.db: an index that knows less starts empty. */
  readonly memory: IndexMemory;
  readonly stop: AbortSignal;
  readonly matchBudgetMs?: number;
};

export function startIndexer(options: IndexerOptions): IndexClient {
  return new IndexClient(options);
}

/** `to be dropped`: central was restored, and what is cached of the domain goes at its turn. `clears unconfirmed`: since the start, central has not said that no clear was missed. */
export type Doubt = "to be dropped" | "clears unconfirmed";

export class IndexClient implements AsyncDisposable {
  readonly #options: IndexerOptions;
  readonly #headerBuffer = SharedHeader.allocate();
  readonly #header = new SharedHeader(this.#headerBuffer);
  readonly #keys = KeyPresence.allocate();
  readonly #metrics: CacheMetrics;
  readonly #orders: ClearOrders;
  /** The ports through which workers are given those of index threads. */
  readonly #controls = new Set<MessagePort>();
  readonly #thread: ThreadClient<MainToIndexer, IndexerToMain, unknown>;

  constructor(options: IndexerOptions) {
    this.#options = options;
    this.#metrics = new CacheMetrics(options.registry);
    this.#orders = new ClearOrders({
      ...options,
      metrics: this.#metrics,
      call: (name, asked) => this.#call(name, asked),
    });
    const { entry, matcherEntry, stateDir, diskMax, memory, log } = options;
    this.#thread = new ThreadClient({
      start: (events) =>
        threadPeer<MainToIndexer, IndexerToMain>(entry, {
          name: "indexer",
          workerData: {
            directory: join(stateDir, "cache"),
            matcherEntry: matcherEntry.href,
            diskMax,
            freeMin: options.freeMin,
            matchBudgetMs: options.matchBudgetMs ?? matchBudgetMs,
            facts: memory.read(),
            header: this.#headerBuffer,
            keys: this.#keys,
          } satisfies IndexerInit,
          heapMiB: agentHeapMiB.indexer,
        })(events),
      restart: { waitMs: (deaths) => backoffMs(deaths, Math.random(), restartBackoff) },
      // Calls are idempotent.
      asksAgain: true,
      onStart: () => {
        this.#metrics.restarted();
        for (const control of this.#controls) this.#attach(control);
      },
      onMessage: (message) => this.#onMessage(message),
      onGone: ({ cause }) => {
        if (cause !== undefined) log.error({ error: messageOf(cause) }, "the index thread failed");
        this.#onGone();
      },
    });
    this.#thread.start();
  }

  /**
   * Returns the start of one worker thread: `init` goes into its data, `port` into its data and transfer
   * list.
   */
  workerInit(): { init: CacheInit; port: MessagePort } {
    const { stateDir, memoryMax, diskMax, workers } = this.#options;
    const { port1: control, port2: port } = new MessageChannel();
    this.#controls.add(control);
    const diskShare = DiskRoom.allocateShare();
    control.once("close", () => this.#controls.delete(control));
    control.once("close", () => giveShare(this.#header, diskShare));
    control.unref();
    this.#attach(control);
    const init = {
      directory: join(stateDir, "cache"),
      header: this.#headerBuffer,
      keys: this.#keys,
      memoryMax: Math.floor(memoryMax / Math.max(1, workers)),
      diskMax,
      diskShare,
    };
    return { init, port };
  }

  /**
   * `applied`: nothing that matches is servable, durably. `gone`: rows and bodies are deleted; settles only after `applied`. Both reject with the same
   * error: PATTERN_INVALID (nothing changed) or INDEX_BROKEN (repeat it). Idempotent by clear id. seq 0: not from the journal.
   */
  clear(order: ClearOrder): ClearProof {
    return this.#orders.clear(order);
  }

  /** These drop what is cached: durable when they resolve; deletion follows. They reject with INDEX_BROKEN where that cannot be had. */
  dropDomain(domain: string): Promise<{ removed: number }> {
    return this.#orders.drop({ domain, host: null }, "unlinked");
  }
  dropHost(host: string): Promise<{ removed: number }> {
    return this.#orders.drop({ domain: null, host }, "unlinked");
  }
  dropAll(): Promise<{ removed: number }> {
    return this.#orders.drop({ domain: null, host: null }, "dropped");
  }

  /**
   * Drops what is cached of a host whose entries may no longer be found by the clears to come. Durable when it resolves; it rejects with INDEX_BROKEN
   * where that cannot be had.
   */
  forget(scope: Scope): Promise<{ removed: number }> {
    return this.#orders.drop(scope, "rules");
  }

  /** Returns whether a clear by URL may have hit the scope, of all that were given before. True where that is not known. */
  isClearedByUrl(scope: Scope): Promise<boolean> {
    return this.#call("clearedByUrl", { scope });
  }

  /** Notes that the journal's head is applied: stored responses may be used. */
  setConfirmed(): void {
    this.#header.confirmed = true;
    const { memory, log } = this.#options;
    // Of a new store's journal: only now may an index that follows it be told from one that does not.
    this.#call("epoch", { epoch: memory.read().epoch }).catch((error: unknown) =>
      log.warn(
        { error: messageOf(error) },
        "the cache index could not record whose journal it follows",
      ),
    );
  }

  /** Has stored responses confirmed by the origin again, until `setConfirmed` or `setUnconfirmedServes` is called: clears may have been missed. */
  setUnconfirmed(): void {
    this.#header.confirmed = false;
  }

  /** Whether stored responses may be used. */
  get isConfirmed(): boolean {
    return this.#header.confirmed;
  }

  /** Lets stored responses be used although nothing is confirmed: the settings say `unconfirmed: serve`, or the agent was cut off while it ran, and the time to wait is over. */
  setUnconfirmedServes(): void {
    this.#header.confirmed = true;
  }

  /** Returns why stored generated responses of the main domain are not used as they are; undefined where they are. Workers ask the same words. */
  doubt(domain: string): Doubt | undefined {
    if (this.#header.isUnsure(domain)) return "to be dropped";
    return this.#header.confirmed ? undefined : "clears unconfirmed";
  }

  /** Has hits of these main domains confirmed by the origin, until it is called without them. */
  setUnsure(domains: readonly string[]): void {
    this.#header.setUnsure(domains);
  }

  /** Searches what is servable now and matches; the newest are the samples. */
  search(question: {
    scope: Scope;
    patterns: readonly string[] | null;
    groups?: readonly ClearGroup[];
    limit: number;
    budgetMs?: number;
  }): Promise<SearchResult> {
    const { scope, patterns, groups = [], limit, budgetMs } = question;
    return this.#call("search", { scope, selection: { patterns, groups }, limit, budgetMs });
  }

  /** Returns what is known of the keys, all of one moment. */
  why(keys: readonly EntryKey[]): Promise<WhyAnswer> {
    return this.#call("why", { keys });
  }

  stats(): Promise<CacheStats> {
    return this.#call("stats", null);
  }

  check(): Promise<CheckResult> {
    return this.#call("check", null);
  }

  /** Checks the index at idle priority. A damaged index is set aside, and an empty one takes its place. */
  scrub(): Promise<IndexVerdict> {
    return this.#call("scrub", null);
  }

  /** Notes that these bodies are missing or damaged: their entries are misses from now on. */
  async lost(ids: readonly number[]): Promise<void> {
    await this.#call("lost", { ids });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#thread.isClosing) return;
    await this.#close(false);
    for (const control of this.#controls) control.close();
  }

  /** Closes the index for another process of this boot, which opens it next; nothing waits for the disk. What workers still invalidate goes to `late`. */
  async handOver(late: Pick<LateInvalidations, "openWorker">): Promise<void> {
    if (this.#thread.isClosing) return;
    await this.#close(true);
    for (const control of this.#controls) attach(control, late.openWorker());
  }

  async #close(isHandedOver: boolean): Promise<void> {
    this.#thread.retire();
    if (this.#thread.isRunning)
      await this.#ask("close", { isHandedOver }).then(
        ({ durableNo }) => this.#orders.noteLater(durableNo),
        (error: unknown) =>
          this.#options.log.warn(
            { error: messageOf(error) },
            "the cache index was not closed cleanly",
          ),
      );
    this.#header.incarnation = 0;
    await this.#thread.close();
  }

  async #call<N extends CallName>(name: N, asked: Calls[N]["asked"]): Promise<Calls[N]["answer"]> {
    if (this.#thread.isClosing) throw stopping();
    if (this.#thread.waiting >= callsMax)
      throw new AccelError("BUSY", "too many calls to the cache index are waiting");
    if (name === "clear") this.#header.noteClearAsked();
    return this.#ask(name, asked);
  }

  async #ask<N extends CallName>(name: N, asked: Calls[N]["asked"]): Promise<Calls[N]["answer"]> {
    const deadlineMs = callMs[name];
    const answered = await this.#thread.ask(
      // The two belong together by the parameters of this method.
      (no) => ({ kind: "call", no, call: { name, asked } as Call }),
      deadlineMs === undefined ? {} : { deadlineMs },
    );
    // The index thread answers a call with what Calls names for it.
    if (answered.kind === "answered") return answered.answer as Calls[N]["answer"];
    if (answered.kind === "gone") throw stopping();
    throw new AccelError("BUSY", `no answer to ${name} within ${deadlineMs} ms`);
  }

  #attach(control: MessagePort): void {
    if (!this.#thread.isRunning) return;
    const { port1: indexerSide, port2: workerSide } = new MessageChannel();
    this.#thread.tell({ kind: "attach", port: indexerSide }, [indexerSide]);
    attach(control, workerSide);
  }

  #onGone(): void {
    const { health } = this.#options;
    this.#header.incarnation = 0;
    // Whoever knew what could not be stored is gone; the next thread warns again where that is still so.
    health.settle("cache_not_stored");
    health.raise(
      "index_thread_restarting",
      "warning",
      "the index thread ended and is started again; everything is fetched from the origin meanwhile",
      "If this happens again, report it with the log lines around it.",
    );
  }

  #onMessage(message: IndexerToMain): void {
    const { health, log } = this.#options;
    switch (message.kind) {
      case "answer":
        this.#thread.answer(message.no, message.answer);
        return;
      case "fault":
        this.#thread.fail(message.no, new AccelError(message.code, message.reason));
        return;
      case "raise":
        log.warn({ code: message.code }, message.text);
        health.raise(message.code, message.severity, message.text, message.hint);
        return;
      case "settle":
        health.settle(message.code);
        return;
      case "refused":
        for (const refused of message.clears) this.#orders.refused(refused);
        return;
      case "opened":
        this.#noteOpening(message.opening);
        return;
      case "dropped":
        this.#metrics.dropped();
        return;
      case "totals":
        health.settle("index_thread_restarting");
        this.#thread.isWell();
        this.#metrics.totals(message.totals);
        this.#orders.noteLater(message.totals.durableNo);
    }
  }

  /** Where it fails, the opening before stays known, which index.db keeps as well. */
  #noteOpening(opening: string): void {
    try {
      this.#options.memory.note({ opening });
    } catch (error) {
      this.#options.log.warn({ error: messageOf(error) }, "agent.db could not be written");
    }
  }
}

function stopping(): AccelError {
  return new AccelError("STOPPING", "the agent is stopping");
}

/** Gives a worker another port to talk to. */
function attach(control: MessagePort, port: MessagePort): void {
  control.postMessage({ kind: "attached", port } satisfies MainToWorker, [port]);
}
