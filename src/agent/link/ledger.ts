// The books of the journal in agent.db: how far it is applied, what is done above that, which receipts
// central still lacks, which entries have a second part to come.
//
//   meta: epoch, cursor, chain    everything up to `cursor` is done; `chain` is the digest there; no epoch:
//                                 no history, a snapshot is due
//   done(seq, from_seq, chain)    done above the cursor: from_seq to seq, one entry or a superseded range
//   receipt(id, seq, phase, …)    in the order they came about, until acknowledged
//                                 one with a `correction` in its detail replaces those of its entry with a
//                                 lower `correction` or none
//   unfinished(seq, entry)        a clear whose `gone` is to come, or an import of a snapshot: applied again
//                                 at the next start
//
// The effect of an entry is durable before `commit`; then receipt, cursor and the rest are one transaction.
// So a crash may repeat an entry, but never loses it or receipts it early. The cursor is the contiguous
// prefix: it moves over `done` rows as soon as they touch it.

import { chainStart } from "../../core/journal/journal-chain.ts";
import type { Sqlite, Transact } from "../../base/sqlite.ts";
import type { Receipt } from "../../wire/receipt.ts";

export type LedgerPosition = {
  /** The epoch of central's store; null if there is no history with any. */
  readonly epoch: string | null;
  readonly seq: number;
  readonly chain: string;
};

export type StoredReceipt = { readonly id: number; readonly receipt: Receipt };

/** An entry as it is kept to be applied again: the shape of KnownEntry, unchecked. */
export type KeptEntry = {
  readonly seq: number;
  readonly kind: string;
  readonly at: string;
  readonly body: Record<string, unknown>;
};

export type Commit = {
  readonly seq: number;
  readonly chain: string;
  readonly receipt: Receipt;
  /** The entry, if it has a second part to come; it is kept until `finish`. */
  readonly unfinished?: KeptEntry | undefined;
  readonly isClear: boolean;
};

/** A receipt that replaces what central was told last of the entry. */
export type EntryReceipt = Pick<Receipt, "seq" | "phase" | "detail">;

export type SnapshotCommit = LedgerPosition & {
  readonly epoch: string;
  readonly receipt: Receipt | undefined;
  /** The receipts of the entries that the snapshot tells of. */
  readonly entries?: readonly EntryReceipt[];
  readonly imports: readonly KeptEntry[];
};

type ReceiptRow = {
  id: number;
  seq: number;
  phase: string;
  detail: string;
  took_ms: number;
};

export class Ledger {
  readonly #db: Sqlite;
  readonly #commit: Transact;
  readonly #sql;
  #position: LedgerPosition;

  constructor(db: Sqlite, commit: Transact = (action) => db.transaction(action).immediate()) {
    this.#db = db;
    this.#commit = commit;
    this.#sql = prepare(db);
    this.#position = this.#readPosition();
  }

  get position(): LedgerPosition {
    return this.#position;
  }

  /** The seq of the newest clear that is applied; 0 if none was since the last snapshot. */
  get lastClearSeq(): number {
    return Number(this.#sql.meta.get("last_clear_seq")?.value ?? 0);
  }

  isDone(seq: number): boolean {
    return seq <= this.#position.seq || this.#sql.isDone.get(seq, seq) !== undefined;
  }

  commit({ seq, chain, receipt, unfinished, isClear }: Commit): void {
    this.#transact(() => {
      this.#addReceipt(receipt);
      if (unfinished !== undefined) this.#keep(unfinished);
      if (isClear && receipt.phase === "applied" && seq > this.lastClearSeq)
        this.#sql.setMeta.run("last_clear_seq", String(seq));
      this.#markDone(seq, seq, chain);
    });
  }

  /** Marks entries as done that later ones replaced: there is nothing to do and nothing to receipt. */
  skip(fromSeq: number, toSeq: number, chain: string): void {
    this.#transact(() => this.#markDone(fromSeq, toSeq, chain));
  }

  /**
   * Records the second part of an entry. Returns false, and does nothing, when it is no longer awaited
   * because a snapshot came between.
   */
  finish(seq: number, receipt: Receipt | undefined): boolean {
    return this.#transact(() => {
      if (this.#sql.release.run(seq).changes === 0) return false;
      if (receipt !== undefined) this.#addReceipt(receipt);
      return true;
    });
  }

  unfinished(): readonly KeptEntry[] {
    // Written by #keep alone.
    return this.#sql.unfinished.all().map(({ entry }) => JSON.parse(entry) as KeptEntry);
  }

  /**
   * Begins at the position of a snapshot whose state is durable. Earlier receipts are dropped: they belong to
   * another history or are covered by the snapshot's receipt.
   */
  restart({ epoch, seq, chain, receipt, entries = [], imports }: SnapshotCommit): void {
    this.#transact(() => {
      this.#erase();
      this.#sql.setMeta.run("epoch", epoch);
      this.#setCursor(seq, chain);
      if (receipt !== undefined) this.#addReceipt(receipt);
      for (const entry of entries) this.#correct(entry);
      for (const entry of imports) this.#keep(entry);
    });
  }

  /**
   * Corrects the receipt of an entry. Nothing is done for an entry of another epoch, since central's journal
   * is another one now.
   */
  correct(epoch: string, receipt: EntryReceipt): void {
    if (epoch !== this.#position.epoch) return;
    this.#transact(() => this.#correct(receipt));
  }

  /**
   * Adds what has become known of an entry since its receipts: it writes all of them anew, in place of those
   * that central still lacks.
   */
  amend(receipts: readonly Receipt[]): void {
    this.#transact(() => {
      const correction = this.#nextCorrection();
      for (const receipt of receipts) {
        this.#sql.dropReceipt.run(receipt.seq, receipt.phase);
        this.#addReceipt({ ...receipt, detail: { ...receipt.detail, correction } });
      }
    });
  }

  /** Forgets the history, as if the agent were new: the next contact takes a snapshot. */
  forget(): void {
    this.#transact(() => {
      this.#erase();
      this.#sql.dropMeta.run("epoch");
      this.#setCursor(0, chainStart);
    });
  }

  receiptsAfter(id: number, limit: number): readonly StoredReceipt[] {
    return this.#sql.receiptsAfter.all(id, limit).map((row) => ({
      id: row.id,
      // Written by #addReceipt alone.
      receipt: {
        seq: row.seq,
        phase: row.phase as Receipt["phase"],
        detail: JSON.parse(row.detail) as Receipt["detail"],
        took_ms: row.took_ms,
      },
    }));
  }

  receiptCount(): number {
    return this.#sql.receiptCount.get()?.count ?? 0;
  }

  acknowledge(ids: readonly number[]): void {
    this.#transact(() => {
      for (const id of ids) this.#sql.acknowledge.run(id);
    });
  }

  /** Runs one transaction. The cached position is read again even when the commit fails. */
  #transact<T>(action: () => T): T {
    try {
      return this.#commit(action);
    } finally {
      this.#position = this.#readPosition();
    }
  }

  #readPosition(): LedgerPosition {
    const text = (key: string): string | undefined => this.#sql.meta.get(key)?.value;
    return {
      epoch: text("epoch") ?? null,
      seq: Number(text("cursor") ?? 0),
      chain: text("chain") ?? chainStart,
    };
  }

  #markDone(fromSeq: number, toSeq: number, chain: string): void {
    let { seq } = this.#readPosition();
    if (toSeq <= seq) return;
    this.#sql.addDone.run(toSeq, fromSeq, chain);
    for (;;) {
      const next = this.#sql.touching.get(seq + 1, seq);
      if (next === undefined) break;
      ({ seq } = next);
      this.#setCursor(seq, next.chain);
    }
    this.#sql.dropDone.run(seq);
  }

  #setCursor(seq: number, chain: string): void {
    this.#sql.setMeta.run("cursor", String(seq));
    this.#sql.setMeta.run("chain", chain);
  }

  #addReceipt({ seq, phase, detail, took_ms }: Receipt): void {
    this.#sql.addReceipt.run(seq, phase, JSON.stringify(detail), took_ms);
  }

  #correct({ seq, phase, detail }: EntryReceipt): void {
    const correction = this.#nextCorrection();
    this.#addReceipt({ seq, phase, detail: { ...detail, correction }, took_ms: 0 });
  }

  /**
   * Returns the next number of a correction. Central keeps the correction with the highest number, so the
   * counter outlives every history.
   */
  #nextCorrection(): number {
    const correction = Number(this.#sql.meta.get("corrections")?.value ?? 0) + 1;
    this.#sql.setMeta.run("corrections", String(correction));
    return correction;
  }

  #keep(entry: KeptEntry): void {
    this.#sql.keep.run(entry.seq, JSON.stringify(entry));
  }

  #erase(): void {
    this.#db.exec("DELETE FROM done; DELETE FROM receipt; DELETE FROM unfinished;");
    this.#sql.dropMeta.run("last_clear_seq");
  }
}

function prepare(db: Sqlite) {
  return {
    meta: db.prepare<[string], { value: string }>("SELECT value FROM meta WHERE key = ?"),
    setMeta: db.prepare<[string, string]>(
      "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
    ),
    dropMeta: db.prepare<[string]>("DELETE FROM meta WHERE key = ?"),
    isDone: db.prepare<[number, number], { seq: number }>(
      "SELECT seq FROM done WHERE seq >= ? AND from_seq <= ? LIMIT 1",
    ),
    // A superseded range may end at an entry that is noted as done already.
    addDone: db.prepare<[number, number, string]>(
      "INSERT INTO done VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET from_seq = min(from_seq, excluded.from_seq)",
    ),
    touching: db.prepare<[number, number], { seq: number; chain: string }>(
      "SELECT seq, chain FROM done WHERE from_seq <= ? AND seq > ? ORDER BY seq LIMIT 1",
    ),
    dropDone: db.prepare<[number]>("DELETE FROM done WHERE seq <= ?"),
    addReceipt: db.prepare<[number, string, string, number]>(
      "INSERT INTO receipt (seq, phase, detail, took_ms) VALUES (?, ?, ?, ?)",
    ),
    dropReceipt: db.prepare<[number, string]>("DELETE FROM receipt WHERE seq = ? AND phase = ?"),
    receiptsAfter: db.prepare<[number, number], ReceiptRow>(
      "SELECT * FROM receipt WHERE id > ? ORDER BY id LIMIT ?",
    ),
    receiptCount: db.prepare<[], { count: number }>("SELECT count(*) AS count FROM receipt"),
    acknowledge: db.prepare<[number]>("DELETE FROM receipt WHERE id = ?"),
    keep: db.prepare<[number, string]>("INSERT OR REPLACE INTO unfinished VALUES (?, ?)"),
    release: db.prepare<[number]>("DELETE FROM unfinished WHERE seq = ?"),
    unfinished: db.prepare<[], { entry: string }>("SELECT entry FROM unfinished ORDER BY seq"),
  };
}
