// Whether an index.db is the one that this agent used last. A copy of an earlier time that was put back holds what has been cleared since; agent.db, which
// nobody puts back with it, remembers enough to tell.
//
//   opening   one row. id: random, new at each opening, noted in agent.db as well; before: the one before it, which counts as known, for the process may
//             have ended between the two writes. epoch: of central's store whose journal cursor_seq is a place in; "" none.
//             anew_reason, anew_at_s: why and when the file was made, where it took the place of another.

import type { Sqlite } from "../../../base/sqlite.ts";

/** The facts about the index that agent.db remembers. */
export type IndexFacts = {
  /** The epoch of the store whose journal is followed; null if none is. */
  readonly epoch: string | null;
  /** Seq of the newest applied clear of that journal; 0: none. */
  readonly clearSeq: number;
  /** The newest number of a clear that was acknowledged, given here or by central. */
  readonly clearNo: number;
  /** Null: no index is known. */
  readonly opening: string | null;
  /** Why the index of this state directory holds what may have been cleared elsewhere; undefined where it does not. */
  readonly moved?: string | undefined;
};

/** The part of agent.db that the cache keeps. */
export interface IndexMemory {
  read(): IndexFacts;
  /** Durable when it returns. */
  note(changes: Partial<Pick<IndexFacts, "clearNo" | "opening">>): void;
}

export const createOpeningSql = `
  CREATE TABLE opening (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, before TEXT NOT NULL, epoch TEXT NOT NULL,
    anew_reason TEXT, anew_at_s INTEGER
  ) STRICT;
  INSERT INTO opening VALUES (1, '', '', '', NULL, NULL);
`;

export type Anew = { readonly reason: string; readonly atS: number };

/** Returns why this file is not the one that was used last; undefined where it is. `newestClearNo`: its own. */
export function foreignness(
  db: Sqlite,
  { epoch, clearNo, opening, moved }: IndexFacts,
  newestClearNo: number,
): string | undefined {
  // With the instance the journal's history went: whatever else does not fit follows from that.
  if (moved !== undefined) return moved;
  const row = readOpening(db);
  if (opening === null) return "agent.db knows nothing of this index";
  if (row.id !== opening && row.before !== opening)
    return "the index is an older copy: agent.db remembers another opening than its last";
  if (newestClearNo < clearNo)
    return `the index is an older copy: it knows clears up to number ${newestClearNo}, number ${clearNo} was acknowledged`;
  if (row.epoch !== (epoch ?? ""))
    return "the index followed the journal of another store of central's than the agent does";
  return undefined;
}

/** Notes an opening, within the transaction that takes the file into use. */
export function noteOpening(db: Sqlite, id: string, anew: Anew | undefined): void {
  db.prepare<[string]>("UPDATE opening SET before = id, id = ?").run(id);
  if (anew !== undefined)
    db.prepare<[string, number]>("UPDATE opening SET anew_reason = ?, anew_at_s = ?").run(
      anew.reason,
      anew.atS,
    );
}

export function noteEpoch(db: Sqlite, epoch: string | null): void {
  db.prepare<[string]>("UPDATE opening SET epoch = ?").run(epoch ?? "");
}

/** Returns why and when the index was made anew; undefined where it has been there since the first start. */
export function madeAnew(db: Sqlite): Anew | undefined {
  const { anew_reason: reason, anew_at_s: atS } = readOpening(db);
  return reason === null ? undefined : { reason, atS: atS ?? 0 };
}

function readOpening(db: Sqlite) {
  type Row = {
    readonly id: string;
    readonly before: string;
    readonly epoch: string;
    readonly anew_reason: string | null;
    readonly anew_at_s: number | null;
  };
  const row = db.prepare<[], Row>("SELECT * FROM opening").get();
  if (row === undefined) throw new RangeError("index.db has no row of its opening");
  return row;
}
