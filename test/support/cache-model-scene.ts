// What the visitors of the model check share: the world as they see it, who asks for what, and how a response tells where it comes from.

import type { Entry, EntryKey, EntryMeta } from "../../src/agent/cache/entry.ts";
import type { ModelAgent, ModelWorker } from "./cache-model-agent.ts";
import { Violation, type Oracle } from "./cache-model-oracle.ts";
import { pages, tagsFor, type Page } from "./cache-model-words.ts";

/** Faults of those who use the cache, planted by the test. */
export type VisitorBugs = {
  readonly lateSourceNo?: boolean;
  readonly refreshInserts?: boolean;
  readonly joinsBlindly?: boolean;
  readonly ignoresDigest?: boolean;
  readonly lateConfirmedNo?: boolean;
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

export type Counts = Record<
  "served" | "stale" | "coded" | "stored" | "blocked" | "failed" | "missed" | "quick",
  number
>;
export type Who = { readonly page: Page; readonly worker: ModelWorker; readonly language: string };

const readHeader = "x-read";
const confirmedHeader = "x-confirmed";

/** Any three numbers name a page, a worker and a language. */
export function whoOf({ agent: { workers } }: World, a: number, b: number, c: number): Who {
  const page = pages[a % pages.length];
  const worker = workers[b % workers.length];
  if (page === undefined || worker === undefined) throw new Error("there are pages and workers");
  return { page, worker, language: page.varies ? (c % 2 === 0 ? "de" : "en") : "" };
}

/** Of a static file, as it is now. */
export function digestOf({ release }: World, page: Page): string {
  return `${page.no} of release ${release}`;
}

/** What answers of what was found; a coded one never does by itself. */
export function baseOf(
  world: World,
  { page, language }: Who,
  found: readonly Entry[],
): Entry | undefined {
  const { bugs } = world;
  return found.find(
    ({ form, vary, digest }) =>
      form === null &&
      (vary === null ? "" : vary["accept-language"]) === language &&
      (page.kind === "generated" ||
        bugs.ignoresDigest === true ||
        digest === digestOf(world, page)),
  );
}

/** What is on its way to each place. */
export class Places {
  readonly #outstanding = new Map<string, { count: number; isCrowd: boolean }>();

  get isQuiet(): boolean {
    return this.#outstanding.size === 0;
  }

  clear(): void {
    this.#outstanding.clear();
  }

  /** Something is on its way to this place; the answer tells whether it was alone from its beginning to its end. */
  enter({ page, language }: Pick<Who, "page" | "language">): () => boolean {
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

export function metaOf(about: {
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
    tags: tagsFor(mime),
    vary: language === "" ? null : { "accept-language": language },
    storedAtMs: 1_700_000_000_000,
    initialAgeS: 0,
    freshForS: 60,
    sourceNo,
    digest: null,
  };
}

/** The head of a response that its source confirmed then. */
export function confirmedHeaders(base: Entry, at: number): Entry["headers"] {
  const said = base.headers.filter(([name]) => name !== confirmedHeader);
  return [...said, [confirmedHeader, String(at)]];
}

/** When the source of a response confirmed it, or was read. */
export function confirmedAtOf({ headers }: Entry, readAt: number): number {
  return Number(headers.find(([name]) => name === confirmedHeader)?.[1] ?? readAt);
}

/** What is served tells when its source was read, and of which page it is. */
export function readAtOf(page: Page, base: Entry, text: string, language: string): number {
  if (page.kind === "static")
    return Number(base.headers.find(([name]) => name === readHeader)?.[1]);
  const [no, at, spoken] = text.split("|");
  if (Number(no) !== page.no || spoken !== language)
    throw new Violation(`${nameOf(page)}: served is another page`);
  return Number(at);
}

export async function textOf({ cache }: ModelWorker, entry: Entry): Promise<string | undefined> {
  const body = await cache.open(entry);
  if (body === undefined || body instanceof Uint8Array)
    return body === undefined ? undefined : Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
