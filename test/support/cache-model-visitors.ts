// The visitors of the model check and the origin behind them: fetches, revalidations and variants that are begun, held and ended, and answers that
// are looked up, held and sent; each judged when it is sent.

import type { Entry, EntryKey, EntryMeta } from "../../src/agent/cache/entry.ts";
import type { ModelAgent, ModelWorker } from "./cache-model-agent.ts";
import { Violation, type Oracle } from "./cache-model-oracle.ts";
import { reached } from "./cache-model-time.ts";
import { pages, type Page } from "./cache-model-words.ts";

/** Faults of those who use the cache, planted by the test. */
export type VisitorBugs = {
  readonly lateSourceNo?: boolean;
  readonly refreshInserts?: boolean;
  readonly joinsBlindly?: boolean;
  readonly ignoresDigest?: boolean;
};

export type World = {
  readonly agent: ModelAgent;
  readonly oracle: Oracle;
  readonly now: number;
  /** How often everything may have gone, or what was in flight became too old to store. */
  readonly upheavals: number;
  /** Of the static files: changes with each activation. */
  readonly release: number;
  /** Whether what is stored stays. */
  readonly keeps: boolean;
  readonly bugs: VisitorBugs;
};

type Read = { readonly at: number; readonly mime: string; readonly digest: string };
type Fetch = {
  readonly page: Page;
  readonly worker: ModelWorker;
  readonly language: string;
  readonly mark: number;
  readonly sourceNo: number;
  readonly startedAt: number;
  readonly upheavals: number;
  /** When each visitor asked who shares it. */
  readonly askedAt: number[];
  read?: Read;
};
type Answer = {
  readonly page: Page;
  readonly worker: ModelWorker;
  readonly language: string;
  readonly base: Entry;
  readonly chosen: Entry;
  readonly text: string | undefined;
  readonly baseText: string;
};
type Revision = {
  readonly kind: "refresh" | "variant";
  readonly page: Page;
  readonly worker: ModelWorker;
  readonly language: string;
  readonly base: Entry;
  readonly text: string;
  readonly no: number;
};

const readHeader = "x-read";
const fileBytes = 40_000;

export class Visitors {
  readonly #world: World;
  readonly #outstanding = new Map<string, { count: number; isCrowd: boolean }>();
  #fetches: Fetch[] = [];
  #answers: Answer[] = [];
  #revisions: Revision[] = [];
  readonly counts = { served: 0, coded: 0, stored: 0, blocked: 0, failed: 0, missed: 0 };

  constructor(world: World) {
    this.#world = world;
  }

  /** The process has ended, and they with it. */
  end(): void {
    this.#fetches = [];
    this.#answers = [];
    this.#revisions = [];
    this.#outstanding.clear();
  }

  startFetch(a: number, b: number, c: number): void {
    const { page, worker, language } = this.#who(a, b, c);
    const mark = worker.cache.clearMark(page.domain);
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
    fetch.read = { at: this.#world.now, mime, digest: this.#digest(fetch.page) };
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
    await this.#store(worker, page, text, meta, {
      ...fetch,
      mime: read.mime,
      isFile,
      readAt: read.at,
    });
  }

  async #store(
    worker: ModelWorker,
    page: Page,
    text: string,
    meta: EntryMeta,
    about: {
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
    const leave = this.#enter(page, language);
    const writer = worker.cache.begin(keyOf(page));
    await writer.write(Buffer.from(text));
    const committed = writer.commit(meta);
    void committed.then(({ kind }) => {
      const wasAlone = leave();
      this.counts[kind]++;
      const world = this.#world;
      const mayBlock = (since: number): boolean => oracle.mayBlock(page, mime, since);
      if (kind === "blocked" && world.upheavals === about.upheavals && !mayBlock(about.startedAt))
        this.#broken = `${nameOf(page)}: refused, though no clear matched it`;
      const isUndisturbed = world.upheavals === about.upheavals && !mayBlock(submittedAt);
      if (kind === "stored" && wasAlone && isUndisturbed && world.keeps)
        oracle.keep(page, language, { body: text, at: world.now, isFile, mime });
    });
    if (isFile) await this.#sent(worker, committed);
  }

  /** What went wrong where nobody could throw. */
  #broken: string | undefined;

  judge(): void {
    if (this.#broken !== undefined) throw new Violation(this.#broken);
  }

  /** A file is written by the kernel's threads: the next step waits until its commit was sent. */
  async #sent(worker: ModelWorker, ended: Promise<unknown>): Promise<void> {
    let isEnded = false;
    const before = worker.threadLine.inbox.length;
    void ended.then(() => (isEnded = true));
    await reached("the commit is sent", () => isEnded || worker.threadLine.inbox.length > before);
  }

  async lookUp(a: number, b: number, c: number, isHeld: boolean): Promise<void> {
    const { page, worker, language } = this.#who(a, b, c);
    const found = worker.cache.find(keyOf(page));
    const base = this.#base(page, language, found);
    if (base === undefined) {
      this.#checkMiss(page, language, worker);
      return;
    }
    const variant = c % 3 === 0 ? found.find(({ baseId }) => baseId === base.id) : undefined;
    const baseText = page.kind === "static" ? (base.digest ?? "") : await textOf(worker, base);
    const text = variant === undefined ? baseText : await textOf(worker, variant);
    if (baseText === undefined) {
      this.#checkMiss(page, language, worker);
      return;
    }
    if (page.kind === "static" && baseText !== this.#digest(page))
      throw new Violation(`${nameOf(page)}: of an earlier release`);
    this.#answers.push({ page, worker, language, base, chosen: variant ?? base, text, baseText });
    if (!isHeld) this.#send(this.#answers.length - 1);
  }

  send(a: number): void {
    if (this.#answers.length > 0) this.#send(a % this.#answers.length);
  }

  #send(at: number): void {
    const [answer] = this.#answers.splice(at, 1);
    if (answer === undefined) return;
    const { page, worker, language, base, chosen, text, baseText } = answer;
    if (!worker.cache.servable(chosen)) {
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
        `${nameOf(page)}: served ${chosen.coding ?? "as it is"}, though cleared since it was read`,
      );
    if (chosen !== base && text !== `br:${baseText}`)
      throw new Violation(`${nameOf(page)}: a variant was made of something else than its base`);
    const kept = oracle.kept(page, language);
    if (kept !== undefined && page.kind === "generated" && kept.body !== baseText)
      throw new Violation(`${nameOf(page)}: served is not what was stored last`);
    if (page.kind === "static" && baseText === this.#digest(page))
      this.#keepNote(page, base, baseText);
  }

  /** A note has no answer: that it is there is known from being seen. */
  #keepNote(page: Page, base: Entry, body: string): void {
    const { oracle, now, keeps } = this.#world;
    if (!keeps || this.#outstanding.size > 0 || this.#world.agent.inboxes.length > 0) return;
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
    const { page, worker, language } = this.#who(a, b, c);
    const base = this.#base(page, language, worker.cache.find(keyOf(page)));
    if (base === undefined || (kind === "refresh" && page.kind === "static")) return;
    const text = page.kind === "static" ? (base.digest ?? "") : await textOf(worker, base);
    if (text !== undefined)
      this.#revisions.push({ kind, page, worker, language, base, text, no: c });
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
    const { kind, page, worker, language, base, text, no } = revision;
    const leave = this.#enter(page, language);
    if (kind === "variant") {
      const body = Buffer.from(`br:${text}`);
      const stored = worker.cache.storeVariant(base, "br", body).then(leave);
      if (body.length > fileBytes) await this.#sent(worker, stored);
      return;
    }
    const mime = no % 4 === 0 ? page.mimes[no % 8 === 0 ? 1 : 0] : base.mime;
    const { oracle, bugs, upheavals } = this.#world;
    if (mime !== base.mime) oracle.release(page, language);
    if (bugs.refreshInserts === true) {
      leave();
      const sourceNo = worker.cache.sourceNo();
      const readAt = Number(text.split("|")[1]);
      const about = {
        startedAt: 0,
        readAt,
        upheavals,
        language,
        mime,
        isFile: text.length > fileBytes,
      };
      await this.#store(
        worker,
        page,
        text,
        { ...metaOf({ mime, sourceNo, language, readAt }) },
        about,
      );
      return;
    }
    const { headers, storedAtMs } = base;
    const refreshed = { headers, mime, storedAtMs: storedAtMs + 1, initialAgeS: 0, freshForS: 60 };
    void worker.cache.refresh(base, refreshed).then(leave);
  }

  #base(page: Page, language: string, found: readonly Entry[]): Entry | undefined {
    const { bugs } = this.#world;
    return found.find(
      ({ coding, vary, digest }) =>
        coding === null &&
        (vary === null ? "" : vary["accept-language"]) === language &&
        (page.kind === "generated" || bugs.ignoresDigest === true || digest === this.#digest(page)),
    );
  }

  #who(a: number, b: number, c: number): { page: Page; worker: ModelWorker; language: string } {
    const page = pages[a % pages.length];
    const worker = this.#world.agent.workers[b % this.#world.agent.workers.length];
    if (page === undefined || worker === undefined) throw new Error("there are pages and workers");
    return { page, worker, language: page.varies ? (c % 2 === 0 ? "de" : "en") : "" };
  }

  #digest(page: Page): string {
    return `${page.no} of release ${this.#world.release}`;
  }

  /** Something is on its way to this place; the answer tells whether it was alone from its beginning to its end. */
  #enter(page: Page, language: string): () => boolean {
    const place = `${page.no} ${language}`;
    const company = this.#outstanding.get(place) ?? { count: 0, isCrowd: false };
    this.#outstanding.set(place, company);
    company.count++;
    company.isCrowd ||= company.count > 1;
    return () => {
      if (--company.count === 0 && this.#outstanding.get(place) === company)
        this.#outstanding.delete(place);
      return !company.isCrowd;
    };
  }
}

export function keyOf({ domain, host, kind, path, query }: Page): EntryKey {
  return { domain, host, kind, path, query };
}

export const nameOf = ({ host, kind, path, query }: Page): string =>
  `${host} ${kind} ${path}${query === "" ? "" : `?${query}`}`;

function metaOf(about: {
  mime: string;
  sourceNo: number;
  language: string;
  readAt: number;
}): EntryMeta {
  const { mime, sourceNo, language, readAt } = about;
  return {
    status: 200,
    headers: [[readHeader, String(readAt)]],
    mime,
    vary: language === "" ? null : { "accept-language": language },
    storedAtMs: 1_700_000_000_000,
    initialAgeS: 0,
    freshForS: 60,
    sourceNo,
    digest: null,
  };
}

/** What is served tells when its source was read, and of which page it is. */
function readAtOf(page: Page, base: Entry, text: string, language: string): number {
  if (page.kind === "static")
    return Number(base.headers.find(([name]) => name === readHeader)?.[1]);
  const [no, at, spoken] = text.split("|");
  if (Number(no) !== page.no || spoken !== language)
    throw new Violation(`${nameOf(page)}: served is another page`);
  return Number(at);
}

async function textOf({ cache }: ModelWorker, entry: Entry): Promise<string | undefined> {
  const body = await cache.open(entry);
  if (body === undefined || body instanceof Uint8Array)
    return body === undefined ? undefined : Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
