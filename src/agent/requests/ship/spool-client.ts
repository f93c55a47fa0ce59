// Main's end of the spool thread: it opens lanes for workers, passes the shipper's requests on, and keeps
// metrics and health by what the thread tells.

import { join } from "node:path";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { agentHeapMiB } from "../../../base/heap-limits.ts";
import type { Instruments } from "../../../base/metrics.ts";
import { ThreadClient, threadPeer, type ThreadEntry } from "../../../base/thread-client.ts";
import { sleep } from "../../../base/wait.ts";
import { AccelError } from "../../../core/faults.ts";
import { emptyBalance } from "../spool/lane.ts";
import { LaneWords } from "../worker/lane-words.ts";
import type {
  SpoolAnswer,
  Balance,
  BatchLimits,
  FromSpool,
  LaneBatch,
  LaneInit,
  Request,
  SpoolFacts,
  SpoolInit,
  CrashLoss,
  SpoolNotice,
  ToSpool,
} from "../spool/spool-messages.ts";
import { SpoolMetrics, noticeHints } from "./spool-metrics.ts";
import type { Durability, WhenFull } from "../spool/spool-policy.ts";

export type SpoolerOptions = Instruments & {
  readonly entry: ThreadEntry;
  readonly stateDir: string;
  /** The most bytes of the spool. */
  readonly spoolMax: number;
  readonly whenFull?: WhenFull;
  readonly durability?: Durability;
  /** The site's name. Records that were spooled under another name are set aside. */
  readonly name16: string;
  readonly fsync: { readonly intervalMs: number; readonly bytes: number };
  /** 16 lower-case hex characters, random at each start. */
  readonly bootEpoch: string;
};

/** The longest waits, whatever the disk does. */
const answerWaitMs = 30_000;
const readyWaitMs = 10_000;
const closeWaitMs = 10_000;
const groupMs = 10;

export class SpoolClient implements AsyncDisposable {
  /**
   * Resolves when the thread has ended unasked. Then no record is kept any more until the process is
   * restarted.
   */
  readonly died: Promise<Error>;
  readonly #thread: ThreadClient<ToSpool, FromSpool, SpoolAnswer>;
  readonly #options: SpoolerOptions;
  readonly #metrics: SpoolMetrics;
  readonly #heartbeat: Int32Array;
  #facts: SpoolFacts = {
    balance: emptyBalance,
    bytes: 0,
    isBlocking: false,
    lanesTotal: 0,
    lanes: [],
  };
  #told = Promise.withResolvers<void>();

  constructor(options: SpoolerOptions) {
    const { entry, stateDir, spoolMax, fsync, bootEpoch, registry, name16 } = options;
    this.#options = options;
    this.#metrics = new SpoolMetrics(registry);
    const heartbeat = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.#heartbeat = new Int32Array(heartbeat);
    const workerData: SpoolInit = {
      directory: join(stateDir, "spool"),
      bytesMax: spoolMax,
      whenFull: options.whenFull ?? "drop_oldest",
      durability: options.durability ?? "group",
      name16,
      fsyncIntervalMs: fsync.intervalMs,
      fsyncBytes: fsync.bytes,
      bootEpoch,
      heartbeat,
    };
    const { promise: died, resolve: die } = Promise.withResolvers<Error>();
    this.died = died;
    this.#thread = new ThreadClient({
      start: threadPeer(entry, { name: "spool", workerData, heapMiB: agentHeapMiB.spooler }),
      restart: "never",
      onMessage: (message) => this.#take(message),
      onGone: ({ cause }) => {
        const error = ended(cause);
        options.log.error({ err: cause ?? error }, error.message);
        options.health.raise("spool_dead", "error", error.message, "Restart the agent.");
        die(error);
      },
    });
    this.#thread.start();
  }

  /** Opens a lane for one worker's start; `port` is transferred to it. */
  openLane(): { readonly init: LaneInit; readonly port: MessagePort } {
    const shared = LaneWords.allocate();
    const { port1, port2 } = new MessageChannel();
    this.#thread.tell({ type: "open", shared, port: port1 }, [port1]);
    const blocks = this.#options.whenFull === "block";
    return { init: { shared, groupMs, blocks }, port: port2 };
  }

  /** Opens the newest records for one reader (tail-reader.ts). */
  tail(follow: boolean): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#thread.tell({ type: "tail", follow, port: port1 }, [port1]);
    return port2;
  }

  /** Returns what the thread told last, at most some 50 ms ago. */
  facts(): SpoolFacts {
    return this.#facts;
  }

  /** Asks for the balance of this moment: accepted = committed + spooled + inMemory + dropped. */
  async balance(): Promise<Balance> {
    return (await this.#ask({ type: "facts" })).facts.balance;
  }

  /** Resolves when the thread has told something new, or with the signal. */
  async next(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = (): void => resolve();
    signal.addEventListener("abort", stop);
    await Promise.race([this.#told.promise, promise]);
    signal.removeEventListener("abort", stop);
  }

  async read(lane: string, limits: BatchLimits): Promise<LaneBatch | undefined> {
    return (await this.#ask({ type: "read", lane, limits })).batch;
  }

  async confirm(lane: string, mark: number): Promise<void> {
    await this.#ask({ type: "confirm", lane, mark });
  }

  async poison(lane: string, seq: number, why: string): Promise<void> {
    await this.#ask({ type: "poison", lane, seq, why });
  }

  /** Returns a number that changes while the thread lives. */
  heartbeat(): number {
    return Atomics.load(this.#heartbeat, 0);
  }

  /** Closes the spool. What workers have handed over is durable afterwards; close their lanes before. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#thread.isClosing || !this.#thread.isRunning) return;
    this.#thread.retire();
    const deadline = new AbortController();
    const late = sleep(closeWaitMs, deadline.signal);
    try {
      await Promise.race([this.#ask({ type: "close" }), late]);
    } catch (error) {
      this.#options.log.warn({ err: error }, "the spool was not closed properly");
    }
    deadline.abort();
    await this.#thread.close();
  }

  async #ask(request: Request): Promise<SpoolAnswer> {
    const asked = await this.#thread.ask((id) => ({ type: "request", id, request }), {
      deadlineMs: answerWaitMs,
    });
    if (asked.kind === "answered") return asked.answer;
    if (asked.kind === "gone") throw ended(asked.cause);
    const reason = `the spool thread did not answer within ${answerWaitMs} ms`;
    throw new AccelError("SPOOL_FAILED", reason);
  }

  #take(message: FromSpool): void {
    switch (message.type) {
      case "answer":
        this.#learn(message.answer.facts);
        this.#thread.answer(message.id, message.answer);
        return;
      case "fault":
        this.#thread.fail(message.id, new AccelError("SPOOL_FAILED", message.message));
        return;
      case "facts":
        this.#learn(message.facts);
        return;
      case "notice":
        this.#note(message.notice);
        return;
      case "crashed":
        this.#tellCrash(message.loss);
        return;
      default:
        message satisfies never;
    }
  }

  #learn(facts: SpoolFacts): void {
    this.#facts = facts;
    this.#metrics.refresh(facts);
    this.#told.resolve();
    this.#told = Promise.withResolvers();
  }

  #tellCrash({ lanes, lanesTotal, atMost }: CrashLoss): void {
    this.#options.log.warn(
      { lanes, lanes_total: lanesTotal, records_at_least: 0, records_at_most: atMost },
      "the previous run ended unexpectedly: request records that were in memory are lost, at most this many; most of these numbers were reserved ahead and stand for no request",
    );
  }

  #note({ code, severity, text }: SpoolNotice): void {
    const { health, log } = this.#options;
    if (text === undefined) {
      health.settle(code);
      log.info({ code }, "settled");
      return;
    }
    const isNew = !health.list().some((warning) => warning.code === code && warning.text === text);
    health.raise(code, severity, text, noticeHints[code]);
    if (isNew) log.warn({ code }, text);
  }
}

function ended(cause: Error | undefined): AccelError {
  return new AccelError("SPOOL_FAILED", "the spool thread ended", { cause });
}

/**
 * Starts the thread. Resolves when the records of earlier runs are found, so that lanes open at once; after
 * 10 s at the latest.
 */
export async function startSpooler(options: SpoolerOptions): Promise<SpoolClient> {
  const client = new SpoolClient(options);
  const deadline = new AbortController();
  await Promise.race([
    client.next(deadline.signal),
    client.died,
    sleep(readyWaitMs, deadline.signal),
  ]);
  deadline.abort();
  return client;
}
