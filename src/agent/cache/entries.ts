// The rows of index.db about stored responses: put, remove, look through. Used by the index thread only; every method that writes runs within a transaction of the caller.

import type { Sqlite, Statement } from "../../base/sqlite.ts";
import { canonicalJson } from "../../core/canonical-json.ts";
import { indexedText } from "../../core/index-schema.ts";
import type { Candidate, EntryKey, EntryKind, Scope } from "./entry.ts";

/** Variants of one key: what a response that varies by a header of the visitor's choice can fill. The oldest go. */
export const variantsMax = 32;
/** A body takes whole blocks; a row with its words and index entries takes about a kilobyte. */
const blockBytes = 4_096;
const rowBytes = 1_024;

export type Removed = { readonly id: number; readonly object: string | null };

/** An entry as operators see it. */
export type FoundEntry = {
  readonly id: number;
  readonly host: string;
  readonly kind: EntryKind;
  readonly path: string;
  readonly query: string;
  readonly mime: string;
  readonly status: number;
  readonly size: number;
  readonly storedAtMs: number;
};

type RemovedRow = Removed & { readonly footprint: number };
type KeyValues = [domain: string, host: string, kind: string, path: string, query: string];

export const varyText = (vary: Readonly<Record<string, string>> | null): string =>
  vary === null ? "" : canonicalJson(vary);

export class Entries {
  /** Counted, not asked: both are exact after open and kept with every put and removal that was committed. */
  #count: number;
  #bytes: number;
  /** Changes of the transaction in progress. */
  #pending = { count: 0, bytes: 0 };
  readonly #sql: ReturnType<typeof prepare>;

  constructor(db: Sqlite) {
    this.#sql = prepare(db);
    const size = this.#sql.size.get();
    this.#count = size?.count ?? 0;
    this.#bytes = size?.bytes ?? 0;
  }

  get count(): number {
    return this.#count;
  }
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes over or forgets what the last transaction changed. */
  settle(committed: boolean): void {
    if (committed) {
      this.#count += this.#pending.count;
      this.#bytes += this.#pending.bytes;
    }
    this.#pending = { count: 0, bytes: 0 };
  }

  /** Under a new id; what had the same key and variant is removed, and the oldest of too many variants. */
  put({ key, meta, object, size }: Candidate, nowS: number): { id: number; removed: Removed[] } {
    const vary = varyText(meta.vary);
    const removed = this.#take(this.#sql.removeVariant.all(...keyValues(key), vary));
    const footprint = rowBytes + (object === null ? 0 : Math.ceil(size / blockBytes) * blockBytes);
    const { lastInsertRowid } = this.#sql.insert.run(
      ...keyValues(key),
      vary,
      meta.mime,
      meta.status,
      JSON.stringify(meta.headers),
      meta.storedAtMs,
      meta.initialAgeS,
      meta.freshForS,
      meta.sourceNo,
      meta.digest,
      object,
      size,
      nowS,
      footprint,
    );
    const id = Number(lastInsertRowid);
    this.#sql.insertText.run(id, ...indexedText({ ...key, mime: meta.mime }));
    this.#pending.count++;
    this.#pending.bytes += footprint;
    if (vary !== "")
      removed.push(...this.remove(this.#sql.surplus.all(...keyValues(key), variantsMax)));
    return { id, removed };
  }

  /** Ids without a row are passed over. */
  remove(ids: Iterable<number>): Removed[] {
    const removed: Removed[] = [];
    for (const id of ids) removed.push(...this.#take(this.#sql.remove.all(id)));
    return removed;
  }

  /** All variants of one URL. */
  removeKey(key: EntryKey): Removed[] {
    return this.#take(this.#sql.removeKey.all(...keyValues(key)));
  }

  #take(rows: readonly RemovedRow[]): Removed[] {
    for (const { id, footprint } of rows) {
      this.#sql.removeText.run(id);
      this.#pending.count--;
      this.#pending.bytes -= footprint;
    }
    return rows.map(({ id, object }) => ({ id, object }));
  }

  touch(ids: Iterable<number>, nowS: number): void {
    for (const id of ids) this.#sql.touch.run(nowS, id);
  }

  longestUnused(limit: number): number[] {
    return this.#sql.longestUnused.all(limit);
  }

  /** Ascending. */
  idsInScope({ domain, host }: Scope): number[] {
    if (host !== null && domain !== null) return this.#sql.idsOfHost.all(domain, host);
    if (domain !== null) return this.#sql.idsOfDomain.all(domain);
    return host === null ? this.#sql.ids.all() : this.#sql.idsOfAnyHost.all(host);
  }

  found(id: number): FoundEntry | undefined {
    return this.#sql.found.get(id);
  }

  holdsObject(name: string): boolean {
    return this.#sql.holdsObject.get(name) !== undefined;
  }
}

function keyValues({ domain, host, kind, path, query }: EntryKey): KeyValues {
  return [domain, host, kind, path, query];
}

function prepare(db: Sqlite) {
  const byKey = "domain = ? AND host = ? AND kind = ? AND path = ? AND query = ?";
  const taken = "RETURNING id, object, footprint";
  const ids = <P extends unknown[]>(sql: string): Statement<P, number> =>
    db.prepare<P, number>(sql).pluck();
  return {
    size: db.prepare<[], { count: number; bytes: number }>(
      "SELECT count(*) AS count, coalesce(sum(footprint), 0) AS bytes FROM entry",
    ),
    insert: db.prepare<
      [
        ...KeyValues,
        vary: string,
        mime: string,
        status: number,
        headers: string,
        storedAtMs: number,
        initialAgeS: number,
        freshForS: number,
        sourceNo: number,
        digest: string | null,
        object: string | null,
        size: number,
        usedAtS: number,
        footprint: number,
      ]
    >(
      `INSERT INTO entry (domain, host, kind, path, query, vary, mime, status, headers, stored_at_ms, initial_age_s,
         fresh_for_s, source_no, digest, object, size, used_at_s, footprint)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    insertText: db.prepare<[number, string, string, string, string]>(
      "INSERT INTO entry_text (rowid, path, query, mime, kind) VALUES (?, ?, ?, ?, ?)",
    ),
    removeText: db.prepare<[number]>("DELETE FROM entry_text WHERE rowid = ?"),
    removeVariant: db.prepare<[...KeyValues, string], RemovedRow>(
      `DELETE FROM entry WHERE ${byKey} AND vary = ? ${taken}`,
    ),
    removeKey: db.prepare<KeyValues, RemovedRow>(`DELETE FROM entry WHERE ${byKey} ${taken}`),
    remove: db.prepare<[number], RemovedRow>(`DELETE FROM entry WHERE id = ? ${taken}`),
    surplus: ids<[...KeyValues, number]>(
      `SELECT id FROM entry INDEXED BY entry_key WHERE ${byKey} ORDER BY id DESC LIMIT -1 OFFSET ?`,
    ),
    touch: db.prepare<[number, number]>("UPDATE entry SET used_at_s = ? WHERE id = ?"),
    longestUnused: ids<[number]>("SELECT id FROM entry ORDER BY used_at_s LIMIT ?"),
    // `+id`: sorted from the narrow index, not read in order from the wide rows.
    ids: ids<[]>("SELECT id FROM entry ORDER BY +id"),
    idsOfDomain: ids<[string]>("SELECT id FROM entry WHERE domain = ? ORDER BY +id"),
    idsOfHost: ids<[string, string]>(
      "SELECT id FROM entry WHERE domain = ? AND host = ? ORDER BY +id",
    ),
    idsOfAnyHost: ids<[string]>("SELECT id FROM entry WHERE host = ? ORDER BY +id"),
    found: db.prepare<[number], FoundEntry>(
      `SELECT id, host, kind, path, query, mime, status, size, stored_at_ms AS storedAtMs
       FROM entry WHERE id = ?`,
    ),
    holdsObject: db.prepare<[string]>("SELECT 1 FROM entry WHERE object = ?"),
  };
}
