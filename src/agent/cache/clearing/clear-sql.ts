// The statements over index.db's clears, prepared once for one connection of the index thread.

import type { Sqlite } from "../../../base/sqlite.ts";
import type { Scope } from "../entry.ts";
import { parseSelection, type ClearSelection } from "./selection.ts";

/** A clear as operators see it. */
export type ClearSeen = Scope &
  ClearSelection & {
    readonly clearNo: number;
    readonly clearId: string;
    /** 0: not of the journal. */
    readonly seq: number;
    readonly widened: boolean;
    readonly isSoft: boolean;
    readonly matched: number;
    readonly atS: number;
  };

type RecordValues = [
  clearNo: number,
  clearId: string,
  seq: number,
  domain: string | null,
  host: string | null,
  patterns: string | null,
  atS: number,
  soft: number,
];

type SeenRow = Scope & {
  readonly clearNo: number;
  readonly clearId: string;
  readonly seq: number;
  readonly patterns: string | null;
  readonly widened: number;
  readonly soft: number;
  readonly matched: number;
  readonly atS: number;
};

export function prepareClearSql(db: Sqlite) {
  type Row = Scope & {
    clearNo: number;
    patterns: string | null;
    widened: number;
    blocked: number;
    soft: number;
  };
  type FullRow = Row & {
    phase: number;
    matched: number;
    invisibleMs: number;
    removed: number;
    goneMs: number;
    verified: number | null;
    left: number;
  };
  const columns = "clear_no AS clearNo, domain, host, patterns, widened, blocked, soft";
  const seenColumns =
    "clear_no AS clearNo, clear_id AS clearId, domain, host, patterns, widened, soft, seq, matched, at_s AS atS";
  return {
    all: db.prepare<[], Row>(`SELECT ${columns} FROM clear ORDER BY clear_no`),
    byId: db.prepare<[string], FullRow>(
      `SELECT ${columns}, phase, matched, invisible_ms AS invisibleMs, removed, gone_ms AS goneMs, verified, left
       FROM clear WHERE clear_id = ?`,
    ),
    byNo: db.prepare<[number], SeenRow>(`SELECT ${seenColumns} FROM clear WHERE clear_no = ?`),
    concerning: db.prepare<[domain: string, host: string, limit: number], SeenRow>(
      `SELECT ${seenColumns} FROM clear
       WHERE (domain IS NULL OR domain = ?) AND (host IS NULL OR host = ?) AND phase > 0 ORDER BY clear_no DESC LIMIT ?`,
    ),
    isVerified: db.prepare<[number], { verified: number | null; left: number }>(
      "SELECT verified, left FROM clear WHERE clear_no = ?",
    ),
    verified: db.prepare<[number | null, number, number]>(
      "UPDATE clear SET verified = ?, left = ? WHERE clear_no = ?",
    ),
    record: db.prepare<RecordValues>(
      "INSERT INTO clear (clear_no, clear_id, seq, domain, host, patterns, phase, at_s, soft) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
    ),
    apply: db.prepare<[number, number, number, Uint8Array, number]>(
      "UPDATE clear SET phase = 1, widened = ?, matched = ?, invisible_ms = ?, ids = ? WHERE clear_no = ?",
    ),
    unfinished: db.prepare<
      [],
      { clearNo: number; soft: number; atS: number; ids: Uint8Array | null }
    >(
      "SELECT clear_no AS clearNo, soft, at_s AS atS, ids FROM clear WHERE phase = 1 ORDER BY clear_no",
    ),
    finish: db.prepare<[removed: number, goneMs: number, clearNo: number], { blocked: number }>(
      "UPDATE clear SET phase = 2, ids = NULL, removed = ?, gone_ms = ? WHERE clear_no = ? RETURNING blocked",
    ),
    refused: db.prepare<[number], { clearId: string; blocked: number }>(
      "UPDATE clear SET blocked = blocked + 1 WHERE clear_no = ? RETURNING clear_id AS clearId, blocked",
    ),
    forget: db.prepare<[number]>("DELETE FROM clear WHERE phase = 2 AND clear_no < ?"),
    number: db.prepare<[number]>("UPDATE state SET clear_no = ?"),
    cursor: db.prepare<[number]>("UPDATE state SET cursor_seq = ?"),
    floor: db.prepare<[number]>("UPDATE state SET floor_no = ?"),
  };
}

export function seenOf({ patterns, widened, soft, ...row }: SeenRow): ClearSeen {
  return { ...row, ...parseSelection(patterns), widened: widened === 1, isSoft: soft === 1 };
}
