// Fetches of the model check: begun, read at the origin, shared, ended and stored, each at its time.

import type { EntryMeta } from "../../src/agent/cache/entry.ts";
import type { ModelWorker } from "./cache-model-agent.ts";
import { Violation } from "./cache-model-oracle.ts";
import {
  digestOf,
  keyOf,
  metaOf,
  nameOf,
  whoOf,
  type Counts,
  type Places,
  type World,
} from "./cache-model-scene.ts";
import { reached } from "./cache-model-time.ts";
import type { Page } from "./cache-model-words.ts";

type Read = { readonly at: number; readonly mime: string; readonly digest: string };
type Fetch = {
  readonly page: Page;
  readonly worker: ModelWorker;
  readonly language: string;
  readonly mark: number;
  readonly invalidationMark: number;
  readonly sourceNo: number;
  readonly startedAt: number;
  readonly upheavals: number;
  /** When each visitor asked who shares it. */
  readonly askedAt: number[];
  read?: Read;
};
/** Of a body that is a file. */
export const fileBytes = 40_000;

export class Fetches {
  readonly #world: World;
  readonly #places: Places;
  readonly #counts: Counts;
  #fetches: Fetch[] = [];

  constructor(world: World, places: Places, counts: Counts) {
    this.#world = world;
    this.#places = places;
    this.#counts = counts;
  }

  end(): void {
    this.#fetches = [];
  }

  startFetch(a: number, b: number, c: number): void {
    const { page, worker, language } = whoOf(this.#world, a, b, c);
    const invalidationMark = worker.cache.invalidationMark(keyOf(page));
    const mark = worker.cache.clearMark(page);
    const { now, upheavals, bugs } = this.#world;
    const shared = this.#fetches.find(
      (fetch) =>
        fetch.page === page &&
        fetch.worker === worker &&
        fetch.language === language &&
        (fetch.mark === mark || bugs.joinsBlindly === true),
    );
    if (shared !== undefined) {
      shared.askedAt.push(now);
      return;
    }
    const sourceNo = worker.cache.sourceNo();
    this.#fetches.push({
      page,
      worker,
      language,
      mark,
      invalidationMark,
      sourceNo,
      startedAt: now,
      upheavals,
      askedAt: [now],
    });
  }

  /** A fetch during which nothing else happens. */
  async fill(a: number, b: number, c: number): Promise<void> {
    const before = this.#fetches.length;
    this.startFetch(a, b, c);
    if (this.#fetches.length === before) return; // It shares one.
    const fetch = this.#fetches.at(-1);
    if (fetch !== undefined) await this.#finish(fetch, this.#read(fetch, c), c);
  }

  readSource(a: number, c: number): void {
    const waiting = this.#fetches.filter(({ read }) => read === undefined);
    const fetch = waiting[a % waiting.length];
    if (fetch !== undefined) this.#read(fetch, c);
  }

  #read(fetch: Fetch, c: number): Read {
    const mime = fetch.page.mimes[c % 8 === 0 ? 1 : 0];
    fetch.read = { at: this.#world.now, mime, digest: digestOf(this.#world, fetch.page) };
    return fetch.read;
  }

  async finishFetch(a: number, c: number): Promise<void> {
    const complete = this.#fetches.filter(({ read }) => read !== undefined);
    const fetch = complete[a % complete.length];
    if (fetch?.read !== undefined) await this.#finish(fetch, fetch.read, c);
  }

  async #finish(fetch: Fetch, read: Read, c: number): Promise<void> {
    this.#fetches.splice(this.#fetches.indexOf(fetch), 1);
    const { oracle, bugs } = this.#world;
    const { page, worker, language } = fetch;
    for (const askedAt of fetch.askedAt)
      if (oracle.isStale(page, read.mime, read.at, askedAt))
        throw new Violation(
          `${nameOf(page)}: a visitor who came after a clear shares what was read before it`,
        );
    const isFile = c % 40 === 0;
    const text = `${page.no}|${read.at}|${language}|${isFile ? "x".repeat(fileBytes) : ""}`;
    const sourceNo = bugs.lateSourceNo === true ? worker.cache.sourceNo() : fetch.sourceNo;
    const meta = metaOf({ mime: read.mime, sourceNo, language, readAt: read.at });
    if (page.kind === "static") {
      oracle.release(page, language);
      worker.cache.noteStatic(keyOf(page), { ...meta, vary: null, digest: read.digest }, 10);
      return;
    }
    await this.store(worker, page, text, meta, {
      ...fetch,
      mime: read.mime,
      isFile,
      readAt: read.at,
    });
  }

  async store(
    worker: ModelWorker,
    page: Page,
    text: string,
    meta: EntryMeta,
    about: {
      invalidationMark: number;
      startedAt: number;
      readAt: number;
      upheavals: number;
      language: string;
      mime: string;
      isFile: boolean;
    },
  ): Promise<void> {
    const { oracle, now: submittedAt } = this.#world;
    const { language, mime, isFile } = about;
    oracle.release(page, about.upheavals === this.#world.upheavals ? language : undefined);
    const leave = this.#places.enter({ page, language });
    const writer = worker.cache.begin(keyOf(page), about.invalidationMark);
    await writer.write(Buffer.from(text));
    const committed = writer.commit(meta);
    const settle = async (): Promise<void> => {
      const { kind } = await committed;
      const wasAlone = leave();
      this.#counts[kind]++;
      const world = this.#world;
      const mayBlock = (since: number): boolean => oracle.mayBlock(page, mime, since);
      if (kind === "blocked" && world.upheavals === about.upheavals && !mayBlock(about.startedAt))
        this.#broken = `${nameOf(page)}: refused, though no clear matched it`;
      const isUndisturbed = world.upheavals === about.upheavals && !mayBlock(submittedAt);
      if (kind === "stored" && wasAlone && isUndisturbed && world.keeps)
        oracle.keep(page, language, { body: text, at: world.now, isFile, mime });
    };
    void settle();
    if (isFile) await this.sent(worker, committed);
  }

  /** What went wrong where nobody could throw. */
  #broken: string | undefined;

  judge(): void {
    if (this.#broken !== undefined) throw new Violation(this.#broken);
  }

  /** A file is written by the kernel's threads: the next step waits until its commit was sent. */
  async sent(worker: ModelWorker, ended: Promise<unknown>): Promise<void> {
    let isEnded = false;
    const before = worker.threadLine.inbox.length;
    void ended.then(() => (isEnded = true));
    await reached("the commit is sent", () => isEnded || worker.threadLine.inbox.length > before);
  }
}
