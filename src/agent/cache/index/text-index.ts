// The FTS5 table beside its base table: whether it covers every entry, making it anew from them, and what counts as damage.

import { systemCode } from "../../../core/faults.ts";
import { isDiskFault, type Sqlite } from "../../../base/sqlite.ts";
import {
  createTextIndexSql,
  indexedText,
  insertTextSql,
  type IndexedText,
} from "../../../core/patterns/index-schema.ts";
import type { EntryKind } from "../entry.ts";

/** Leaf pages of 4 KB that one step of merging writes: a few milliseconds. */
const mergePages = 16;
/**
 * Segments are merged in steps of our own, never within a commit: FTS5 counts each deletion as a page written and would merge for a second in the middle
 * of a large one. A segment is merged for its deletions when half of it is deleted.
 */
const textSettings = { automerge: 0, deletemerge: 50 };

export function createText(db: Sqlite): void {
  db.exec(createTextIndexSql("entry_text"));
  for (const [name, value] of Object.entries(textSettings))
    db.exec(`INSERT INTO entry_text (entry_text, rank) VALUES ('${name}', ${value})`);
}

export function mergeTextSql(): string {
  return `INSERT INTO entry_text (entry_text, rank) VALUES ('merge', ${mergePages})`;
}

/** Rows per transaction while rebuilding: about 20 ms at 60,000 rows/s, and the journal of one transaction stays small. */
const rebuildRows = 1_000;

/** The condition of entries without text: those that are being deleted, up to `text_from`, and those that await it. */
const isDeleted = "id <= (SELECT text_from FROM state)";
const isAwaited = "id > (SELECT awaited_from FROM state) AND id <= (SELECT awaited_to FROM state)";
const hasText = `NOT (${isDeleted}) AND NOT (${isAwaited})`;

/** Whether every entry has its row in the index and the other way round; `deep` compares ids, not only counts (0.2 s for a million entries). */
export function textIsWhole(db: Sqlite, deep: boolean): boolean {
  const asks = (sql: string): boolean => db.prepare<[], number>(sql).pluck().get() === 1;
  try {
    if (
      !asks(
        // All entries are counted in their narrowest index, a condition would have every row read: 20 ms against 200 for a million.
        `SELECT (SELECT count(*) FROM entry) - (SELECT count(*) FROM entry WHERE ${isDeleted})
           - (SELECT count(*) FROM entry WHERE ${isAwaited}) = (SELECT count(*) FROM entry_text_docsize)`,
      )
    )
      return false;
    if (!deep) return true;
    return !asks(
      `SELECT EXISTS (SELECT id FROM entry WHERE ${hasText} EXCEPT SELECT id FROM entry_text_docsize)`,
    );
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

/**
 * Returns what FTS5 says of its own tables. It takes a second for a million entries, so it must not run while
 * anybody waits for the index. Reads only.
 */
export function textProblems(db: Sqlite): string[] {
  const lines = db.prepare<[], string>("PRAGMA integrity_check(entry_text)").pluck().all();
  return lines.filter((line) => line !== "ok");
}

export function rebuildText(db: Sqlite): void {
  db.exec("DROP TABLE IF EXISTS entry_text");
  createText(db);
  type Row = {
    id: number;
    kind: EntryKind;
    path: string;
    query: string;
    mime: string;
    tags: string;
  };
  const next = db.prepare<[number, number], Row>(
    `SELECT id, kind, path, query, mime, tags FROM entry WHERE ${hasText} AND id > ? ORDER BY id LIMIT ?`,
  );
  const insert = db.prepare<[number, ...IndexedText]>(insertTextSql("entry_text"));
  const insertAll = db.transaction((rows: ReturnType<typeof next.all>) => {
    for (const row of rows) insert.run(row.id, ...indexedText(row));
  });
  for (let after = -1; ;) {
    const rows = next.all(after, rebuildRows);
    if (rows.length === 0) return;
    insertAll.immediate(rows);
    after = rows.at(-1)?.id ?? after;
  }
}

export function isSqliteFull(error: unknown): boolean {
  return systemCode(error) === "SQLITE_FULL";
}

/**
 * Whether an error of SQLite says that the file is not what we wrote: torn pages, no database, tables that are missing. Our statements are fixed, so
 * an SQL error is damage too.
 */
export function isDamage(error: unknown): boolean {
  return systemCode(error)?.startsWith("SQLITE_") === true && !isDiskFault(error);
}

// Whether the text index covers every entry, asked before each clear: words that are missing match nothing and say nothing. FTS5 keeps a count of its rows,
// the index thread one of the entries that should be among them; comparing the two costs nothing, counting the rows 30 ms for a million.
//
// FTS5's count is the first number of the record with id 1 of its data: a varint as SQLite writes them, seven bits a byte, the highest first. An empty
// record is an index without rows.

type Counted = { from: number; rows: number; awaitedFrom: number };

export class TextCount {
  /** Entries up to here have no words any more. */
  #from: number;
  #rows: number;
  /** Entries behind `awaitedFrom` and up to `awaitedTo` have no words yet. */
  #awaitedFrom: number;
  readonly #awaitedTo: number;
  /** Changes of the transaction in progress. */
  #pending: Counted | undefined;
  readonly #record;

  /** Made when the text index is known to cover every entry. */
  constructor(db: Sqlite) {
    this.#record = db
      .prepare<[], Uint8Array>("SELECT block FROM entry_text_data WHERE id = 1")
      .pluck();
    const state = db
      .prepare<[], { from: number; awaitedFrom: number; awaitedTo: number }>(
        'SELECT text_from AS "from", awaited_from AS awaitedFrom, awaited_to AS awaitedTo FROM state',
      )
      .get();
    this.#from = state?.from ?? 0;
    this.#awaitedFrom = state?.awaitedFrom ?? 0;
    this.#awaitedTo = state?.awaitedTo ?? 0;
    this.#rows = this.#counted();
  }

  added(rows: number): void {
    this.#change().rows += rows;
  }

  removed(ids: readonly { readonly id: number }[]): void {
    const change = this.#change();
    for (const { id } of ids) if (id > change.from && !this.isAwaited(id)) change.rows--;
  }

  /** Notes that all rows went but those of entries behind `from`. */
  emptied(from: number, rowsLeft: number): void {
    this.#pending = { from, rows: rowsLeft, awaitedFrom: this.#awaitedTo };
  }

  settle(committed: boolean): void {
    if (committed && this.#pending !== undefined) {
      this.#from = this.#pending.from;
      this.#rows = this.#pending.rows;
      this.#awaitedFrom = this.#pending.awaitedFrom;
    }
    this.#pending = undefined;
  }

  /** The entry has no words yet: those of the transaction in progress count as they will be. */
  isAwaited(id: number): boolean {
    return id > (this.#pending?.awaitedFrom ?? this.#awaitedFrom) && id <= this.#awaitedTo;
  }

  get isAwaiting(): boolean {
    return this.#awaitedFrom < this.#awaitedTo;
  }
  get awaitedFrom(): number {
    return this.#awaitedFrom;
  }
  get awaitedTo(): number {
    return this.#awaitedTo;
  }

  /** Notes that entries up to this id have their words now, so many more. */
  indexed(upTo: number, rows: number): void {
    const change = this.#change();
    change.rows += rows;
    change.awaitedFrom = upTo;
  }

  /** Whether both counts agree. To be asked outside of transactions. Throws as SQLite does. */
  isRight(): boolean {
    return this.#counted() === this.#rows;
  }

  #change(): Counted {
    return (this.#pending ??= {
      from: this.#from,
      rows: this.#rows,
      awaitedFrom: this.#awaitedFrom,
    });
  }

  #counted(): number {
    let count = 0;
    for (const byte of this.#record.get() ?? []) {
      count = count * 128 + (byte & 127);
      if (byte < 128) break;
    }
    return count;
  }
}
