// The bodies that lie in files, as index.db has them, for whoever reads them all. A connection is open for one question only: a reader that stays would hold
// the end of the WAL.

import { openSqlite, type Sqlite } from "../../../base/sqlite.ts";
import { indexPath } from "./index-file.ts";
import { objectPath } from "./object-files.ts";

export type ListedBody = {
  readonly id: number;
  readonly path: string;
  readonly digest: Uint8Array;
  readonly size: number;
};

/** The ids that one question looks through, in some 10 ms whatever it finds: most entries have their body in index.db. */
const idsPerPage = 2_000;

type Row = { readonly id: number; readonly object: string; readonly digest: Uint8Array };

export class BodyList {
  readonly #directory: string;

  /** `directory`: of the cache. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Returns the bodies behind an id, in the order of ids; ids are never given again. `through` undefined: that was all. Throws as SQLite does. */
  after(id: number): {
    readonly bodies: readonly ListedBody[];
    readonly through: number | undefined;
  } {
    return this.#ask((db) => {
      // Ids have gaps: the next one says where to go on.
      const next = db
        .prepare<[number], number>("SELECT id FROM entry WHERE id > ? ORDER BY id LIMIT 1")
        .pluck()
        .get(id);
      if (next === undefined) return { bodies: [], through: undefined };
      const through = next + idsPerPage - 1;
      const rows = db
        .prepare<[number, number], Row & { readonly size: number }>(
          `SELECT id, object, object_digest AS digest, size FROM entry
           WHERE id BETWEEN ? AND ? AND object IS NOT NULL AND object_digest IS NOT NULL ORDER BY id`,
        )
        .all(next, through);
      const bodies = rows.map(({ object, ...row }) => ({
        ...row,
        path: objectPath(this.#directory, object),
      }));
      return { bodies, through };
    });
  }

  /** Whether its entry is still there. Throws as SQLite does. */
  has(id: number): boolean {
    return this.#ask(
      (db) =>
        db.prepare<[number], number>("SELECT 1 FROM entry WHERE id = ?").pluck().get(id) === 1,
    );
  }

  #ask<T>(question: (db: Sqlite) => T): T {
    const db = openSqlite(indexPath(this.#directory), { sync: "normal", readonly: true });
    try {
      return question(db);
    } finally {
      db.close();
    }
  }
}
