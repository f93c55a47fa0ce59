// Sends the lanes to central, each in order with one batch in flight. A live lane is looked at twice a
// second, so that a record is on its way within a second. Sealed lanes drain beside them, two at a time, so
// that one is read while the other is committed. Memory is bounded at any backlog: at most 4 batches are
// held. Nothing is ever given up for its age.

import { promisify } from "node:util";
import { constants, gzip, zstdCompress, type ZlibOptions } from "node:zlib";
import { createMetrics, type Metrics, type Instruments } from "../../../base/metrics.ts";
import { giveBack } from "../../../base/give-back.ts";
import { every, sleep } from "../../../base/wait.ts";
import { messageOf } from "../../../core/faults.ts";
import {
  batchBytesMax,
  batchRecordsMax,
  type BatchEncoding,
  batchEncodings,
} from "../../../wire/request-log.ts";
import { canaryOf } from "../spool/canary-line.ts";
import type { BatchLimits, LaneBatch, LaneFacts, SpoolFacts } from "../spool/spool-messages.ts";
import { Limiter } from "../../../base/limiter.ts";
import { planAfter, type Posted, type ShipStep, shipPause } from "./ship-plan.ts";
import { ShipProgress, type LaneAnswer, type ShipState } from "./ship-progress.ts";

export type ShippedBatch = {
  /** `<boot epoch>/<lane no>` */
  readonly lane: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly encoding: BatchEncoding;
  readonly body: Uint8Array;
};

/**
 * The spool as the shipper needs it. All promises may reject while the disk or the thread has trouble; the
 * shipper then tries again.
 */
export type ShipSource = {
  facts(): SpoolFacts;
  /** Asks for new facts. */
  balance(): Promise<unknown>;
  /** Resolves with new facts, or with the signal. */
  next(signal: AbortSignal): Promise<void>;
  read(lane: string, limits: BatchLimits): Promise<LaneBatch | undefined>;
  confirm(lane: string, mark: number): Promise<void>;
  poison(lane: string, seq: number, why: string): Promise<void>;
};

export type ShipperOptions = Instruments & {
  readonly spool: ShipSource;
  /** Posts a batch and resolves with any status. Throws only if no answer came. */
  readonly post: (batch: ShippedBatch, signal: AbortSignal) => Promise<Posted>;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  readonly monotonicMs?: () => number;
  readonly now?: () => Date;
  /** Called when central has committed the canary of this time, in seconds since the epoch. */
  readonly onCanary?: (at: number) => void;
};

export const shipMetrics = {
  accel_agent_log_batches_total: {
    kind: "counter",
    help: "Batches of request records sent, by outcome: committed, conflict, halve, poison, recode, wait, unanswered.",
    labels: ["outcome"],
  },
} as const;

const flushIntervalMs = 500;
const lanesInFlightMax = 4;
const sealedAtOnce = 2;
/**
 * The most corrections of a mark in a row after which the lane is sent again at once; after more, there is a
 * pause.
 */
const conflictsMax = 3;
const checkIntervalMs = 1_000;
const lastFlushMs = 2_000;

/**
 * How a try ended. `dry`: nothing was left to send. `partial`: all there was is sent. `full`: there is more,
 * or the batch is to be sent in another way.
 */
type Sent = { readonly kind: "dry" | "partial" | "full" } | Extract<ShipStep, { kind: "wait" }>;

export class Shipper implements AsyncDisposable {
  readonly #options: ShipperOptions;
  readonly #metrics: Metrics<typeof shipMetrics>;
  readonly #stop = new AbortController();
  readonly #hurry = new AbortController();
  readonly #flights = new Limiter(lanesInFlightMax);
  readonly #coder = new BatchCoder();
  readonly #progress: ShipProgress;
  /** The sealed lanes with a batch on its way. */
  readonly #draining = new Set<string>();
  readonly #tasks = new Map<string, Promise<void>>();
  /** The most lines of a batch while the record at fault is looked for, by lane. */
  readonly #linesMax = new Map<string, number>();
  readonly #conflicts = new Map<string, number>();
  readonly #running: Promise<unknown>;

  constructor(options: ShipperOptions) {
    this.#options = options;
    const { registry, health, log, now = () => new Date() } = options;
    this.#metrics = createMetrics(shipMetrics, registry);
    const monotonicMs = (): number => (options.monotonicMs ?? (() => performance.now()))();
    this.#progress = new ShipProgress({ health, log, now, monotonicMs });
    const check = (): void => this.#progress.check(options.spool.facts());
    const onError = (error: unknown): void => log.error({ err: error }, "shipping failed");
    const checking = every(checkIntervalMs, check, { stop: this.#stop.signal, onError });
    this.#running = Promise.all([this.#run(), checking]);
  }

  get state(): ShipState {
    return this.#progress.state;
  }

  /** Returns central's last answer about a lane that is here. */
  answer(lane: string): LaneAnswer | undefined {
    return this.#progress.answer(lane);
  }

  /** Sends what is there without delay. Returns false if something was left after the time. */
  async flush(deadlineMs: number): Promise<boolean> {
    const { spool } = this.#options;
    this.#hurry.abort();
    const deadline = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(deadlineMs)]);
    try {
      await spool.balance();
      this.#schedule();
      while (!deadline.aborted && spool.facts().lanes.some(hasBacklog)) await spool.next(deadline);
    } catch {
      // Without the spool nothing can be sent.
    }
    return !spool.facts().lanes.some(hasBacklog);
  }

  /** Sends nothing more: what is there is the successor's to send. A batch whose answer is not waited for is told by central's mark. */
  leave(): void {
    this.#stop.abort();
  }

  /** Closes after a last flush of at most 2 s, unless it was told to leave. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#stop.signal.aborted) await this.flush(lastFlushMs);
    this.#stop.abort();
    this.#hurry.abort();
    await Promise.all([this.#running, ...this.#tasks.values()]);
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#schedule();
      await this.#options.spool.next(this.#stop.signal);
    }
  }

  #schedule(): void {
    if (this.#stop.signal.aborted) return;
    const waiting = this.#options.spool.facts().lanes.filter(hasBacklog);
    for (const lane of waiting.filter(({ live }) => live))
      this.#begin(lane.lane, async () => this.#shipLive(lane));
    for (let no = 1; no <= sealedAtOnce && this.#sealedWaiting().length > 0; no++)
      this.#begin(`sealed ${no}`, async () => this.#shipSealed());
  }

  /**
   * Returns the sealed lanes that can be sent. A lane that was live a moment ago may still have its own batch
   * in flight.
   */
  #sealedWaiting(): readonly string[] {
    return this.#options.spool
      .facts()
      .lanes.filter((lane) => !lane.live && hasBacklog(lane))
      .map(({ lane }) => lane)
      .filter((lane) => !this.#tasks.has(lane) && !this.#draining.has(lane));
  }

  #begin(name: string, action: () => Promise<void>): void {
    if (this.#tasks.has(name)) return;
    const ended = action()
      .catch((error: unknown) => this.#options.log.error({ err: error }, "shipping failed"))
      .finally(() => {
        this.#tasks.delete(name);
        this.#schedule();
      });
    this.#tasks.set(name, ended);
  }

  /** Gathers for a moment, then sends until only a part of a batch was left. */
  async #shipLive({ lane, mark, durable }: LaneFacts): Promise<void> {
    if (durable - mark < batchRecordsMax) await sleep(flushIntervalMs, this.#hurry.signal);
    for (let failures = 0; !this.#stop.signal.aborted;) {
      const sent = await this.#flights.run(async () => this.#ship(lane));
      if (sent.kind === "dry" || sent.kind === "partial") return;
      failures = sent.kind === "wait" ? failures + 1 : 0;
      if (sent.kind === "wait") await this.#pause(failures, sent.leastMs);
    }
  }

  /** Sends sealed lanes, the oldest first; after a failure the next lane is tried. */
  async #shipSealed(): Promise<void> {
    let last = "";
    for (let failures = 0; !this.#stop.signal.aborted;) {
      const waiting = this.#sealedWaiting();
      const lane = failures === 0 && waiting.includes(last) ? last : after(waiting, last);
      if (lane === undefined) return;
      last = lane;
      this.#draining.add(lane);
      const sent = await this.#flights.run(async () => this.#ship(lane));
      this.#draining.delete(lane);
      failures = sent.kind === "wait" ? failures + 1 : 0;
      if (sent.kind === "wait") await this.#pause(failures, sent.leastMs);
    }
  }

  async #pause(failures: number, leastMs: number): Promise<void> {
    const { random, spool } = this.#options;
    const isBlocking = (): boolean => spool.facts().isBlocking;
    await shipPause({ failures, leastMs, random: random(), isBlocking, stop: this.#stop.signal });
  }

  async #ship(lane: string): Promise<Sent> {
    try {
      const { spool, post } = this.#options;
      const recordsMax = this.#linesMax.get(lane) ?? batchRecordsMax;
      const batch = await spool.read(lane, { recordsMax, bytesMax: batchBytesMax });
      if (batch === undefined) return { kind: "dry" };
      const { firstSeq, lastSeq } = batch;
      const coded = await this.#coder.code(batch.body);
      const posted = await post({ lane, firstSeq, lastSeq, ...coded }, this.#stop.signal);
      const step = planAfter(batch, posted);
      this.#answered(lane, step.kind, "why" in step ? step.why : undefined);
      const sent = await this.#follow(lane, batch, step, coded.encoding);
      // What was compressed has been read to its end; what was sent as it is may still be on its way.
      if (coded.body !== batch.body) giveBack(batch.body);
      return sent;
    } catch (error) {
      if (this.#stop.signal.aborted) return { kind: "dry" };
      const why = messageOf(error);
      this.#answered(lane, "unanswered", why);
      return { kind: "wait", leastMs: 0, why };
    }
  }

  #answered(lane: string, outcome: string, why: string | undefined): void {
    this.#metrics.accel_agent_log_batches_total.inc({ outcome });
    this.#progress.answered(lane, outcome, why);
  }

  async #follow(
    lane: string,
    batch: LaneBatch,
    step: ShipStep,
    encoding: BatchEncoding,
  ): Promise<Sent> {
    const { spool, log } = this.#options;
    switch (step.kind) {
      case "committed": {
        await spool.confirm(lane, step.mark);
        this.#conflicts.delete(lane);
        this.#widen(lane);
        this.#progress.moved();
        this.#noteCanary(batch);
        return { kind: batch.hasMore ? "full" : "partial" };
      }
      case "conflict": {
        const times = (this.#conflicts.get(lane) ?? 0) + 1;
        this.#conflicts.set(lane, times);
        log.info({ lane, first_seq: batch.firstSeq, mark: step.mark }, "central told its mark");
        await spool.confirm(lane, step.mark);
        if (times <= conflictsMax) return { kind: "full" };
        return { kind: "wait", leastMs: 0, why: `another mark ${times} times in a row` };
      }
      case "halve":
        this.#linesMax.set(lane, Math.floor(batch.lines / 2));
        return { kind: "full" };
      case "recode":
        if (!this.#coder.refused(encoding)) return { ...step, kind: "wait", leastMs: 0 };
        log.warn({ encoding, why: step.why }, "central refused the encoding; another is used");
        return { kind: "full" };
      case "poison":
        log.warn({ lane, seq: batch.firstSeq, why: step.why }, "central refused a record");
        await spool.poison(lane, batch.firstSeq, step.why);
        return { kind: "full" };
      case "wait":
        return step;
      default:
        return step satisfies never;
    }
  }

  /** Doubles the size of the lane's batches after one has passed. */
  #widen(lane: string): void {
    const linesMax = this.#linesMax.get(lane);
    if (linesMax === undefined) return;
    if (2 * linesMax >= batchRecordsMax) this.#linesMax.delete(lane);
    else this.#linesMax.set(lane, 2 * linesMax);
  }

  /**
   * Reports the canary if the batch ends with one. The lines are in order, so all before it have arrived too.
   */
  #noteCanary({ body }: LaneBatch): void {
    const at = canaryOf(body.subarray(body.lastIndexOf(lineFeed, -2) + 1));
    if (at !== undefined) this.#options.onCanary?.(at);
  }
}

const lineFeed = 0x0a;

function hasBacklog({ mark, durable }: LaneFacts): boolean {
  return mark < durable;
}

/** Returns the lane after `last`, and after the end the first one. */
function after(lanes: readonly string[], last: string): string | undefined {
  return lanes[(lanes.indexOf(last) + 1) % Math.max(1, lanes.length)];
}

/** Starts a shipper, which runs until disposed. */
export function startShipper(options: ShipperOptions): Shipper {
  return new Shipper(options);
}

// How batches are compressed: with zstd, and after each 415 of central or a proxy with the next, gzip and
// then nothing. The choice is remembered until the process ends.

type CodedBatch = { readonly encoding: BatchEncoding; readonly body: Uint8Array };

/**
 * The most compressions at a time. The pool for asynchronous work has four threads for the whole process; two
 * of them may compress, and the other one of these makes variants of cached bodies.
 */
const compressionsMax = 1;
/**
 * The size of output pieces. A batch of 1 MiB has some 100 KiB afterwards and fits into one piece; each piece
 * would be a turn of that pool.
 */
const chunkSize = 256 * 2 ** 10;
const zstdLevel = 3;
const gzipLevel = 6;

const compressZstd = promisify(zstdCompress);
const compressGzip = promisify<Uint8Array, ZlibOptions, Buffer>(gzip);

class BatchCoder {
  readonly #compressions = new Limiter(compressionsMax);
  #at = 0;

  get encoding(): BatchEncoding {
    return batchEncodings[this.#at] ?? "identity";
  }

  async code(body: Uint8Array): Promise<CodedBatch> {
    const { encoding } = this;
    if (encoding === "identity") return { encoding, body };
    return this.#compressions.run(async () => ({ encoding, body: await compress(encoding, body) }));
  }

  /**
   * Switches to the next encoding; returns false when there is none. Batches of other lanes may have been
   * refused with the same encoding before, so it switches only once.
   */
  refused(encoding: BatchEncoding): boolean {
    if (encoding !== this.encoding) return true;
    if (this.#at === batchEncodings.length - 1) return false;
    this.#at++;
    return true;
  }
}

async function compress(
  encoding: Exclude<BatchEncoding, "identity">,
  body: Uint8Array,
): Promise<Uint8Array> {
  return encoding === "zstd"
    ? compressZstd(body, { chunkSize, params: { [constants.ZSTD_c_compressionLevel]: zstdLevel } })
    : compressGzip(body, { chunkSize, level: gzipLevel });
}
