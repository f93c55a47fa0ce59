// What is counted of a day's records, as the log thread writes it: the minutes that batches touch are held in memory,
// and those that changed are written once for each transaction, in it.

import { randomUUID } from "node:crypto";
import { PackedFault } from "../../core/analytics/packed-bytes.ts";
import { RequestCounts, type TallyName } from "../../core/analytics/request-counts.ts";
import type { Sqlite } from "../../base/sqlite.ts";

type Held = {
  readonly seriesId: number;
  readonly minute: number;
  readonly counts: RequestCounts;
  isChanged: boolean;
};

/** The most minutes held, of all series: some 20 MB. */
const heldMax = 4_096;
const minuteUs = 60_000_000;

export class DayCounts {
  readonly #sql;
  readonly #held = new Map<string, Held>();
  #changed: Held[] = [];
  #last: Held | undefined;
  /** The last `change` written; undefined until this opening of the file writes one. */
  #change: number | undefined;

  constructor(db: Sqlite) {
    this.#sql = prepare(db);
  }

  /** Returns the counts of a minute, to be added to. Must be called inside a transaction that ends with `flush`. */
  of(seriesId: number, atUs: number): RequestCounts {
    const minute = Math.floor(atUs / minuteUs);
    const last = this.#last;
    const held =
      last?.seriesId === seriesId && last.minute === minute ? last : this.#hold(seriesId, minute);
    if (!held.isChanged) this.#changed.push(held);
    held.isChanged = true;
    this.#last = held;
    return held.counts;
  }

  /** Writes what changed. */
  flush(): void {
    for (const held of this.#changed) {
      this.#change = (this.#change ?? this.#begin()) + 1;
      this.#sql.put.run(held.seriesId, held.minute, this.#change, held.counts.bytesOf());
      held.isChanged = false;
    }
    this.#changed = [];
    if (this.#held.size >= heldMax) this.#forget();
  }

  /** Forgets what was counted in a transaction that is undone. */
  undo(): void {
    this.#forget();
    this.#change = undefined;
  }

  #hold(seriesId: number, minute: number): Held {
    const key = `${seriesId}/${minute}`;
    const known = this.#held.get(key);
    if (known !== undefined) return known;
    if (this.#held.size >= heldMax) this.flush();
    const stored = this.#sql.get.get(seriesId, minute)?.counts;
    const held = { seriesId, minute, counts: readableCounts(stored), isChanged: false };
    this.#held.set(key, held);
    return held;
  }

  #forget(): void {
    this.#held.clear();
    this.#changed = [];
    this.#last = undefined;
  }

  /** Gives what is written from here on a name of its own, and returns the last change before. */
  #begin(): number {
    const change = this.#sql.lastChange.get()?.change ?? 0;
    this.#sql.begin.run(randomUUID(), change);
    return change;
  }
}

/** Reads counts. Those whose bytes are damaged begin anew: their records are worth more than their sum. */
export function readableCounts(
  stored: Uint8Array | undefined,
  wanted?: readonly TallyName[],
): RequestCounts {
  if (stored === undefined) return new RequestCounts();
  try {
    return RequestCounts.of(stored, wanted);
  } catch (error) {
    if (!(error instanceof PackedFault)) throw error;
    return new RequestCounts();
  }
}

function prepare(db: Sqlite) {
  return {
    get: db.prepare<[number, number], { counts: Uint8Array }>(
      "SELECT counts FROM bucket WHERE series_id = ? AND minute = ?",
    ),
    put: db.prepare<[number, number, number, Uint8Array]>(
      `INSERT INTO bucket (series_id, minute, change, counts) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET change = excluded.change, counts = excluded.counts`,
    ),
    lastChange: db.prepare<[], { change: number | null }>(
      "SELECT max(change) AS change FROM bucket",
    ),
    begin: db.prepare<[string, number]>(
      "UPDATE counting SET token_before = token, token = ?, since_change = ?",
    ),
  };
}
