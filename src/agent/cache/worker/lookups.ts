// A worker's read-only connection to one incarnation of index.db.

import { codings } from "../../../core/http/content-coding.ts";
import { imageFormsMax } from "../../../core/images/image-form.ts";
import { openSqlite, type Sqlite } from "../../../base/sqlite.ts";
import { variantsMax } from "../index/entries.ts";
import { byKey, keyValues, type KeyValues } from "../index/entry-sql.ts";
import type { Entry, EntryKey, VariantForm } from "../entry.ts";
import { indexPath } from "../index/index-file.ts";

/** A visitor waits meanwhile; readers of a WAL wait for nobody but recovery. */
const busyMs = 20;

type Row = {
  id: number;
  vary: string;
  mime: string;
  status: number;
  headers: string;
  stored_at_ms: number;
  initial_age_s: number;
  fresh_for_s: number;
  source_no: number;
  digest: string | null;
  size: number;
  coding: string;
  base_id: number | null;
};
export type BodyRow = {
  readonly object: string | null;
  readonly objectDigest: Uint8Array | null;
  readonly isVerified: number;
  readonly size: number;
  /** Null where there is none in SQLite. */
  readonly bytes: Uint8Array | null;
};

/** The most rows found: the responses of a key, each with all of its forms. A base is older than its forms, so that fewer rows would lack it first. */
const foundMax = variantsMax * (1 + Math.max(codings.length, imageFormsMax));

/** Every method throws as SQLite does. */
export class Lookups implements Disposable {
  readonly incarnation: number;
  readonly #db: Sqlite;
  readonly #find;
  readonly #body;
  readonly #softened;

  constructor(directory: string, incarnation: number) {
    this.incarnation = incarnation;
    this.#db = openSqlite(indexPath(directory), { sync: "normal", readonly: true });
    this.#db.pragma(`busy_timeout = ${busyMs}`);
    this.#find = this.#db.prepare<[...KeyValues, below: number, limit: number], Row>(
      `SELECT id, vary, mime, status, headers, stored_at_ms, initial_age_s, fresh_for_s, source_no, digest, size,
         coding, base_id
       FROM ${byKey} AND id < ? ORDER BY id DESC LIMIT ?`,
    );
    this.#body = this.#db.prepare<[number], BodyRow>(
      `SELECT object, object_digest AS objectDigest, is_verified AS isVerified, size, body.bytes
       FROM entry LEFT JOIN body ON body.id = entry.id WHERE entry.id = ?`,
    );
    this.#softened = this.#db
      .prepare<[number], number>("SELECT since_s FROM softened WHERE id = ?")
      .pluck();
  }

  /**
   * Finds the entries of a key, newest first. `isLive` says whether an entry may still be used; one that is not live now will never be. Entries that were cleared
   * and are not deleted yet keep no live one from being found, however many there are.
   */
  find(key: EntryKey, isLive: (entry: Pick<Entry, "id" | "baseId">) => boolean): Entry[] {
    const { domain, host, kind, path, query } = key;
    const values = keyValues(key);
    let found: Row[] = [];
    for (let below: number | undefined = Number.MAX_SAFE_INTEGER; below !== undefined;) {
      const rows = this.#find.all(...values, below, foundMax);
      found.push(...rows);
      const isAll = rows.length < foundMax;
      if (!isAll) found = found.filter((row) => isLive({ id: row.id, baseId: row.base_id }));
      below = isAll || found.length >= foundMax ? undefined : rows.at(-1)?.id;
    }
    return found
      .slice(0, foundMax)
      .map((row) => ({ ...readRow(row), domain, host, kind, path, query }));
  }

  body(id: number): BodyRow | undefined {
    return this.#body.get(id);
  }

  /** Returns since when a soft clear has made the entry stale, s of the wall clock; undefined: none is noted. */
  softenedSince(id: number): number | undefined {
    return this.#softened.get(id);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}

function readRow(row: Row): Omit<Entry, keyof EntryKey> {
  return {
    id: row.id,
    size: row.size,
    status: row.status,
    // Both texts were written by Entries.put from values of these types.
    headers: JSON.parse(row.headers) as Entry["headers"],
    vary: row.vary === "" ? null : (JSON.parse(row.vary) as Record<string, string>),
    mime: row.mime,
    storedAtMs: row.stored_at_ms,
    initialAgeS: row.initial_age_s,
    freshForS: row.fresh_for_s,
    sourceNo: row.source_no,
    digest: row.digest,
    // Written by Entries.putVariant, or ''.
    form: row.coding === "" ? null : (row.coding as VariantForm),
    baseId: row.base_id,
  };
}
