// What is cached of one response, and what may come of storing it.

import type { RuleLifetimes } from "../../core/http/http-cache.ts";
import type { ImageForm } from "../../core/images/image-form.ts";

export type EntryKind = "static" | "generated";

export type EntryKey = {
  /** Main domain: what isolates customers. */
  readonly domain: string;
  /** The host that was asked: main domain or sub-domain. */
  readonly host: string;
  readonly kind: EntryKind;
  /** static: relative to the site root, decoded. generated: the URL path as sent. */
  readonly path: string;
  /** Normalized by the devlove's rules, without question mark; "" for static. */
  readonly query: string;
};

export type EntryMeta = {
  readonly status: number;
  /** The fields as received and in order, hop-by-hop and framing ones removed. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly mime: string;
  /** Tags of the response as exact words joined by blanks; absent: none. */
  readonly tags?: string;
  /** Values of the request headers that Vary names; null where there is no Vary. */
  readonly vary: Readonly<Record<string, string>> | null;
  /** Wall clock when the response was complete in the head, ms since the epoch. */
  readonly storedAtMs: number;
  /** Age it already had then (RFC 9111 §4.2.3), seconds. */
  readonly initialAgeS: number;
  readonly freshForS: number;
  readonly sourceNo: number;
  /** static: digest of the source; an entry whose digest differs from the manifest's is no hit. */
  readonly digest: string | null;
};

/** Codings that variants are made in (RFC 9110 §8.4.1, RFC 8878, RFC 7932). */
export type VariantCoding = "br" | "zstd" | "gzip";

/** What makes a variant another body than that of its base: a coding, or the form of a picture. No word is both. */
export type VariantForm = VariantCoding | ImageForm;

export type Entry = EntryKey &
  EntryMeta & {
    readonly id: number;
    readonly size: number;
    /** Null: as its source sent it. Else a variant that was made of the entry `baseId`: only its body counts, head and freshness are the base's. */
    readonly form: VariantForm | null;
    readonly baseId: number | null;
  };

/**
 * The changes that a 304, or a HEAD, makes to a stored response (RFC 9111 §3.2, §4.3.4, §4.3.5). Its source
 * number stays that of its oldest byte. `confirmedNo`: the number of the newest clear, read before the origin
 * was asked; a soft clear that came later finds it stale.
 */
export type Refreshed = Pick<
  EntryMeta,
  "headers" | "mime" | "storedAtMs" | "initialAgeS" | "freshForS"
> & {
  readonly confirmedNo: number;
  /** They replace the tags; absent: these stay. */
  readonly tags?: string;
};

/**
 * `blocked`: a clear that came after the source was read matches, the URL was invalidated since, or a newer response is stored and fresh (by Date, where the two were fetched at the same
 * time); the response may go to its visitor, it is not stored. `failed`: not stored, counted.
 */
export type CommitOutcome =
  | { readonly kind: "stored"; readonly id: number }
  | { readonly kind: "blocked" }
  | { readonly kind: "failed"; readonly reason: string };

/** Bodies up to here stand in index.db, larger ones are files: a row and its body go in one step, and a clear unlinks little. */
export const inlineBytesMax = 32_768;

/** The most characters of names and values that a stored response varies by: any visitor can have such a row made, and it is no larger than others. */
const varyTextMax = 2_048;

export function variesByTooMuch({ vary }: Pick<EntryMeta, "vary">): boolean {
  const fields = Object.entries(vary ?? {});
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length, 0) > varyTextMax;
}

/** Why a response with this head is not stored; undefined where nothing is wrong with it. */
export function storeFault(meta: EntryMeta): string | undefined {
  return variesByTooMuch(meta) ? "it varies by too much" : metaFault(meta);
}

/** `object` names a file below objects/, `digest` is the SHA-256 of what was written to it. */
export type StoredBody =
  | { readonly kind: "inline"; readonly bytes: Uint8Array }
  | { readonly kind: "file"; readonly object: string; readonly digest: Uint8Array };

/** The facts that decide, beside the response itself, whether it takes the place of the stored one. */
export type Fetched = {
  /** A visitor gets the rest of it from the store: it is stored also in place of a newer one. */
  readonly isAwaited?: boolean;
  /** The earliest moment at which it can have been made, ms of the wall clock; undefined: not known. */
  readonly madeAfterMs?: number;
  /** The lifetimes that the rule in force gives; undefined: not known, what is stored lasts as long as it was to. */
  readonly lifetimes?: RuleLifetimes;
};

/** One response on its way into the index. `body`: null where there is none to keep, be it empty or a static file. */
export type NewEntry = Fetched & {
  readonly key: EntryKey;
  readonly meta: EntryMeta;
  readonly body: StoredBody | null;
  readonly size: number;
  /** The key's mark of invalidations (shared-header.ts), read before its source was; null: nothing invalidates it. */
  readonly invalidationMark: number | null;
};

/** The entries that a clear may touch; null is every domain, or every host of the domain. */
export type Scope = { readonly domain: string | null; readonly host: string | null };

/** A part of a clear: the patterns hold for one host of its scope, or for all; null patterns match everything. */
export type ClearGroup = {
  readonly host: string | null;
  readonly patterns: readonly string[] | null;
};

export function inScope(
  scope: Scope,
  { domain, host }: Pick<EntryKey, "domain" | "host">,
): boolean {
  return (scope.domain ?? domain) === domain && (scope.host ?? host) === host;
}

/** Says what SQLite would refuse only within a transaction that holds other responses too. */
export function metaFault(meta: EntryMeta): string | undefined {
  const { status, storedAtMs, initialAgeS, freshForS, sourceNo } = meta;
  if ([status, sourceNo].every((n) => Number.isSafeInteger(n)))
    if ([storedAtMs, initialAgeS, freshForS].every((n) => Number.isFinite(n))) return undefined;
  return "status, times and source number must be numbers";
}
