// What the data plane needs from the cache: a worker's, or what tests put in its place. One object per worker thread; the index thread behind it is shared.
//
// The rule (guarantees §1): an entry is servable iff no clear numbered above its `sourceNo` matches it. `sourceNo()` is read before the lookup
// that leads to the entry's oldest byte; `servable(id)` is asked in the same synchronous step as writeHead, after the last await. So is `softened(id)`, of what
// is to be served as fresh: an entry is stale as soon as a soft clear matches it that is numbered above the last confirmation by its origin.

import type {
  CommitOutcome,
  Entry,
  EntryKey,
  EntryMeta,
  Refreshed,
  VariantForm,
} from "../../cache/entry.ts";
import type { HeldEntries } from "../../cache/worker/hot-lookups.ts";
import type { ObjectWriter } from "../../cache/worker/object-writer.ts";

/** One body on its way to disk. Ends by exactly one of commit and abort; neither throws. */
export type BodyWriter = Pick<ObjectWriter, "write" | "mayStore" | "commit" | "abort">;

/** Read once, from the start; fails when the object turns out shorter. Disposed by whoever may not have read it to its end. */
export type StoredStream = AsyncIterable<Uint8Array> & AsyncDisposable;

export interface ResponseCache {
  /** The number of the newest clear: shared memory, nanoseconds. */
  sourceNo(): number;
  /** Moves with every clear that may concern the key's domain, and every invalidation of the key. A request may share a fetch in flight only while this is what it was before that fetch's first read. */
  clearMark(key: EntryKey): number;
  /** Moves with every invalidation of the key. To be read before the origin is asked: what was fetched while it moved is not stored. */
  invalidationMark(key: EntryKey): number;
  /** Whether stored generated entries of a main domain may be used: the journal's head has been applied since the start (or the settings allow it), and nothing else casts doubt on them. */
  confirmed(domain: string): boolean;
  /** All committed variants of the key, newest first. Synchronous, bounded; damage yields none. */
  find(key: EntryKey): readonly Entry[];
  /** A variant is servable only while its base is, which is asked here too. */
  servable(entry: Pick<Entry, "id" | "baseId">): boolean;
  /** Whether a soft clear has made the entry stale. A variant is as fresh as its base. */
  softened(entry: Pick<Entry, "id" | "baseId">): boolean;
  /** Since when a soft clear has made the entry stale, ms of the wall clock; undefined: none has. Perhaps earlier than it was; -Infinity where it is not known. Asks the index. */
  softenedSinceMs(entry: Pick<Entry, "id" | "baseId">): number | undefined;
  /** What memory holds of `find`, servable or not; undefined: only `find` knows. Notes nothing. */
  findHeld(key: EntryKey): HeldEntries | undefined;
  /** Whether `findHeld` would still say what it said. To be asked before each use of what was kept. */
  isCurrent(held: HeldEntries): boolean;
  /** The body of an entry that is in memory; undefined: it has to be opened. Ask whether it is servable first. */
  held(entry: Entry): Uint8Array | undefined;
  /** Notes what `find` and `used` would have: `held` is what was held of the key, `entry` answers. */
  noteHit(held: HeldEntries, entry: Entry): void;
  /** It answers a request, with its body or without (304, HEAD): what was used lately stays longest. Bounded. */
  used(entry: Entry): void;
  /** The body of an entry that has one (a noted static file has none); undefined where the object is missing or torn (a miss; the entry is dropped). */
  open(entry: Entry): Promise<Uint8Array | StoredStream | undefined>;
  /** Begins to store a response. `invalidationMark`: the key's, read before the origin was asked; a commit after it has moved is `blocked`. */
  begin(key: EntryKey, invalidationMark: number): BodyWriter;
  /** Refreshes an entry in place, and only while it is servable and no soft clear came since the origin was asked (else `blocked`). Never rejects. */
  refresh(entry: Entry, refreshed: Refreshed): Promise<CommitOutcome>;
  /** A variant made of exactly the bytes of `base`. Stored only while the base is servable. Never rejects; the body must not change afterwards. */
  storeVariant(base: Entry, form: VariantForm, body: Uint8Array): Promise<CommitOutcome>;
  /** Notes that a static file was served (no body is stored). Bounded, in the background; a full queue drops the note. */
  noteStatic(key: EntryKey, meta: EntryMeta, size: number): void;
  /** RFC 9111 §4.4 after a non-error answer to an unsafe method: invalidates all variants of the URL, durable before it resolves. The clear mark has moved when it returns. Rejects while there is no index. */
  invalidate(key: EntryKey): Promise<void>;
}
