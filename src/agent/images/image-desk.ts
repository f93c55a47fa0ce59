// Main's side of pictures: one queue for all workers, in front of one encoder.
//
// Equal jobs (the same bytes, form and quality) are one. Domains take turns. The encoder rests for as long as it computed for each picture, so that it takes half a
// processor at most, and for half a second, and it runs only while there are pictures. When it dies, the next picture waits for a pause that doubles. A picture that ended it twice is not given to it again,
// nor is one of which it is known that nothing comes of it (known-pictures.ts): neither takes anything of the day.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { Instruments } from "../../base/metrics.ts";
import { sleep } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import { readImageForm } from "../../core/images/image-form.ts";
import { nextPicture } from "../../core/images/image-queue.ts";
import type { DayBudget, DomainVariants, ReportedVariants } from "./day-budget.ts";
import { EncoderHealth, type EncoderStanding } from "./encoder-health.ts";
import type { Encoded, EncoderProcess } from "./encoder-child.ts";
import type { ImageEncoder, ImageJob, ImageMade } from "./image-encoder.ts";
import { KnownPictures } from "./known-pictures.ts";
import { turnWaitMs, type ImageAnswer, type ImageOrder } from "./image-messages.ts";
import { createImageMetrics } from "./image-metrics.ts";

export type ImageDeskOptions = Instruments & {
  /** Why there is none: as a setting says. */
  readonly encoder: Pick<EncoderProcess, "open" | "encode" | "stop" | "isRunning"> | string;
  readonly budget: DayBudget;
  readonly times?: Partial<DeskTimes>;
};

export type DeskTimes = {
  /** The encoder ends after so long without a picture. */
  readonly idleMs: number;
  /** How long a picture waits for its turn. */
  readonly turnWaitMs: number;
  /** The pause behind the first death; it doubles with each further one. */
  readonly pauseFirstMs: number;
  /** The least rest behind a picture. */
  readonly restLeastMs: number;
};

/**
 * Each picture costs the agent itself some milliseconds, too: its bytes are read, copied and stored. At two pictures a second the default number of a day takes an
 * hour and a half; what visitors feel of it is in decision 0127.
 */
const restLeastMs = 450;
const timesDefault: DeskTimes = { idleMs: 60_000, turnWaitMs, pauseFirstMs: 1_000, restLeastMs };
const pauseMostMs = 60_000;
/** Pictures that wait, and their bytes, of all workers together. */
const waitingMax = 64;
const waitingBytesMax = 64 * 2 ** 20;
const strikesMost = 2;
/** The pictures that are remembered as having ended the encoder. */
const struckMax = 512;

/** One picture for all who ask for it. */
type Picture = {
  readonly key: string;
  readonly digest: string;
  /** The first who asked. */
  readonly domain: string;
  readonly job: ImageJob;
  readonly sinceMs: number;
  /** Whose day it may be taken of. */
  readonly payers: Map<string, number>;
  readonly done: PromiseWithResolvers<ImageMade>;
};

export type ImageFacts = EncoderStanding & {
  readonly waiting: number;
  readonly domains: Readonly<Record<string, DomainVariants>>;
};

export class ImageDesk implements ImageEncoder, AsyncDisposable {
  readonly #options: ImageDeskOptions;
  readonly #times: DeskTimes;
  readonly #metrics;
  readonly #health: EncoderHealth;
  readonly #closing = new AbortController();
  readonly #ports = new Set<MessagePort>();
  /** What waits, in the order of arrival. */
  readonly #waiting: Picture[] = [];
  /** What waits and what is at the encoder, by its key. */
  readonly #open = new Map<string, Picture>();
  readonly #turns = new Map<string, number>();
  readonly #struck = new Map<string, number>();
  readonly #pictures = new KnownPictures();
  #turn = 0;
  /** Resolves when all who have come so far have their digests. */
  #arrivals: Promise<unknown> = Promise.resolve();
  #bytes = 0;
  #running: Promise<void> | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: ImageDeskOptions) {
    this.#options = options;
    this.#times = { ...timesDefault, ...options.times };
    this.#metrics = createImageMetrics(options.registry);
    this.#health = new EncoderHealth(options);
  }

  /** Opens the port for one worker's start, to which it is transferred. */
  openWorker(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#ports.add(port1);
    port1.once("close", () => this.#ports.delete(port1));
    // An ImageEncoderClient is at the other end, and sends nothing else.
    port1.on("message", ({ no, job }: ImageOrder) => {
      void this.make(job).then((made) => answer(port1, { no, made }));
    });
    port1.unref();
    return port2;
  }

  async make(job: ImageJob): Promise<ImageMade> {
    const made = await this.#make(job);
    const { domain } = job;
    this.#metrics.accel_agent_image_forms_total.inc({ domain, outcome: made.kind });
    return made;
  }

  facts(): ImageFacts {
    const { encoder, budget } = this.#options;
    const isRunning = typeof encoder !== "string" && encoder.isRunning;
    return {
      ...this.#health.standing(isRunning),
      waiting: this.#waiting.length,
      domains: Object.fromEntries(budget.sinceStart()),
    };
  }

  /** What reports to central tell of each domain that asked. */
  reported(): ReadonlyMap<string, ReportedVariants> {
    return this.#options.budget.reported();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#idle);
    const stopping: ImageMade = { kind: "failed", reason: "the agent is stopping" };
    for (const picture of this.#open.values()) picture.done.resolve(stopping);
    for (const port of this.#ports) port.close();
    const { encoder, budget, log } = this.#options;
    if (typeof encoder !== "string") await encoder.stop();
    await this.#running;
    try {
      budget[Symbol.dispose]();
    } catch (error) {
      log.warn({ error: messageOf(error) }, unkept);
    }
  }

  async #make(job: ImageJob): Promise<ImageMade> {
    const { encoder, budget } = this.#options;
    const { domain, form, quality, source, perDayMax } = job;
    if (typeof encoder === "string") return { kind: "absent", reason: encoder };
    const absent = this.#health.absence();
    if (absent !== undefined) return { kind: "absent", reason: absent };
    const digest = await this.#digestInTurn(source);
    if (this.#closing.signal.aborted) return { kind: "failed", reason: "the agent is stopping" };
    if ((this.#struck.get(digest) ?? 0) >= strikesMost)
      return { kind: "unreadable", reason: "has ended the encoder twice" };
    const outcome = this.#pictures.find({ digest, form, quality });
    if (outcome !== undefined) return outcome;
    const key = `${digest} ${form} ${quality}`;
    const known = this.#open.get(key);
    if (known !== undefined) {
      known.payers.set(domain, perDayMax);
      return known.done.promise;
    }
    if (budget.isSpent(domain, perDayMax)) return this.#blocked(domain);
    const isFull =
      this.#waiting.length >= waitingMax || this.#bytes + source.length > waitingBytesMax;
    if (isFull) return { kind: "failed", reason: "busy" };
    const picture: Picture = {
      key,
      digest,
      domain,
      job,
      sinceMs: performance.now(),
      payers: new Map([[domain, perDayMax]]),
      done: Promise.withResolvers<ImageMade>(),
    };
    this.#open.set(key, picture);
    this.#waiting.push(picture);
    this.#bytes += source.length;
    this.#noteWaiting();
    this.#running ??= this.#run(encoder);
    return picture.done.promise;
  }

  /** Digests are computed at the same time, on other threads. Whoever came first has its own first, all the same: the order of arrival decides whose day is taken, and who is too many. */
  async #digestInTurn(source: Uint8Array): Promise<string> {
    const before = this.#arrivals;
    const digest = digestOf(source);
    this.#arrivals = Promise.allSettled([before, digest]);
    await before;
    return digest;
  }

  #blocked(domain: string): ImageMade {
    this.#options.budget.block(domain);
    return { kind: "blocked" };
  }

  /** Gives the encoder one picture after the other until none waits. */
  async #run(encoder: Exclude<ImageDeskOptions["encoder"], string>): Promise<void> {
    clearTimeout(this.#idle);
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await sleep(this.#health.pauseMs(this.#times.pauseFirstMs, pauseMostMs), signal);
      const picture = this.#next();
      if (picture === undefined || signal.aborted) break;
      const { made, restMs } = await this.#encode(encoder, picture);
      picture.done.resolve(made);
      this.#open.delete(picture.key);
      await sleep(restMs, signal);
    }
    this.#running = undefined;
    if (signal.aborted) return;
    // One may have come while it rested.
    if (this.#waiting.length > 0) this.#running = this.#run(encoder);
    else this.#idle = setTimeout(() => void encoder.stop(), this.#times.idleMs).unref();
  }

  #next(): Picture | undefined {
    const at = nextPicture(this.#waiting, this.#turns);
    if (at === undefined) return undefined;
    const [picture] = this.#waiting.splice(at, 1);
    if (picture === undefined) return undefined;
    this.#turns.delete(picture.domain);
    this.#turns.set(picture.domain, ++this.#turn);
    if (this.#turns.size > waitingMax) this.#forgetTurn();
    this.#bytes -= picture.job.source.length;
    this.#noteWaiting();
    return picture;
  }

  #forgetTurn(): void {
    const [oldest] = this.#turns.keys();
    if (oldest !== undefined) this.#turns.delete(oldest);
  }

  async #encode(
    encoder: Exclude<ImageDeskOptions["encoder"], string>,
    picture: Picture,
  ): Promise<{ readonly made: ImageMade; readonly restMs: number }> {
    if (performance.now() - picture.sinceMs > this.#times.turnWaitMs)
      return { made: { kind: "failed", reason: "busy" }, restMs: 0 };
    const { source, form, quality } = picture.job;
    // Another form of the same bytes may have been tried while this one waited.
    const found = this.#pictures.find({ digest: picture.digest, form, quality });
    if (found !== undefined) return { made: found, restMs: 0 };
    const opened = await encoder.open();
    if (opened.kind === "absent") {
      this.#health.absent(opened.reason);
      return { made: opened, restMs: 0 };
    }
    if (opened.kind === "failed") {
      this.#noteDeath(opened.reason);
      return { made: opened, restMs: 0 };
    }
    this.#health.opened(opened.versions);
    if (this.#closing.signal.aborted)
      return { made: { kind: "failed", reason: "the agent is stopping" }, restMs: 0 };
    const payer = this.#pay(picture);
    if (payer === undefined) {
      for (const domain of picture.payers.keys()) this.#options.budget.block(domain);
      return { made: { kind: "blocked" }, restMs: 0 };
    }
    const began = performance.now();
    const encoded = await encoder.encode({ kind: "encode", source, form, quality });
    const tookMs = performance.now() - began;
    this.#metrics.accel_agent_image_encode_seconds.observe(tookMs / 1_000);
    const restMs = Math.max(encoded.cpuMs ?? tookMs, this.#times.restLeastMs);
    return { made: this.#madeOf(picture, payer, encoded), restMs };
  }

  /** Takes the picture of the day of the first who has one left, and returns the domain. Undefined: nobody has. */
  #pay({ payers }: Picture): string | undefined {
    for (const [domain, perDayMax] of payers)
      try {
        if (this.#options.budget.take(domain, perDayMax)) return domain;
      } catch (error) {
        this.#options.log.warn({ domain, error: messageOf(error) }, unkept);
        return domain;
      }
    return undefined;
  }

  #madeOf(
    { domain, digest, job }: Picture,
    payer: string,
    { outcome, cpuMs = 0 }: Encoded,
  ): ImageMade {
    this.#metrics.accel_agent_image_cpu_seconds_total.inc(cpuMs / 1_000);
    if (outcome.kind !== "killed") {
      this.#health.isWell();
      const { form, quality } = job;
      this.#pictures.note({ digest, form, quality }, outcome);
    }
    switch (outcome.kind) {
      case "made":
        this.#options.budget.made(payer);
        this.#noteMade(job, outcome.body.length);
        return outcome;
      case "worthless":
      case "unreadable":
        return outcome;
      case "failed":
        this.#strike(digest);
        return outcome;
      case "killed": {
        const { reason, isBlamed } = outcome;
        if (isBlamed) this.#strike(digest);
        if (this.#closing.signal.aborted) return { kind: "failed", reason };
        const { form } = job;
        const facts = { domain, sha256: digest, form, bytes: job.source.length, reason };
        this.#options.log.warn(facts, "the encoder was ended by a picture; the original is sent");
        this.#noteDeath(reason);
        return { kind: "failed", reason };
      }
      default:
        return outcome satisfies never;
    }
  }

  #noteMade({ form, source }: ImageJob, bytes: number): void {
    const format = readImageForm(form)?.format ?? "same";
    this.#metrics.accel_agent_image_made_total.inc({ format });
    this.#metrics.accel_agent_image_source_bytes_total.inc({ format }, source.length);
    this.#metrics.accel_agent_image_form_bytes_total.inc({ format }, bytes);
  }

  #noteDeath(reason: string): void {
    if (this.#closing.signal.aborted) return;
    this.#metrics.accel_agent_image_encoder_ends_total.inc();
    this.#health.died(reason);
  }

  #strike(digest: string): void {
    const strikes = (this.#struck.get(digest) ?? 0) + 1;
    this.#struck.delete(digest);
    this.#struck.set(digest, strikes);
    const [oldest] = this.#struck.keys();
    if (this.#struck.size > struckMax && oldest !== undefined) this.#struck.delete(oldest);
  }

  #noteWaiting(): void {
    this.#metrics.accel_agent_image_waiting.set(this.#waiting.length);
  }
}

const unkept =
  "the day's number of pictures could not be written; after a restart a domain may have more of its day than it should";

/** Answers a worker that may be gone. A body goes without a copy. */
function answer(port: MessagePort, told: ImageAnswer): void {
  const { made } = told;
  if (made.kind !== "made") return port.postMessage(told);
  // The encoder's channel may have given a part of a larger buffer, and two workers may get the same.
  const body = new Uint8Array(made.body);
  port.postMessage({ no: told.no, made: { kind: "made", body } } satisfies ImageAnswer, [
    body.buffer,
  ]);
}

async function digestOf(source: Uint8Array): Promise<string> {
  // Of memory that is not shared: a worker's bytes were copied on their way here.
  const digest = await crypto.subtle.digest("SHA-256", new Uint8Array(source));
  return Buffer.from(digest).toString("hex");
}
