// The statements over index.db's entry, its words and its bodies, prepared once for one connection of the index thread.

import { hash } from "node:crypto";
import type { Sqlite, Statement } from "../../../base/sqlite.ts";
import {
  insertTextSql,
  type IndexedEntry,
  type IndexedText,
} from "../../../core/patterns/index-schema.ts";
import type { EntryKey } from "../entry.ts";
import type { Site } from "./entry-sites.ts";
import type { DomainSize } from "./stored-bytes.ts";
import { mergeTextSql } from "./text-index.ts";

/** A row of entry_key, by which an entry is found. */
export type KeyRow = { readonly key: number; readonly id: number };
export type RemovedRow = KeyRow & {
  readonly domain: string;
  readonly object: string | null;
  readonly footprint: number;
};
/** One that may go for room; `bytes` with what was coded of it, which goes too. */
export type Unused = { readonly id: number; readonly usedAtS: number; readonly bytes: number };
/** An entry as operators see it. */
export type FoundEntry = Omit<EntryKey, "domain"> & {
  readonly id: number;
  readonly mime: string;
  /** "" for what came from the source as it is. */
  readonly coding: string;
  readonly status: number;
  readonly size: number;
  readonly storedAtMs: number;
};
/** The columns that are needed to change an entry, or to derive from it. */
export type BaseRow = EntryKey & {
  readonly vary: string;
  readonly coding: string;
  readonly mime: string;
  readonly tags: string;
  readonly sourceNo: number;
  /** The newest clear number that was read before the origin confirmed the entry; 0: it never did. */
  readonly confirmedNo: number;
  readonly footprint: number;
  readonly headersLength: number;
};
/** One variant as stored, as its source sent it or coded, with its age; `headers` is JSON. */
export type HeldRow = {
  readonly id: number;
  readonly coding: string;
  readonly status: number;
  readonly headers: string;
  readonly storedAtMs: number;
  readonly initialAgeS: number;
  readonly freshForS: number;
};
export type KeyValues = [
  key: number,
  domain: string,
  host: string,
  kind: string,
  path: string,
  query: string,
];
/** Name and digest of the file where there is one. */
export type FileValues = [object: string | null, digest: Uint8Array | null];

export type EntrySql = ReturnType<typeof prepareEntrySql>;

/** So that every key is exact as a number. */
export const keyBytes = 6;
/** Keys first: they are few, and in the order of their ids. */
export const byKey =
  "entry_key CROSS JOIN entry USING (id) WHERE entry_key.key = ? AND domain = ? AND host = ? AND kind = ? AND path = ? AND query = ?";
const sites = "SELECT domain, host FROM entry INDEXED BY entry_scope";
const listed = "IN (SELECT value FROM json_each(?))";

export function prepareEntrySql(db: Sqlite) {
  return {
    ...prepareWrites(db),
    ...prepareTexts(db),
    ...prepareSoftening(db),
    ...prepareReads(db),
    ...prepareRemovals(db),
  };
}

function prepareTexts(db: Sqlite) {
  return {
    removeText: db.prepare<[number]>("DELETE FROM entry_text WHERE rowid = ?"),
    insertText: db.prepare<[number, ...IndexedText]>(insertTextSql("entry_text")),
    emptyTexts: db.prepare("INSERT INTO entry_text (entry_text) VALUES ('delete-all')"),
    noteTextFrom: db.prepare<[number]>("UPDATE state SET text_from = ?"),
    noteTextDone: db.prepare("UPDATE state SET awaited_from = awaited_to"),
    noteTextTo: db.prepare<[number]>("UPDATE state SET awaited_from = ?"),
    retag: db.prepare<[tags: string, headers: string, id: number]>(
      "UPDATE entry SET tags = ?, headers = ? WHERE id = ?",
    ),
    mergeTexts: db.prepare(mergeTextSql()),
    changes: db.prepare<[], number>("SELECT total_changes()").pluck(),
  };
}

function prepareSoftening(db: Sqlite) {
  return {
    // What an earlier soft clear made stale stays stale since then.
    // What has gone meanwhile is not noted, for nothing would take its row away.
    soften: db.prepare<[sinceS: number, ids: string]>(
      `INSERT OR IGNORE INTO softened (id, since_s)
       SELECT value, ? FROM json_each(?) WHERE value IN (SELECT id FROM entry)`,
    ),
    unsoften: db.prepare<[number]>("DELETE FROM softened WHERE id = ?"),
    softened: db.prepare<[], number>("SELECT id FROM softened").pluck(),
  };
}

function prepareWrites(db: Sqlite) {
  return {
    insert: db.prepare<
      [
        ...KeyValues,
        vary: string,
        mime: string,
        tags: string,
        status: number,
        headers: string,
        storedAtMs: number,
        initialAgeS: number,
        freshForS: number,
        sourceNo: number,
        digest: string | null,
        ...FileValues,
        size: number,
        usedAtS: number,
        footprint: number,
      ]
    >(
      `INSERT INTO entry (key, domain, host, kind, path, query, vary, mime, tags, status, headers, stored_at_ms, initial_age_s,
         fresh_for_s, source_no, digest, object, object_digest, size, used_at_s, footprint)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    insertVariant: db.prepare<
      [coding: string, ...FileValues, size: number, usedAtS: number, footprint: number, id: number]
    >(
      `INSERT INTO entry (key, domain, host, kind, path, query, vary, coding, base_id, mime, tags, status, headers, stored_at_ms,
         initial_age_s, fresh_for_s, source_no, digest, object, object_digest, size, used_at_s, footprint)
       SELECT key, domain, host, kind, path, query, vary, ?, id, mime, tags, status, '[]', stored_at_ms,
         initial_age_s, fresh_for_s, source_no, digest, ?, ?, ?, ?, ? FROM entry WHERE id = ?`,
    ),
    insertKey: db.prepare<[number]>("INSERT INTO entry_key SELECT key, id FROM entry WHERE id = ?"),
    removeKey: db.prepare<[number, number]>("DELETE FROM entry_key WHERE key = ? AND id = ?"),
    insertBody: db.prepare<[number, Uint8Array]>("INSERT INTO body (id, bytes) VALUES (?, ?)"),
    refresh: db.prepare<
      [
        mime: string,
        tags: string,
        headers: string,
        storedAtMs: number,
        initialAgeS: number,
        freshForS: number,
        usedAtS: number,
        footprint: number,
        confirmedNo: number,
        id: number,
      ]
    >(
      `UPDATE entry SET mime = ?, tags = ?, headers = ?, stored_at_ms = ?, initial_age_s = ?, fresh_for_s = ?, used_at_s = ?,
         footprint = ?, confirmed_no = ? WHERE id = ?`,
    ),

    touch: db.prepare<[usedAtS: number, id: number, unlessSinceS: number]>(
      "UPDATE entry SET used_at_s = ? WHERE id = ? AND used_at_s < ?",
    ),
    verified: db.prepare<[number]>("UPDATE entry SET is_verified = 1 WHERE id = ?"),
  };
}

function prepareReads(db: Sqlite) {
  const ids = <P extends unknown[]>(sql: string): Statement<P, number> =>
    db.prepare<P, number>(sql).pluck();
  return {
    sizes: db.prepare<[], DomainSize>(
      "SELECT domain, count(*) AS count, sum(footprint) AS bytes FROM entry INDEXED BY entry_scope GROUP BY domain",
    ),
    keys: db.prepare<[], number>("SELECT count(*) FROM entry_key").pluck(),
    keysFrom: db.prepare<[key: number, id: number, limit: number], KeyRow & { isStray: number }>(
      `SELECT some.key, some.id, entry.id IS NULL AS isStray
       FROM (SELECT key, id FROM entry_key WHERE (key, id) > (?, ?) ORDER BY key, id LIMIT ?) AS some
       LEFT JOIN entry ON entry.id = some.id ORDER BY some.key, some.id`,
    ),
    span: db.prepare<[], { oldest: number | null; newest: number | null }>(
      "SELECT (SELECT min(id) FROM entry) AS oldest, (SELECT max(id) FROM entry) AS newest",
    ),
    base: db.prepare<[number], BaseRow>(
      `SELECT domain, host, kind, path, query, vary, coding, mime, tags, source_no AS sourceNo,
         confirmed_no AS confirmedNo, footprint, length(headers) AS headersLength FROM entry WHERE id = ?`,
    ),
    codedOf: ids<[number]>("SELECT id FROM entry WHERE base_id = ?"),
    ofVariant: db.prepare<[...KeyValues, vary: string], HeldRow>(
      `SELECT id, coding, status, headers, stored_at_ms AS storedAtMs, initial_age_s AS initialAgeS, fresh_for_s AS freshForS
       FROM ${byKey} AND vary = ? ORDER BY id`,
    ),
    ofKey: ids<KeyValues>(`SELECT id FROM ${byKey} ORDER BY id`),
    /** The others than the one that has just come, last used first; those that are cleared and not yet deleted among them. */
    otherVariants: ids<[...KeyValues, id: number]>(
      `SELECT id FROM ${byKey} AND coding = '' AND id <> ? ORDER BY used_at_s DESC, id DESC`,
    ),
    longestUnused: db.prepare<
      [domain: string, afterUsedAtS: number, afterId: number, limit: number],
      Unused
    >(
      `SELECT id, used_at_s AS usedAtS,
         footprint + coalesce((SELECT sum(footprint) FROM entry AS coded WHERE coded.base_id = entry.id), 0) AS bytes
       FROM entry INDEXED BY entry_used WHERE domain = ? AND (used_at_s, id) > (?, ?) ORDER BY used_at_s, id LIMIT ?`,
    ),
    firstSite: db.prepare<[], Site>(`${sites} ORDER BY domain, host LIMIT 1`),
    siteAfter: db.prepare<[string, string], Site>(
      `${sites} WHERE (domain, host) > (?, ?) ORDER BY domain, host LIMIT 1`,
    ),
    // From the narrow index and not from the wide rows; ascending. As one text: a million rows take twice as long to hand over as to read from JSON.
    idsOfSite: db
      .prepare<[domain: string, host: string], string>(
        "SELECT json_group_array(id) FROM entry INDEXED BY entry_scope WHERE domain = ? AND host = ?",
      )
      .pluck(),
    found: db.prepare<[number], FoundEntry>(
      `SELECT id, host, kind, path, query, mime, coding, status, size, stored_at_ms AS storedAtMs
       FROM entry WHERE id = ?`,
    ),
    newerThan: db.prepare<[id: number, limit: number], IndexedEntry & { readonly id: number }>(
      "SELECT id, kind, path, query, mime, tags FROM entry WHERE id > ? ORDER BY id LIMIT ?",
    ),
    older: db.prepare<
      [after: number, to: number, limit: number],
      IndexedEntry & { readonly id: number; readonly tags: string; readonly headers: string }
    >(
      "SELECT id, kind, path, query, mime, tags, headers FROM entry WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
    ),
    holdsObject: db.prepare<[string]>("SELECT 1 FROM entry WHERE object = ?"),
  };
}

/** Each for a list of ids as JSON. */
function prepareRemovals(db: Sqlite) {
  return {
    removals: {
      coded: db
        .prepare<[ids: string], number>(`SELECT id FROM entry WHERE base_id ${listed} ORDER BY id`)
        .pluck(),
      entries: db.prepare<[ids: string], RemovedRow>(
        `DELETE FROM entry WHERE id ${listed} RETURNING id, key, domain, object, footprint`,
      ),
      bodies: db.prepare<[ids: string]>(`DELETE FROM body WHERE id ${listed}`),
      softened: db.prepare<[ids: string]>(`DELETE FROM softened WHERE id ${listed}`),
    },
  };
}

/** Returns the values by which an entry is looked up. Keys may collide, so all of them are compared. */
export function keyValues(entryKey: EntryKey): KeyValues {
  const { domain, host, kind, path, query } = entryKey;
  return [keyNumber(entryKey), domain, host, kind, path, query];
}

/** Returns the number that stands for a key in entry_key. */
export function keyNumber({ domain, host, kind, path, query }: EntryKey): number {
  const text = `${domain}\n${host}\n${kind}\n${path}\n${query}`;
  const digest = hash("sha1", text, "latin1"); // A third of what a buffer costs.
  let number = 0;
  for (let at = 0; at < keyBytes; at++) number = number * 256 + digest.charCodeAt(at);
  return number;
}
