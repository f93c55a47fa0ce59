// What this host remembers of the versions of its domains, in agent.db: one book a domain, read and written
// whole. How a book changes is decided in core/serving/release-list.ts.

import type { Json } from "../../core/journal/canonical-json.ts";
import type { HeldRelease } from "../../core/serving/plan-activation.ts";
import {
  emptyBook,
  granted,
  inForceOf,
  isStillBad,
  withoutReleases,
  type Release,
  type ReleaseBook,
  type Wish,
} from "../../core/serving/release-list.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { AgentDb, Correction } from "../link/agent-db.ts";
import { documentOf } from "./serving.ts";

export type BookDocuments = Pick<AgentDb, "get" | "put" | "keys">;

const parts = ["viewset", "releases", "quarantine", "pin", "wish", "prepared"] as const;

type Changes = Readonly<Record<string, Json | null>>;

export class ReleaseBooks {
  /** The software release of this agent. */
  readonly release: string;
  readonly #documents: BookDocuments;
  /**
   * The books as they are in agent.db. They are kept in memory because each activation asks what the host
   * holds of all domains, which may be ten thousand.
   */
  readonly #books = new Map<string, ReleaseBook>();

  constructor(documents: BookDocuments, release: string) {
    this.#documents = documents;
    this.release = release;
    for (const part of parts)
      for (const key of documents.keys(`${part}:`)) {
        const domain = key.slice(part.length + 1);
        if (!this.#books.has(domain)) this.#books.set(domain, this.#read(domain));
      }
  }

  of(domain: string): ReleaseBook {
    return this.#books.get(domain) ?? emptyBook;
  }

  /** Returns all domains that have a book. */
  domains(): readonly string[] {
    return [...this.#books.keys()].sort();
  }

  /** Writes the book, and with it the version in force; both are durable when it returns. */
  commit(domain: string, book: ReleaseBook, corrections: readonly Correction[] = []): void {
    this.#put([domain], changesOf(domain, book), corrections);
  }

  /**
   * Forgets domains that are unlinked, or have no version any more. `more` goes into the same transaction.
   */
  forget(domains: readonly string[], more: Changes = {}): void {
    const keys = domains.flatMap((domain) => parts.map((part) => `${part}:${domain}`));
    const gone = Object.fromEntries(keys.map((key) => [key, null] as const));
    this.#put(domains, { ...more, ...gone }, []);
  }

  #put(domains: readonly string[], changes: Changes, corrections: readonly Correction[]): void {
    try {
      this.#documents.put(changes, corrections);
    } finally {
      // The books are read again even when it failed, for nobody knows how far it came.
      for (const domain of domains) {
        const book = this.#read(domain);
        if (book === emptyBook) this.#books.delete(domain);
        else this.#books.set(domain, book);
      }
    }
  }

  #read(domain: string): ReleaseBook {
    const documents = this.#documents;
    const all = documentOf(documents, `quarantine:${domain}`) ?? [];
    const quarantined = all.filter((bad) => isStillBad(bad, this.release));
    const wish = documentOf(documents, `wish:${domain}`) ?? null;
    const releases = documentOf(documents, `releases:${domain}`);
    const pin = documentOf(documents, `pin:${domain}`) ?? null;
    const prepared = documentOf(documents, `prepared:${domain}`) ?? null;
    if (releases !== undefined) return { releases, quarantined, pin, wish, prepared };
    const begun = this.#begun(domain, wish);
    const isEmpty = begun === emptyBook && quarantined.length === 0 && prepared === null;
    return isEmpty ? emptyBook : { ...begun, quarantined, prepared };
  }

  /** Returns the book that a domain begins with: it holds the version in force, if there is one. */
  #begun(domain: string, wish: Wish | null): ReleaseBook {
    const body = documentOf(this.#documents, `viewset:${domain}`);
    if (body === undefined) return wish === null ? emptyBook : { ...emptyBook, wish };
    const { domain: _, ...ref } = body;
    const at = new Date(0).toISOString();
    const begun = granted(emptyBook, { ...ref, entry: null }, { keep: 1, at });
    return wish === null ? begun : { ...begun, wish };
  }

  held(): readonly Omit<HeldRelease, "blobs">[] {
    return this.domains().flatMap((domain) => {
      const { releases, prepared } = this.of(domain);
      const needed = new Set([inForceOf({ releases })?.manifest, prepared?.manifest]);
      const held = releases.map(({ manifest, activated_at: activatedAt }) => ({
        domain,
        manifest,
        activatedAt,
        standing: needed.has(manifest) ? ("needed" as const) : ("kept" as const),
      }));
      if (prepared === null || releases.some(({ manifest }) => manifest === prepared.manifest))
        return held;
      const { manifest, until: activatedAt } = prepared;
      return [...held, { domain, manifest, activatedAt, standing: "needed" as const }];
    });
  }

  /** Gives up versions whose room is needed for another. */
  giveUp(given: readonly { readonly domain: string; readonly manifest: Sha256 }[]): void {
    for (const [domain, some] of Map.groupBy(given, (one) => one.domain)) {
      const book = this.of(domain);
      const gone = new Set(some.map(({ manifest }) => manifest));
      const releases = withoutReleases(book.releases, gone);
      this.commit(domain, { ...book, releases });
    }
  }
}

function changesOf(domain: string, book: ReleaseBook): Changes {
  const { releases, quarantined, pin, wish, prepared } = book;
  const inForce = inForceOf(book);
  return {
    ...(inForce !== undefined && { [`viewset:${domain}`]: bodyOf(domain, inForce) }),
    [`releases:${domain}`]: releases.length === 0 ? null : releases,
    [`quarantine:${domain}`]: quarantined.length === 0 ? null : quarantined,
    [`pin:${domain}`]: pin,
    [`wish:${domain}`]: wish,
    [`prepared:${domain}`]: prepared,
  };
}

function bodyOf(
  domain: string,
  { manifest, viewset_id, viewset_name }: Release,
): JournalBody<"viewset.activated"> {
  return { domain, manifest, viewset_id, viewset_name };
}
