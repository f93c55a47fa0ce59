// Makes coded variants in the background, while visitors get what there is.
//
// A job holds no bytes while it waits: its source is read when its turn comes. What is found not to be worth it is remembered, so that it is not
// tried at each request.

import { messageOf } from "../../../core/faults.ts";
import { codedToBytes, type Coding } from "../../../core/http/content-coding.ts";
import type { Entry } from "../../cache/entry.ts";
import type { ResponseCache, StoredStream } from "./cache-port.ts";
import type { WorkerClock } from "../clock.ts";
import { FormQueue } from "./form-queue.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { PoolWords } from "../pool/shared-words.ts";
import { encode } from "./variant-coder.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";

export type VariantJob = {
  readonly base: Entry;
  readonly coding: Coding;
  /** Exactly the bytes of the base; undefined where they are not to be had any more. */
  readonly read: () => Promise<Uint8Array | undefined>;
};

export type VariantMakerOptions = {
  readonly cache: ResponseCache;
  readonly words: Pick<PoolWords, "codingTurn">;
  /** The worker's number. */
  readonly no: number;
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
};

/** The most names that are remembered, of some 40 bytes each. */
const worthlessMax = 8_192;
/**
 * The pause after a variant that could not be read, made or stored: a full disk must not keep a processor
 * busy.
 */
const restMs = 10_000;

type Outcome = "made" | "worthless" | "gone" | "blocked" | "failed";

/** Disposing drops what waits and resolves when nothing is being made; a body that is being coded then is not stored. */
export class VariantMaker implements AsyncDisposable {
  readonly #options: VariantMakerOptions;
  readonly #queue: FormQueue<VariantJob>;
  readonly #worthless = new Set<string>();
  /** The coding that was last found worthless for an entry that is in memory: a hot one is offered with each request. */
  readonly #worthlessNow = new WeakMap<Entry, Coding>();
  #restsToMs = 0;

  constructor(options: VariantMakerOptions) {
    this.#options = options;
    const { no } = options;
    const turn = options.words.codingTurn;
    this.#queue = new FormQueue({ turn, no, run: async (job, name) => this.#run(job, name) });
  }

  /** Offers a job. Never throws, never blocks. */
  offer(job: VariantJob): void {
    const { base, coding } = job;
    if (this.#worthlessNow.get(base) === coding) return;
    const { clock, metrics } = this.#options;
    const name = nameOf(job);
    if (this.#queue.isStopped) return;
    if (this.#worthless.has(name)) {
      this.#worthlessNow.set(base, coding);
      return;
    }
    if (this.#queue.has(name)) return;
    if (this.#queue.isFull || clock.steadyMs() < this.#restsToMs) {
      metrics.accel_agent_variants_total.inc({ coding: job.coding, outcome: "dropped" });
      return;
    }
    this.#queue.add(name, job);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue[Symbol.asyncDispose]();
  }

  async #run(job: VariantJob, name: string): Promise<void> {
    const { clock, metrics, problems } = this.#options;
    let outcome: Outcome;
    try {
      outcome = await this.#make(job);
    } catch (error) {
      problems.tell("warn", job.base.domain, "no variant made", messageOf(error));
      outcome = "failed";
    }
    if (outcome === "worthless") this.#remember(name);
    if (outcome === "failed") this.#restsToMs = clock.steadyMs() + restMs;
    metrics.accel_agent_variants_total.inc({ coding: job.coding, outcome });
  }

  async #make({ base, coding, read }: VariantJob): Promise<Outcome> {
    const { cache, metrics } = this.#options;
    if (this.#queue.isStopped || !cache.servable(base)) return "gone";
    // Another worker may have been faster.
    if (cache.find(base).some((entry) => entry.baseId === base.id && entry.form === coding))
      return "gone";
    const body = await read();
    if (body === undefined || body.length !== base.size) return "gone";
    const coded = await encode(body, coding);
    if (coded === undefined) return "worthless";
    if (this.#queue.isStopped) return "gone";
    const outcome = await cache.storeVariant(base, coding, coded);
    if (outcome.kind === "failed") throw new Error(outcome.reason);
    if (outcome.kind === "blocked") return "blocked";
    metrics.accel_agent_variant_bytes_made_total.inc({ coding }, coded.length);
    return "made";
  }

  #remember(name: string): void {
    const [oldest] = this.#worthless;
    if (this.#worthless.size >= worthlessMax && oldest !== undefined)
      this.#worthless.delete(oldest);
    this.#worthless.add(name);
  }
}

/** Ids are counted anew in a new index: the rest tells the entries apart then. */
function nameOf({ base, coding }: VariantJob): string {
  return `${coding} ${base.id} ${base.sourceNo} ${base.size} ${base.digest ?? ""}`;
}

/** Reads a body whole. Undefined when it is larger than `bytesMax`, or not there. */
export async function wholeBody(
  body: Uint8Array | AsyncIterable<Uint8Array> | StoredStream | undefined,
  bytesMax = codedToBytes,
): Promise<Uint8Array | undefined> {
  if (body === undefined || body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > bytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}
