// What the data plane needs from the cache, declared by its consumer. One object per worker thread; the index thread behind it is shared.
//
// The rule (guarantees §1): an entry is servable iff no clear numbered above its `sourceNo` matches it. `sourceNo()` is read before the lookup
// that leads to the entry's oldest byte; `servable(id)` is asked in the same synchronous step as writeHead, after the last await.

export type EntryKey = {
  /** Main domain; what isolates customers. */
  readonly domain: string;
  /** The host that was asked: main domain or sub-domain. */
  readonly host: string;
  readonly kind: "static" | "generated";
  /** static: relative to the site root, decoded. generated: the URL path as sent. */
  readonly path: string;
  /** Normalized by the devlove's rules, without question mark; "" for static. */
  readonly query: string;
};

export type EntryMeta = {
  readonly status: number;
  /** As received, hop-by-hop and framing removed, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly mime: string;
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

export type Entry = EntryKey &
  EntryMeta & {
    readonly id: number;
    readonly size: number;
    /** Null: as its source sent it. Else a variant that was made of the entry `baseId`: only its body counts, head and freshness are the base's. */
    readonly coding: VariantCoding | null;
    readonly baseId: number | null;
  };

/** What a 304, or a HEAD, changes of a stored response (RFC 9111 §3.2, §4.3.4, §4.3.5). Its source number stays that of its oldest byte. */
export type Refreshed = Pick<
  EntryMeta,
  "headers" | "mime" | "storedAtMs" | "initialAgeS" | "freshForS"
>;

/** `blocked`: a clear that came after the source was read matches, or a newer response is stored and fresh (by Date, where the two were fetched at the same time); the response may go to its visitor, it is not stored. `failed`: not stored, counted. */
export type CommitOutcome =
  | { readonly kind: "stored"; readonly id: number }
  | { readonly kind: "blocked" }
  | { readonly kind: "failed"; readonly reason: string };

/** What decides, beside the response itself, whether it takes the place of the one that is stored. */
export type Fetched = {
  /** Somebody gets the rest of it from the store, so that it is stored also in place of a newer one. */
  readonly isAwaited: boolean;
  /** The earliest moment at which it can have been made (`madeAfter`), ms of the wall clock. */
  readonly madeAfterMs: number;
  /** The lifetime that the rule in force gives; null: what the source says. */
  readonly ttlS: number | null;
};

/** One body on its way to disk. Ends by exactly one of commit and abort; both never throw. */
export interface ObjectWriter {
  /** The chunk is neither kept beyond its copy nor transferred by those who read it here too, and must not change afterwards. Resolves when another one may be written. False: storing has failed or the object is too large; the caller stops writing and aborts. */
  write(chunk: Uint8Array): Promise<boolean>;
  /** False: it is known already that a commit would not store it. `size` of the whole body, undefined where it is not stated. Synchronous. */
  mayStore(meta: EntryMeta, size: number | undefined): boolean;
  commit(meta: EntryMeta, fetched?: Fetched): Promise<CommitOutcome>;
  abort(): void;
}

/** Read once, from the start; fails when the object turns out shorter. Disposed by whoever may not have read it to its end. */
export type StoredStream = AsyncIterable<Uint8Array> & AsyncDisposable;

export interface ResponseCache {
  /** The number of the newest clear: shared memory, nanoseconds. */
  sourceNo(): number;
  /** Moves with every clear that may concern the key's domain, and every invalidation of the key. A request may share a fetch in flight only while this is what it was before that fetch's first read. */
  clearMark(key: EntryKey): number;
  /** Whether stored generated entries of a main domain may be used: the journal's head has been applied since the start (or the settings allow it), and nothing else casts doubt on them. */
  confirmed(domain: string): boolean;
  /** All committed variants of the key, newest first. Synchronous, bounded; damage yields none. */
  find(key: EntryKey): readonly Entry[];
  /** A variant is servable only while its base is, which is asked here too. */
  servable(entry: Pick<Entry, "id" | "baseId">): boolean;
  /** It answers a request, with its body or without (304, HEAD): what was used lately stays longest. Bounded. */
  used(entry: Entry): void;
  /** The body of an entry that has one (a noted static file has none); undefined where the object is missing or torn (a miss; the entry is dropped). */
  open(entry: Entry): Promise<Uint8Array | StoredStream | undefined>;
  begin(key: EntryKey): ObjectWriter;
  /** In place, and only while the entry is servable (else `blocked`). Never rejects. */
  refresh(entry: Entry, refreshed: Refreshed): Promise<CommitOutcome>;
  /** A coded body made of exactly the bytes of `base`. Stored only while the base is servable. Never rejects; the body must not change afterwards. */
  storeVariant(base: Entry, coding: VariantCoding, body: Uint8Array): Promise<CommitOutcome>;
  /** Notes that a static file was served (no body is stored). Bounded, in the background; a full queue drops the note. */
  noteStatic(key: EntryKey, meta: EntryMeta, size: number): void;
  /** RFC 9111 §4.4 after a non-error answer to an unsafe method: invalidates all variants of the URL, durable before it resolves. The clear mark has moved when it returns. Rejects while there is no index. */
  invalidate(key: EntryKey): Promise<void>;
}
