// The rows of index.db about stored responses: put, change, remove, look through. Used by the index thread only; every method that writes runs within a transaction of the caller.

import type { Sqlite } from "../../../base/sqlite.ts";
import { canonicalJson } from "../../../core/journal/canonical-json.ts";
import { cacheTagFields, cacheTagsOf } from "../../../core/http/cache-tags.ts";
import { withoutFields } from "../../../core/http/http-fields.ts";
import { indexedText, type IndexedText } from "../../../core/patterns/index-schema.ts";
import type {
  NewEntry,
  EntryKey,
  EntryMeta,
  Refreshed,
  StoredBody,
  VariantForm,
} from "../entry.ts";
import type { Cause, Departures } from "./departures.ts";
import type { Site } from "./entry-sites.ts";
import {
  keyValues,
  prepareEntrySql,
  type BaseRow,
  type EntrySql,
  type FoundEntry,
  type HeldRow,
  type KeyValues,
  type RemovedRow,
  type Unused,
} from "./entry-sql.ts";
import { StaleKeys } from "./stale-keys.ts";
import { StoredBytes, type DomainSize } from "./stored-bytes.ts";
import { TextCount } from "./text-index.ts";

/** The most variants of one key, which a response can fill that varies by a header of the visitor's choice. Those that were not used for longest go. */
export const variantsMax = 32;
/** A file takes whole blocks. */
const blockBytes = 4_096;
/** A row with its index entries, without its texts. */
const rowBytes = 256;
/**
 * The longest text that counts as short. A longer one makes words that stand in FTS5's index of its pages
 * once more.
 */
const shortTextMax = 1_000;
/**
 * The time before its storing at which an entry that nobody has asked for again counts as used. What is asked
 * for within that time outlasts any flood of such entries.
 */
const unaskedS = 3_600;
/** Use is told by each worker for itself: what was noted so lately is not written again. */
const usedGrainS = 20;
/** Entries of before an upgrade that are indexed in one step, some 10 ms. */
const olderPerStep = 500;

/** The place of a response, and what stands there: looked up once for all that a store asks of it. */
export type Place = {
  readonly values: KeyValues;
  readonly vary: string;
  /** Their ids ascend. */
  readonly held: readonly HeldRow[];
};

export type Removed = { readonly id: number; readonly object: string | null };

export const varyText = (vary: Readonly<Record<string, string>> | null): string =>
  vary === null ? "" : canonicalJson(vary);

export class Entries {
  readonly #stored: StoredBytes;
  readonly #sql: EntrySql;
  readonly #texts: TextCount;
  readonly staleKeys: StaleKeys;
  readonly #departures: Departures;

  constructor(db: Sqlite, departures: Departures) {
    this.#departures = departures;
    this.#sql = prepareEntrySql(db);
    this.#texts = new TextCount(db);
    this.#stored = new StoredBytes(this.#sql.sizes.all());
    this.staleKeys = new StaleKeys(this.#sql, this.#sql.keys.get() !== this.count);
  }

  get count(): number {
    return this.#stored.count;
  }
  get bytes(): number {
    return this.#stored.bytes;
  }
  /** How many domains have an entry. */
  get domains(): number {
    return this.#stored.domains;
  }
  byDomain(): Iterable<DomainSize> {
    return this.#stored.byDomain();
  }

  /** Takes over or forgets what the last transaction changed; by how many bytes it changed which domain. */
  settle(committed: boolean): ReturnType<StoredBytes["settle"]> {
    this.#texts.settle(committed);
    this.staleKeys.settle(committed);
    return this.#stored.settle(committed);
  }

  /** Whether the text index has its words. False where some are missing that were there. Throws as SQLite does. */
  hasAllTexts(): boolean {
    return this.#texts.isRight();
  }

  place({ key, meta }: Pick<NewEntry, "key" | "meta">): Place {
    const values = keyValues(key);
    const vary = varyText(meta.vary);
    return { values, vary, held: this.#sql.ofVariant.all(...values, vary) };
  }

  /**
   * Stores a response under a new id; what is held in its place is removed, and those of too many variants that were not used for longest. `isLive`: whether an entry counts among
   * those; what was cleared waits for its deletion beside them.
   */
  put(
    { key, meta, body, size }: NewEntry,
    { values, vary, held }: Place,
    nowS: number,
    isLive: (id: number) => boolean,
  ): { id: number; removed: Removed[] } {
    const replaced = { reason: "replaced", clearNo: null, atS: nowS } as const;
    const before = held.map(({ id }) => id);
    const removed = this.remove(before, replaced);
    const headers = JSON.stringify(meta.headers);
    const { mime, tags = "" } = meta;
    const text = indexedText({ ...key, mime, tags });
    const footprint =
      rowFootprint({ ...key, vary, mime, tags }, headers.length, text) + bodyFootprint(body, size);
    const { lastInsertRowid } = this.#sql.insert.run(
      ...values,
      vary,
      mime,
      tags,
      meta.status,
      headers,
      meta.storedAtMs,
      meta.initialAgeS,
      meta.freshForS,
      meta.sourceNo,
      meta.digest,
      ...fileValues(body),
      size,
      removed.length > 0 ? nowS : nowS - unaskedS, // What is replaced was asked for again.
      footprint,
    );
    const id = Number(lastInsertRowid);
    this.#add(id, key.domain, { body, text, footprint });
    if (vary !== "") {
      const live = this.#sql.otherVariants.all(...values, id).filter(isLive);
      const surplus = live.slice(variantsMax - 1);
      removed.push(...this.remove(surplus.toSorted(ascending), replaced));
    }
    return { id, removed };
  }

  /** Stores a variant of the entry `baseId`, which `base` tells of; in place of one of the same form. */
  putVariant(
    baseId: number,
    base: BaseRow,
    { form, body, size }: { form: VariantForm; body: StoredBody; size: number },
    nowS: number,
  ): { id: number; removed: Removed[] } {
    const before = this.#sql.codedOf
      .all(baseId)
      .filter((id) => this.#sql.base.get(id)?.coding === form);
    const removed = this.remove(before);
    const text = indexedText(base);
    const footprint = rowFootprint(base, 0, text) + bodyFootprint(body, size);
    const { lastInsertRowid } = this.#sql.insertVariant.run(
      form,
      ...fileValues(body),
      size,
      nowS,
      footprint,
      baseId,
    );
    const id = Number(lastInsertRowid);
    this.#add(id, base.domain, { body, text, footprint });
    return { id, removed };
  }

  /**
   * Refreshes an entry in place. If the media type or the tags change, so do the words, and what was coded of
   * it is removed.
   */
  refresh(id: number, before: BaseRow, refreshed: Refreshed, nowS: number): Removed[] {
    // An entry of an earlier release may have them among its fields still.
    const fields =
      refreshed.tags === undefined
        ? refreshed.headers
        : withoutFields(refreshed.headers, cacheTagFields);
    const headers = JSON.stringify(fields);
    const { mime, tags = before.tags, storedAtMs, initialAgeS, freshForS, confirmedNo } = refreshed;
    const isRenamed = mime !== before.mime || tags !== before.tags;
    // Tags stand in the row and in the text index.
    const more =
      headers.length -
      before.headersLength +
      (mime.length - before.mime.length) +
      2 * (tags.length - before.tags.length);
    const footprint = before.footprint + more;
    this.#sql.refresh.run(
      mime,
      tags,
      headers,
      storedAtMs,
      initialAgeS,
      freshForS,
      nowS,
      footprint,
      Math.max(confirmedNo, before.confirmedNo),
      id,
    );
    this.#sql.unsoften.run(id);
    this.#stored.change(before.domain, 0, more);
    if (!isRenamed) return [];
    if (!this.#texts.isAwaited(id)) {
      this.#sql.removeText.run(id);
      this.#sql.insertText.run(id, ...indexedText({ ...before, mime, tags }));
    }
    return this.remove(this.#sql.codedOf.all(id));
  }

  #add(
    id: number,
    domain: string,
    {
      body,
      text,
      footprint,
    }: {
      readonly body: StoredBody | null;
      readonly text: IndexedText;
      readonly footprint: number;
    },
  ): void {
    this.#sql.insertKey.run(id);
    this.#sql.insertText.run(id, ...text);
    if (body?.kind === "inline") this.#sql.insertBody.run(id, body.bytes);
    this.#texts.added(1);
    this.#stored.change(domain, 1, footprint);
  }

  /**
   * Removes entries with their coded variants. The ids ascend; those without a row are passed over. `cause`
   * is remembered for operators.
   */
  remove(ids: readonly number[], cause?: Cause): Removed[] {
    if (ids.length === 0) return [];
    if (cause !== undefined) this.#departures.note(ids, cause);
    const { removals, removeText } = this.#sql;
    const coded = removals.coded.all(JSON.stringify(ids));
    const all = coded.length === 0 ? ids : [...ids, ...coded];
    // One by one: a statement over many rows of FTS5 copies each page aside before it changes it, and one over a range reads every row there is.
    for (const id of all) removeText.run(id);
    const list = JSON.stringify(all);
    removals.bodies.run(list);
    removals.softened.run(list);
    return this.#take(removals.entries.all(list));
  }

  /** Returns the tags of an entry, joined by blanks; none if it is gone. */
  tagsOf(id: number): string {
    return this.#sql.base.get(id)?.tags ?? "";
  }

  /** Notes what a soft clear made stale, and since when. What was stale already stays so since before. */
  soften(ids: readonly number[], sinceS: number): void {
    this.#sql.soften.run(sinceS, JSON.stringify(ids));
  }

  /** The ids of all that soft clears have made stale, in no order. */
  softened(): Iterable<number> {
    return this.#sql.softened.iterate();
  }

  /** Removes all variants of one URL. */
  removeKey(key: EntryKey, cause: Cause): Removed[] {
    return this.remove(this.#sql.ofKey.all(...keyValues(key)), cause);
  }

  #take(rows: readonly RemovedRow[]): Removed[] {
    for (const { domain, footprint } of rows) this.#stored.change(domain, -1, -footprint);
    this.#texts.removed(rows);
    this.staleKeys.add(rows);
    return rows.map(({ id, object }) => ({ id, object }));
  }

  /**
   * Empties the texts of everything that is being deleted, up to this id, unless more than so many entries
   * have come after it: their words are written again.
   */
  emptyTexts(upTo: number, survivorsMax: number): void {
    const survivors = this.#sql.newerThan.all(upTo, survivorsMax + 1);
    if (survivors.length > survivorsMax) return;
    this.#sql.emptyTexts.run();
    for (const row of survivors) this.#sql.insertText.run(row.id, ...indexedText(row));
    this.#sql.noteTextFrom.run(upTo);
    this.#sql.noteTextDone.run();
    this.#texts.emptied(upTo, survivors.length);
  }

  /** One step of putting the text index in order; false when it is. */
  mergeTexts(): boolean {
    const before = this.#sql.changes.get() ?? 0;
    this.#sql.mergeTexts.run();
    return (this.#sql.changes.get() ?? 0) - before > 1; // One change is the command itself.
  }

  /** Whether entries of before an upgrade still have to be indexed; until then the text index answers too little. */
  get isIndexing(): boolean {
    return this.#texts.isAwaiting;
  }

  /**
   * Indexes some entries of before an upgrade, with the tags that their fields have, which are taken out of
   * these. Those with more tags than are stored are removed.
   */
  indexOlder(atS: number): Removed[] {
    const { awaitedFrom, awaitedTo } = this.#texts;
    const rows = this.#sql.older.all(awaitedFrom, awaitedTo, olderPerStep);
    const last = rows.length < olderPerStep ? awaitedTo : (rows.at(-1)?.id ?? awaitedTo);
    const gone: number[] = [];
    for (const { id, headers, ...row } of rows) {
      const fields: EntryMeta["headers"] = JSON.parse(headers);
      const found = cacheTagsOf(fields);
      if (found.kind === "too much") {
        gone.push(id);
        continue;
      }
      const tags = found.kind === "tags" ? found.words : row.tags;
      if (found.kind === "tags")
        this.#sql.retag.run(tags, JSON.stringify(withoutFields(fields, cacheTagFields)), id);
      this.#sql.insertText.run(id, ...indexedText({ ...row, tags }));
    }
    this.#texts.indexed(last, rows.length);
    this.#sql.noteTextTo.run(last);
    // Their words are not in the index: they are removed after the place was noted, as those that have none.
    return this.remove(gone, { reason: "lost", clearNo: null, atS });
  }

  touch(ids: Iterable<number>, nowS: number): void {
    for (const id of ids) this.#sql.touch.run(nowS, id, nowS - usedGrainS);
  }

  /** Notes that the body was read again from disk and is what was written. */
  markVerified(id: number): void {
    this.#sql.verified.run(id);
  }

  base(id: number): BaseRow | undefined {
    return this.#sql.base.get(id);
  }

  /** Returns entries of the domain, the longest unused first, `after` this one. */
  longestUnused(domain: string, after: Unused | undefined, limit: number): readonly Unused[] {
    const { usedAtS, id } = after ?? { usedAtS: Number.MIN_SAFE_INTEGER, id: 0 };
    return this.#sql.longestUnused.all(domain, usedAtS, id, limit);
  }

  /** Returns the oldest and the newest id. Undefined where there is no entry. */
  span(): { readonly oldest: number; readonly newest: number } | undefined {
    const { oldest, newest } = this.#sql.span.get() ?? { oldest: null, newest: null };
    return oldest === null || newest === null ? undefined : { oldest, newest };
  }

  /** Gives out the ids of one site after the other; those of one ascend. */
  *ofSites(): Iterable<{ readonly site: Site; readonly ids: readonly number[] }> {
    for (let site = this.#sql.firstSite.get(); site !== undefined;) {
      const ids: readonly number[] = JSON.parse(
        this.#sql.idsOfSite.get(site.domain, site.host) ?? "[]",
      );
      yield { site, ids };
      site = this.#sql.siteAfter.get(site.domain, site.host);
    }
  }

  found(id: number): FoundEntry | undefined {
    return this.#sql.found.get(id);
  }

  holdsObject(name: string): boolean {
    return this.#sql.holdsObject.get(name) !== undefined;
  }
}

function fileValues(body: StoredBody | null): [string | null, Uint8Array | null] {
  return body?.kind === "file" ? [body.object, body.digest] : [null, null];
}

const ascending = (a: number, b: number): number => a - b;

/** Estimates the bytes that a row takes. Path and query stand in it and, as words and as exact words (three bytes for a capital), in the text index; media type and kind are words of many. */
function rowFootprint(
  { path, query, vary, mime, tags }: Pick<BaseRow, "path" | "query" | "vary" | "mime" | "tags">,
  headers: number,
  [pathWords, queryWords, , , ...exact]: IndexedText,
): number {
  const row = headers + vary.length + mime.length + tags.length + path.length + query.length;
  const words = [pathWords, queryWords, ...exact];
  const times = (text: string): number => (text.length > shortTextMax ? 2 : 1);
  return rowBytes + row + words.reduce((bytes, text) => bytes + times(text) * text.length, 0);
}

/** Within SQLite a body takes an eighth more than its bytes: pages are seldom full. */
function bodyFootprint(body: StoredBody | null, size: number): number {
  if (body === null) return 0;
  return body.kind === "file"
    ? Math.ceil(size / blockBytes) * blockBytes
    : Math.ceil((size * 9) / 8) + 64;
}
