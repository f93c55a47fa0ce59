// The visitors of the model check and what is done for them: answers that are looked up, held and sent, each judged when it is sent; revalidations and
// variants that are begun, held and ended.

import type { Entry, VariantForm } from "../../src/agent/cache/entry.ts";
import type { HeldEntries } from "../../src/agent/cache/worker/hot-lookups.ts";
import type { ModelWorker } from "./cache-model-agent.ts";
import { Fetches, fileBytes } from "./cache-model-fetches.ts";
import { Violation } from "./cache-model-oracle.ts";
import {
  baseOf,
  confirmedAtOf,
  confirmedHeaders,
  digestOf,
  keyOf,
  metaOf,
  nameOf,
  Places,
  readAtOf,
  textOf,
  whoOf,
  type Counts,
  type Who,
  type World,
} from "./cache-model-scene.ts";
import { tagsFor, type Page } from "./cache-model-words.ts";

type Answer = Who & {
  readonly base: Entry;
  readonly chosen: Entry;
  readonly text: string | undefined;
  readonly baseText: string;
  /** Since when it was stale by a soft clear as it was chosen, ms. */
  readonly softenedMs: number | undefined;
};
type Revision = Who & {
  readonly kind: "refresh" | "variant";
  readonly base: Entry;
  readonly text: string;
  readonly no: number;
  /** When its source confirmed it, and the number of the newest clear before. */
  readonly confirmedAt: number;
  readonly confirmedNo: number;
};

/** What variants are made as: a coding, and forms of pictures. */
const variantForms: readonly VariantForm[] = ["br", "avif-640", "webp"];

export class Visitors {
  readonly counts: Counts = {
    served: 0,
    stale: 0,
    coded: 0,
    stored: 0,
    blocked: 0,
    failed: 0,
    missed: 0,
    quick: 0,
  };
  readonly #world: World;
  readonly #places = new Places();
  readonly #fetches: Fetches;
  #answers: Answer[] = [];
  #revisions: Revision[] = [];
  /** What the lane of each worker keeps of a page, and of a body the text. */
  #kept = new WeakMap<ModelWorker, Map<Page, HeldEntries>>();
  readonly #prepared = new WeakMap<Entry, string>();

  constructor(world: World) {
    this.#world = world;
    this.#fetches = new Fetches(world, this.#places, this.counts);
  }

  get fetches(): Fetches {
    return this.#fetches;
  }

  /** The process has ended, and they with it. */
  end(): void {
    this.#fetches.end();
    this.#answers = [];
    this.#revisions = [];
    this.#places.clear();
  }

  async lookUp(a: number, b: number, c: number, isHeld: boolean): Promise<void> {
    const who = whoOf(this.#world, a, b, c);
    const { page, worker, language } = who;
    const found = worker.cache.find(keyOf(page));
    const base = baseOf(this.#world, who, found);
    if (base === undefined) {
      this.#checkMiss(page, language, worker);
      return;
    }
    const softenedMs = worker.cache.softenedSinceMs(base);
    const variant = c % 3 === 0 ? found.find(({ baseId }) => baseId === base.id) : undefined;
    const baseText = page.kind === "static" ? (base.digest ?? "") : await textOf(worker, base);
    const text = variant === undefined ? baseText : await textOf(worker, variant);
    if (baseText === undefined) {
      this.#checkMiss(page, language, worker);
      return;
    }
    if (page.kind === "static" && baseText !== digestOf(this.#world, page))
      throw new Violation(`${nameOf(page)}: of an earlier release`);
    const chosen = variant ?? base;
    this.#answers.push({ page, worker, language, base, chosen, text, baseText, softenedMs });
    if (!isHeld) this.#send(this.#answers.length - 1);
  }

  /** As the lane answers: in one step, with what it kept while that is current; else as everybody does. */
  async quick(a: number, b: number, c: number): Promise<void> {
    const who = whoOf(this.#world, a, b, c);
    const { page, worker } = who;
    const { cache } = worker;
    const kept = this.#kept.get(worker) ?? new Map<Page, HeldEntries>();
    this.#kept.set(worker, kept);
    const before = kept.get(page);
    const held =
      before !== undefined && cache.isCurrent(before) ? before : cache.findHeld(keyOf(page));
    if (held === undefined) return this.lookUp(a, b, c, false);
    kept.set(page, held);
    const { entries } = held;
    const servable = entries.filter((entry) => cache.servable(entry));
    const base = baseOf(this.#world, who, servable);
    if (base === undefined || page.kind === "static" || cache.softened(base))
      return this.lookUp(a, b, c, false);
    const variant = c % 3 === 0 ? servable.find(({ baseId }) => baseId === base.id) : undefined;
    const [baseText, text] = [this.#textAtHand(worker, base), this.#textAtHand(worker, variant)];
    if (baseText === undefined || (variant !== undefined && text === undefined))
      return this.lookUp(a, b, c, false);
    const chosen = variant ?? base;
    const now = cache.find(keyOf(page)).find(({ id }) => id === chosen.id);
    if (now !== undefined && now.storedAtMs !== chosen.storedAtMs)
      throw new Violation(`${nameOf(page)}: served as it was before it was confirmed`);
    cache.noteHit(held, chosen);
    this.counts.quick++;
    const softenedMs = undefined;
    this.#answers.push({ ...who, base, chosen, text: text ?? baseText, baseText, softenedMs });
    this.#send(this.#answers.length - 1);
    return undefined;
  }

  #textAtHand({ cache }: ModelWorker, entry: Entry | undefined): string | undefined {
    if (entry === undefined) return undefined;
    const known = this.#prepared.get(entry);
    if (known !== undefined) return known;
    const bytes = cache.held(entry);
    if (bytes === undefined) return undefined;
    const text = Buffer.from(bytes).toString();
    this.#prepared.set(entry, text);
    return text;
  }

  send(a: number): void {
    if (this.#answers.length > 0) this.#send(a % this.#answers.length);
  }

  #send(at: number): void {
    const [answer] = this.#answers.splice(at, 1);
    if (answer === undefined) return;
    const { page, worker, language, base, chosen, text, baseText, softenedMs } = answer;
    const isStaleNow = softenedMs === undefined && worker.cache.softened(chosen);
    if (!worker.cache.servable(chosen) || isStaleNow) {
      this.counts.missed++;
      return;
    }
    if (text === undefined) return; // Its base is served instead.
    this.counts.served++;
    if (chosen !== base) this.counts.coded++;
    const { oracle, now } = this.#world;
    const readAt = readAtOf(page, base, baseText, language);
    if (oracle.isStale(page, base.mime, readAt, now))
      throw new Violation(
        `${nameOf(page)}: served ${chosen.form ?? "as it is"}, though cleared since it was read`,
      );
    if (chosen !== base && text !== `${chosen.form}:${baseText}`)
      throw new Violation(`${nameOf(page)}: a variant was made of something else than its base`);
    const kept = oracle.kept(page, language);
    this.#judgeFreshness(answer, readAt, kept);
    if (kept !== undefined && page.kind === "generated" && kept.body !== baseText)
      throw new Violation(`${nameOf(page)}: served is not what was stored last`);
    if (page.kind === "static" && baseText === digestOf(this.#world, page))
      this.#keepNote(page, base, baseText);
  }

  /** By the base, of which a coded one has its freshness. */
  #judgeFreshness(
    { page, worker, base, softenedMs }: Answer,
    readAt: number,
    kept: ReturnType<World["oracle"]["kept"]>,
  ): void {
    if (page.kind === "static") return; // Its digest tells whether it is what is to be served.
    const { oracle, now, keeps } = this.#world;
    if (softenedMs !== undefined) {
      this.counts.stale++;
      if (softenedMs > 1_000 * oracle.softenedBy(page, base.mime, confirmedAtOf(base, readAt)))
        throw new Violation(`${nameOf(page)}: stale for longer than is told`);
      if (keeps && kept?.isFresh === true)
        throw new Violation(`${nameOf(page)}: stale without a cause`);
      return;
    }
    // Confirmed while it was held, it is what was confirmed.
    const current = worker.cache.find(keyOf(page)).find(({ id }) => id === base.id) ?? base;
    if (oracle.softenedBy(page, base.mime, confirmedAtOf(current, readAt)) <= now)
      throw new Violation(`${nameOf(page)}: fresh, though cleared softly since it was confirmed`);
  }

  /** A note has no answer: that it is there is known from being seen. */
  #keepNote(page: Page, base: Entry, body: string): void {
    const { oracle, now, keeps } = this.#world;
    if (!keeps || !this.#places.isQuiet || this.#world.agent.inboxes.length > 0) return;
    if (oracle.mayBlock(page, base.mime, now)) return;
    oracle.keep(page, "", { body, at: now, isFile: false, mime: base.mime });
  }

  #checkMiss(page: Page, language: string, worker: ModelWorker): void {
    this.counts.missed++;
    const { incarnation } = this.#world.agent.header;
    if (incarnation === 0 || worker.incarnation !== incarnation) return;
    if (this.#world.oracle.kept(page, language) !== undefined)
      throw new Violation(`${nameOf(page)}: gone without a cause`);
  }

  /** A revalidation or a compression begins: with what is there now. */
  async startRevision(kind: "refresh" | "variant", a: number, b: number, c: number): Promise<void> {
    const who = whoOf(this.#world, a, b, c);
    const { page, worker } = who;
    const base = baseOf(this.#world, who, worker.cache.find(keyOf(page)));
    if (base === undefined || (kind === "refresh" && page.kind === "static")) return;
    const text = page.kind === "static" ? (base.digest ?? "") : await textOf(worker, base);
    const { now: confirmedAt } = this.#world;
    const confirmedNo = worker.cache.sourceNo();
    if (text !== undefined)
      this.#revisions.push({ kind, ...who, base, text, no: c, confirmedAt, confirmedNo });
  }

  /** A compression during which nothing else happens. */
  async code(a: number, b: number, c: number): Promise<void> {
    const before = this.#revisions.length;
    await this.startRevision("variant", a, b, c);
    if (this.#revisions.length > before) await this.finishRevision(before);
  }

  async finishRevision(a: number): Promise<void> {
    const [revision] = this.#revisions.splice(a % Math.max(1, this.#revisions.length), 1);
    if (revision === undefined) return;
    const { kind, page, worker, language, base, text, no, confirmedAt } = revision;
    const leave = this.#places.enter({ page, language });
    if (kind === "variant") {
      const form = variantForms[no % variantForms.length] ?? "br";
      const body = Buffer.from(`${form}:${text}`);
      const stored = worker.cache.storeVariant(base, form, body).then(leave);
      if (body.length > fileBytes) await this.#fetches.sent(worker, stored);
      return;
    }
    const mime = no % 4 === 0 ? page.mimes[no % 8 === 0 ? 1 : 0] : base.mime;
    const { oracle, bugs, upheavals } = this.#world;
    if (mime !== base.mime) oracle.release(page, language);
    if (bugs.refreshInserts === true) {
      leave();
      const sourceNo = worker.cache.sourceNo();
      const invalidationMark = worker.cache.invalidationMark(keyOf(page));
      const readAt = Number(text.split("|")[1]);
      const about = {
        invalidationMark,
        startedAt: 0,
        readAt,
        upheavals,
        language,
        mime,
        isFile: text.length > fileBytes,
      };
      await this.#fetches.store(
        worker,
        page,
        text,
        { ...metaOf({ mime, sourceNo, language, readAt }) },
        about,
      );
      return;
    }
    const { storedAtMs } = base;
    const isLate = bugs.lateConfirmedNo === true;
    const refreshed = {
      headers: confirmedHeaders(base, confirmedAt),
      confirmedNo: isLate ? worker.cache.sourceNo() : revision.confirmedNo,
      mime,
      tags: tagsFor(mime),
      storedAtMs: storedAtMs + 1,
      initialAgeS: 0,
      freshForS: 60,
    };
    void worker.cache.refresh(base, refreshed).then(leave);
  }
}
