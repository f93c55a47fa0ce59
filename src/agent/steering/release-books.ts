// What this host remembers of the versions of its domains, in agent.db: read and written whole, one book a domain. What becomes of a book is
// decided in core/release-list.ts.

import type { Json } from "../../core/canonical-json.ts";
import type { HeldRelease } from "../../core/plan-activation.ts";
import {
  emptyBook,
  granted,
  inForceOf,
  withoutReleases,
  type Release,
  type ReleaseBook,
  type Wish,
} from "../../core/release-list.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { Documents } from "./ports.ts";
import { documentOf } from "./serving.ts";

export type BookDocuments = Documents & { keys(prefix: string): readonly string[] };

const parts = ["releases", "quarantine", "pin", "wish"] as const;

export class ReleaseBooks {
  readonly #documents: BookDocuments;

  constructor(documents: BookDocuments) {
    this.#documents = documents;
  }

  of(domain: string): ReleaseBook {
    const documents = this.#documents;
    const quarantined = documentOf(documents, `quarantine:${domain}`) ?? [];
    const wish = documentOf(documents, `wish:${domain}`) ?? null;
    const releases = documentOf(documents, `releases:${domain}`);
    if (releases === undefined) return { ...this.#begun(domain, wish), quarantined };
    return { releases, quarantined, pin: documentOf(documents, `pin:${domain}`) ?? null, wish };
  }

  /** What a book that nobody has written yet begins with: the version in force, where there is one. */
  #begun(domain: string, wish: Wish | null): ReleaseBook {
    const body = documentOf(this.#documents, `viewset:${domain}`);
    if (body === undefined) return { ...emptyBook, wish };
    const { domain: _, ...ref } = body;
    const at = new Date(0).toISOString();
    const begun = granted(emptyBook, { ...ref, entry: null }, { keep: 1, at });
    return wish === null ? begun : { ...begun, wish };
  }

  /** For the transaction that makes it so, the version in force among it. */
  changes(domain: string, book: ReleaseBook): Readonly<Record<string, Json | null>> {
    const { releases, quarantined, pin, wish } = book;
    const inForce = inForceOf(book);
    return {
      ...(inForce !== undefined && { [`viewset:${domain}`]: bodyOf(domain, inForce) }),
      [`releases:${domain}`]: releases.length === 0 ? null : releases,
      [`quarantine:${domain}`]: quarantined.length === 0 ? null : quarantined,
      [`pin:${domain}`]: pin,
      [`wish:${domain}`]: wish,
    };
  }

  /** Of all domains that have a book. */
  domains(): readonly string[] {
    const keys = parts.flatMap((part) =>
      this.#documents.keys(`${part}:`).map((key) => key.slice(part.length + 1)),
    );
    const begun = this.#documents.keys("viewset:").map((key) => key.slice("viewset:".length));
    return [...new Set([...keys, ...begun])].sort();
  }

  held(): readonly Omit<HeldRelease, "blobs">[] {
    return this.domains().flatMap((domain) => {
      const book = this.of(domain);
      const needed = inForceOf(book)?.manifest;
      return book.releases.map(({ manifest, activated_at: activatedAt }) => ({
        domain,
        manifest,
        activatedAt,
        standing: manifest === needed ? ("needed" as const) : ("kept" as const),
      }));
    });
  }

  /** Their room is needed for another. */
  giveUp(given: readonly { readonly domain: string; readonly manifest: Sha256 }[]): void {
    for (const [domain, some] of Map.groupBy(given, (one) => one.domain)) {
      const book = this.of(domain);
      const gone = new Set(some.map(({ manifest }) => manifest));
      const releases = withoutReleases(book.releases, gone);
      this.#documents.put(this.changes(domain, { ...book, releases }));
    }
  }
}

/** For the transaction that unlinks domains, or takes their versions away. */
export function forgottenReleases(domains: readonly string[]): Readonly<Record<string, null>> {
  const keys = domains.flatMap((domain) =>
    ["viewset", ...parts].map((part) => `${part}:${domain}`),
  );
  return Object.fromEntries(keys.map((key) => [key, null] as const));
}

function bodyOf(
  domain: string,
  { manifest, viewset_id, viewset_name }: Release,
): JournalBody<"viewset.activated"> {
  return { domain, manifest, viewset_id, viewset_name };
}
