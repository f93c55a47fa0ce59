// Whether the text index covers every entry, asked before each clear: words that are missing match nothing and say nothing. FTS5 keeps a count of its rows,
// the index thread one of the entries that should be among them; comparing the two costs nothing, counting the rows 30 ms for a million.
//
// FTS5's count is the first number of the record with id 1 of its data: a varint as SQLite writes them, seven bits a byte, the highest first. An empty
// record is an index without rows.

import type { Sqlite } from "../../../base/sqlite.ts";

export class TextCount {
  /** Entries up to here have no words any more. */
  #from: number;
  #rows: number;
  /** Changes of the transaction in progress. */
  #pending: { from: number; rows: number } | undefined;
  readonly #record;

  /** When the text index is known to cover every entry. */
  constructor(db: Sqlite) {
    this.#record = db
      .prepare<[], Uint8Array>("SELECT block FROM entry_text_data WHERE id = 1")
      .pluck();
    this.#from = db.prepare<[], number>("SELECT text_from FROM state").pluck().get() ?? 0;
    this.#rows = this.#counted();
  }

  added(rows: number): void {
    this.#change().rows += rows;
  }

  removed(ids: readonly { readonly id: number }[]): void {
    const change = this.#change();
    for (const { id } of ids) if (id > change.from) change.rows--;
  }

  /** All but those of entries behind `from`. */
  emptied(from: number, rowsLeft: number): void {
    this.#pending = { from, rows: rowsLeft };
  }

  settle(committed: boolean): void {
    if (committed && this.#pending !== undefined) {
      this.#from = this.#pending.from;
      this.#rows = this.#pending.rows;
    }
    this.#pending = undefined;
  }

  /** Outside of transactions. Throws as SQLite does. */
  isRight(): boolean {
    return this.#counted() === this.#rows;
  }

  #change(): { from: number; rows: number } {
    return (this.#pending ??= { from: this.#from, rows: this.#rows });
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
