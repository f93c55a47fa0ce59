// The FTS5 table beside its base table: whether it covers every entry, making it anew from them, and what counts as damage.

import type { Sqlite } from "../../base/sqlite.ts";
import { createTextIndexSql, indexedText } from "../../core/index-schema.ts";
import type { EntryKind } from "./entry.ts";

/** Rows per transaction while rebuilding: about 20 ms at 60,000 rows/s, and the journal of one transaction stays small. */
const rebuildRows = 1_000;

/** Every entry has its row in the index and the other way round; `deep` compares ids, not only counts, and asks FTS5 too (a second for a million entries). */
export function textIsWhole(db: Sqlite, deep: boolean): boolean {
  const asks = (sql: string): boolean => db.prepare<[], number>(sql).pluck().get() === 1;
  try {
    if (!asks("SELECT (SELECT count(*) FROM entry) = (SELECT count(*) FROM entry_text_docsize)"))
      return false;
    if (!deep) return true;
    if (asks("SELECT EXISTS (SELECT id FROM entry EXCEPT SELECT id FROM entry_text_docsize)"))
      return false;
    db.prepare("INSERT INTO entry_text (entry_text) VALUES ('integrity-check')").run();
    return true;
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

export function rebuildText(db: Sqlite): void {
  db.exec("DROP TABLE IF EXISTS entry_text");
  db.exec(createTextIndexSql("entry_text"));
  type Row = { id: number; kind: EntryKind; path: string; query: string; mime: string };
  const next = db.prepare<[number, number], Row>(
    "SELECT id, kind, path, query, mime FROM entry WHERE id > ? ORDER BY id LIMIT ?",
  );
  const insert = db.prepare<[number, string, string, string, string]>(
    "INSERT INTO entry_text (rowid, path, query, mime, kind) VALUES (?, ?, ?, ?, ?)",
  );
  for (let after = -1; ;) {
    const rows = next.all(after, rebuildRows);
    if (rows.length === 0) return;
    db.transaction(() => {
      for (const row of rows) insert.run(row.id, ...indexedText(row));
    }).immediate();
    after = rows.at(-1)?.id ?? after;
  }
}

const diskCodes = [
  "SQLITE_IOERR",
  "SQLITE_FULL",
  "SQLITE_READONLY",
  "SQLITE_CANTOPEN",
  "SQLITE_BUSY",
  "SQLITE_LOCKED",
  "SQLITE_PERM",
  "SQLITE_NOMEM",
];

/** Full, failing, forbidden: what may pass without touching the file. Errors of node:fs carry an errno. */
export function isDiskFault(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const code = String(error.code);
  return "errno" in error || diskCodes.some((disk) => code.startsWith(disk));
}

/**
 * Whether an error of SQLite says that the file is not what we wrote: torn pages, no database, tables that are missing. Our statements are fixed, so
 * an SQL error is damage too.
 */
export function isDamage(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return code.startsWith("SQLITE_") && !isDiskFault(error);
}
