// Has the forms of pictures made in the background, while visitors get what there is.
//
// A job holds no bytes while it waits: its source is read when its turn comes. What the encoder says of some bytes is remembered as long as they are stored.
// What failed rests, and so does a domain whose number of the day is spent: nobody is asked again for each request.

import { messageOf } from "../../../core/faults.ts";
import type { ImageForm } from "../../../core/images/image-form.ts";
import { formatOf, utcDayEndMs } from "../../../core/images/image-forms.ts";
import { savesEnough } from "../../../core/images/image-limits.ts";
import { pictureFormat } from "../../../core/images/picture-head.ts";
import type { SiteConfig } from "../../../core/serving/effective-devlove.ts";
import type { Entry } from "../../cache/entry.ts";
import type { ImageEncoder, ImageJob, ImageMade } from "../../images/image-encoder.ts";
import type { WorkerClock } from "../clock.ts";
import type { PoolWords } from "../pool/shared-words.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import type { ResponseCache } from "./cache-port.ts";
import { FormQueue } from "./form-queue.ts";

type Settings = Pick<SiteConfig["images"], "quality" | "variants_per_day_max">;

export type ImageOffer = {
  readonly base: Entry;
  /** The forms that are wanted, best first: the first that is not known to be worthless is made. */
  readonly forms: readonly ImageForm[];
  readonly settings: Settings;
  /** Exactly the bytes of the base; undefined where they are not to be had any more. */
  readonly read: () => Promise<Uint8Array | undefined>;
};

type ImageWork = Omit<ImageOffer, "forms"> & { readonly form: ImageForm };

export type ImageMakerOptions = {
  readonly cache: ResponseCache;
  /** Undefined: nothing is made. */
  readonly encoder: ImageEncoder | undefined;
  readonly words: Pick<PoolWords, "imageTurn">;
  /** The worker's number. */
  readonly no: number;
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
};

/** The most pictures of which something is remembered, of some 200 bytes each. */
const knownMax = 8_192;
/** The pause of everything after a failure: a full disk must not keep a processor busy. */
const restMs = 10_000;
/** The pause of a picture that could not be made: it may take the encoder's whole time again. */
const pictureRestMs = 600_000;
/** The pause where the host has no encoder. */
const absentRestMs = 600_000;

/** What was found of the bytes of an entry. */
type Known = { isUnreadable: boolean; readonly worthless: Set<ImageForm>; restsToMs: number };

/** The number of the day that a domain has spent, and until when that holds, by the wall clock. */
type Spent = { readonly perDayMax: number; readonly untilMs: number };

type Outcome = ImageMade["kind"] | "cleared" | "gone" | "dropped";

/** Disposing drops what waits and does not wait for the encoder; a form that is being made then is not stored. */
export class ImageMaker implements AsyncDisposable {
  readonly #options: ImageMakerOptions;
  readonly #queue: FormQueue<ImageWork>;
  readonly #known = new Map<string, Known>();
  /** The same for entries that are in memory: a hot one is offered with each request. */
  readonly #knownNow = new WeakMap<Entry, Known>();
  /** By main domain. */
  readonly #spent = new Map<string, Spent>();
  readonly #stop = new AbortController();
  #restsToMs = 0;

  constructor(options: ImageMakerOptions) {
    this.#options = options;
    const { no, words } = options;
    const turn = words.imageTurn;
    this.#queue = new FormQueue({ turn, no, run: async (work) => this.#run(work) });
  }

  /** Offers a picture. Never throws, never blocks. */
  offer({ base, forms, settings, read }: ImageOffer): void {
    if (this.#queue.isStopped) return;
    const known = this.#find(base);
    if (known?.isUnreadable === true) return;
    const form = forms.find((one) => known?.worthless.has(one) !== true);
    if (form === undefined) return;
    const name = `${form} ${nameOf(base)}`;
    if (this.#queue.has(name)) return;
    const held = this.#heldBack(base, settings, known);
    if (held !== undefined) this.#count(form, held);
    else this.#queue.add(name, { base, form, settings, read });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#queue[Symbol.asyncDispose]();
  }

  /** Returns why the picture is not taken now. */
  #heldBack(
    { domain }: Entry,
    { variants_per_day_max: perDayMax }: Settings,
    known: Known | undefined,
  ): Outcome | undefined {
    const { clock, encoder } = this.#options;
    if (encoder === undefined) return "absent";
    if (perDayMax === 0 || this.#isSpent(domain, perDayMax)) return "blocked";
    const nowMs = clock.steadyMs();
    const rests = nowMs < this.#restsToMs || nowMs < (known?.restsToMs ?? 0);
    return rests || this.#queue.isFull ? "dropped" : undefined;
  }

  /** More than the number that is spent may be allowed by now. */
  #isSpent(domain: string, perDayMax: number): boolean {
    const spent = this.#spent.get(domain);
    if (spent === undefined) return false;
    if (perDayMax <= spent.perDayMax && this.#options.clock.wallMs() < spent.untilMs) return true;
    this.#spent.delete(domain);
    return false;
  }

  async #run(work: ImageWork): Promise<void> {
    let made: Exclude<ImageMade, { kind: "made" }> | { readonly kind: "made" | "cleared" | "gone" };
    try {
      made = await this.#make(work);
    } catch (error) {
      made = { kind: "failed", reason: messageOf(error) };
    }
    this.#count(work.form, made.kind);
    const { base, form } = work;
    switch (made.kind) {
      case "made":
      case "cleared":
      case "gone":
        return;
      case "worthless":
        this.#note(base).worthless.add(form);
        return;
      case "unreadable":
        this.#note(base).isUnreadable = true;
        this.#tell(work, "no variants of an image: it is not taken", made.reason);
        return;
      case "blocked":
        this.#spend(work);
        return;
      case "failed":
        this.#rest(restMs);
        this.#note(base).restsToMs = this.#options.clock.steadyMs() + pictureRestMs;
        this.#tell(work, "no variant of an image made", made.reason);
        return;
      case "absent":
        this.#rest(absentRestMs);
        this.#tell(work, "no variants of images: this host has no encoder", made.reason);
        return;
      default:
        made satisfies never;
    }
  }

  async #make({
    base,
    form,
    settings,
    read,
  }: ImageWork): Promise<
    Exclude<ImageMade, { kind: "made" }> | { readonly kind: "made" | "cleared" | "gone" }
  > {
    const { cache, encoder, metrics } = this.#options;
    if (encoder === undefined || this.#queue.isStopped || !cache.servable(base)) return gone;
    // Another worker may have been faster.
    if (cache.find(base).some((entry) => entry.baseId === base.id && entry.form === form))
      return gone;
    const source = await read();
    if (source === undefined || source.length !== base.size) return gone;
    const format = pictureFormat(source);
    if (`image/${format}` !== base.mime)
      return { kind: "unreadable", reason: `it is said to be ${base.mime}, and is ${format ?? "no picture"}` }; // prettier-ignore
    const { quality, variants_per_day_max: perDayMax } = settings;
    const { domain } = base;
    const made = await this.#ask(encoder, { domain, perDayMax, source, form, quality });
    if (made.kind !== "made") return made;
    const { body } = made;
    if (!savesEnough(base.size, body.length)) return { kind: "worthless" };
    if (this.#queue.isStopped) return gone;
    const outcome = await cache.storeVariant(base, form, body);
    if (outcome.kind === "failed") return outcome;
    if (outcome.kind === "blocked") return { kind: "cleared" };
    metrics.accel_agent_image_variant_bytes_made_total.inc({ format: formatOf(form) }, body.length);
    return { kind: "made" };
  }

  /** Asks the encoder, which may take its time; who stops does not wait for it. */
  async #ask(encoder: ImageEncoder, job: ImageJob): Promise<ImageMade | typeof gone> {
    const { signal } = this.#stop;
    const { promise, resolve, reject } = Promise.withResolvers<ImageMade | typeof gone>();
    const leave = (): void => resolve(gone);
    signal.addEventListener("abort", leave);
    try {
      encoder.make(job).then(resolve, reject);
      return await promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  #spend({ base: { domain }, settings }: ImageWork): void {
    const nowMs = this.#options.clock.wallMs();
    for (const [other, { untilMs }] of this.#spent) if (untilMs <= nowMs) this.#spent.delete(other);
    const { variants_per_day_max: perDayMax } = settings;
    this.#spent.set(domain, { perDayMax, untilMs: utcDayEndMs(nowMs) });
  }

  #rest(ms: number): void {
    const toMs = this.#options.clock.steadyMs() + ms;
    this.#restsToMs = Math.max(this.#restsToMs, toMs);
  }

  #count(form: ImageForm, outcome: Outcome): void {
    const { metrics } = this.#options;
    metrics.accel_agent_image_variants_total.inc({ format: formatOf(form), outcome });
  }

  #tell({ base: { domain, host, path }, form }: ImageWork, what: string, reason: string): void {
    const { problems } = this.#options;
    problems.tell("warn", domain, what, new Error(`${host} ${path} as ${form}: ${reason}`));
  }

  #find(base: Entry): Known | undefined {
    const now = this.#knownNow.get(base);
    if (now !== undefined) return now;
    const known = this.#known.get(nameOf(base));
    if (known !== undefined) this.#knownNow.set(base, known);
    return known;
  }

  #note(base: Entry): Known {
    const found = this.#find(base);
    if (found !== undefined) return found;
    const [oldest] = this.#known.keys();
    if (this.#known.size >= knownMax && oldest !== undefined) this.#known.delete(oldest);
    const known: Known = { isUnreadable: false, worthless: new Set(), restsToMs: 0 };
    this.#known.set(nameOf(base), known);
    return known;
  }
}

const gone = { kind: "gone" } as const;

/** Ids are counted anew in a new index: the rest tells the entries apart then. */
function nameOf({ id, sourceNo, size, digest }: Entry): string {
  return `${id} ${sourceNo} ${size} ${digest ?? ""}`;
}
