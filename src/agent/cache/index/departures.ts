// Why an URL is not cached any more: the last 50,000 entries that went, in index.db, for `accel-agent why`.
//
//   departure   a ring: `slot` counts up and begins anew. url: hash of the key; mime: what it was, which clear patterns are matched against;
//               clear_no: of the clear or the invalidation, null for other reasons; at_s: wall clock.
//
// Written where the rows are deleted, never in the commit that makes a clear durable. It goes with index.db: what is not here is not known.

import type { Sqlite } from "../../../base/sqlite.ts";
import type { EntryKey } from "../entry.ts";

/** The most departures that are kept: about 60 bytes each with their index, 3 MB. */
export const departuresMax = 50_000;

export const createDeparturesSql = `
  CREATE TABLE departure (
    slot INTEGER PRIMARY KEY, url INTEGER NOT NULL, mime TEXT NOT NULL, reason INTEGER NOT NULL, clear_no INTEGER, at_s INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX departure_url ON departure (url);
`;

/** The reasons by their numbers on disk. `lost` means that the body was missing or torn. */
const reasons = ["cleared", "evicted", "replaced", "invalidated", "lost"] as const;
export type DepartureReason = (typeof reasons)[number];

export type Departure = {
  readonly reason: DepartureReason;
  readonly mime: string;
  readonly clearNo: number | null;
  readonly atS: number;
};

export type Cause = Omit<Departure, "mime">;
type KeyRow = EntryKey & { readonly mime: string };

export class Departures {
  readonly #sql;
  /** The slot of the next departure. A rolled-back transaction leaves a gap, which is harmless. */
  #slot: number;

  constructor(db: Sqlite) {
    this.#sql = prepare(db);
    const newest = this.#sql.newest.get();
    this.#slot = newest === undefined ? 0 : newest + 1;
  }

  /** Notes departures, within the transaction that deletes the rows and before they go. */
  note(ids: readonly number[], { reason, clearNo, atS }: Cause): void {
    if (ids.length === 0) return;
    const code = reasons.indexOf(reason);
    for (const row of this.#sql.keys.all(JSON.stringify(ids))) {
      this.#sql.put.run(this.#slot % departuresMax, urlHash(row), row.mime, code, clearNo, atS);
      this.#slot++;
    }
  }

  /** Returns the departures of a key, newest first. */
  of(key: EntryKey, limit: number): Departure[] {
    return this.#sql.of.all(urlHash(key), limit).map(({ reason, ...rest }) => ({
      ...rest,
      reason: reasons[reason] ?? "lost",
    }));
  }
}

/**
 * 53 bits of two multiplicative hashes over the UTF-16 units (cyrb53), a fifth of a microsecond: a wrong answer in 10^11, and only in what an operator reads.
 */
function urlHash({ domain, host, kind, path, query }: EntryKey): number {
  let high = 0xde_ad_be_ef;
  let low = 0x41_c6_ce_57;
  for (const text of [domain, host, kind, path, query]) {
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      high = Math.imul(high ^ unit, 2_654_435_761);
      low = Math.imul(low ^ unit, 1_597_334_677);
    }
    high = Math.imul(high ^ 0x1_00_00, 2_654_435_761); // No UTF-16 unit: where one text ends.
  }
  high =
    Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low =
    Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return 4_294_967_296 * (2_097_151 & low) + (high >>> 0);
}

function prepare(db: Sqlite) {
  type Row = Omit<Departure, "reason"> & { readonly reason: number };
  return {
    // Slots are reused, times do not go back: the newest slot is the one behind the newest time.
    newest: db
      .prepare<[], number>(
        "SELECT slot FROM departure WHERE at_s = (SELECT max(at_s) FROM departure) ORDER BY slot DESC LIMIT 1",
      )
      .pluck(),
    // What was coded of an entry goes with it.
    keys: db.prepare<[ids: string], KeyRow>(
      `SELECT domain, host, kind, path, query, mime FROM entry
       WHERE id IN (SELECT value FROM json_each(?)) AND coding = ''`,
    ),
    put: db.prepare<
      [slot: number, url: number, mime: string, reason: number, clearNo: number | null, atS: number]
    >("INSERT OR REPLACE INTO departure VALUES (?, ?, ?, ?, ?, ?)"),
    of: db.prepare<[url: number, limit: number], Row>(
      `SELECT mime, reason, clear_no AS clearNo, at_s AS atS FROM departure INDEXED BY departure_url
       WHERE url = ? ORDER BY at_s DESC, slot DESC LIMIT ?`,
    ),
  };
}
