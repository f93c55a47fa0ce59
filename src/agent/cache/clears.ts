// Every clear that may still matter: its rows in index.db, and the guard that a response must pass before it is stored.
//
// A clear is recorded (numbered, known to the guard) before anything is matched, applied in one FULL commit with the ids it hit, and gone when their
// rows are deleted. An invalidation (RFC 9111 §4.4) takes a number as well, but hits one URL at once: only the newest number of each URL is remembered.

import { createHash } from "node:crypto";
import type { Sqlite } from "../../base/sqlite.ts";
import { normalPattern } from "../../core/index-schema.ts";
import { inScope, type Candidate, type EntryKey, type Scope } from "./entry.ts";
import type { Guard } from "./guard.ts";
import { decodeIdRuns } from "./id-runs.ts";
import { commit, readState } from "./index-file.ts";

/** Clears remembered one by one; a response whose source is older than the oldest of them is not stored. */
const rememberedMax = 10_000;
const rememberedPatternCharsMax = 16_777_216;
/** About 100 bytes each. */
const rememberedUrlsMax = 50_000;

export type ClearRequest = Scope & {
  readonly clearId: string;
  /** Null: everything in scope. */
  readonly patterns: readonly string[] | null;
  /** Of the journal entry; 0 for a clear given on this host. */
  readonly seq: number;
};
export type ClearApplied = {
  readonly matched: number;
  readonly widened: boolean;
  readonly invisibleMs: number;
};
export type ClearGone = {
  readonly removed: number;
  readonly blockedInFlight: number;
  readonly goneMs: number;
};
export type AppliedRow = ClearApplied & { readonly ids: Uint8Array };

type Remembered = Scope & {
  readonly clearNo: number;
  patterns: readonly string[] | null;
  blocked: number;
};
type StoredClear = {
  readonly clearNo: number;
  readonly phase: number;
  readonly applied: ClearApplied;
  readonly gone: ClearGone;
};

export class Clears {
  readonly #db: Sqlite;
  readonly #guard: Guard;
  readonly #sql: ReturnType<typeof prepare>;
  /** Ascending by number. */
  readonly #remembered: Remembered[] = [];
  #patternChars = 0;
  readonly #urls = new Map<string, number>();
  #newest: number;
  /** Everything up to here counts as matching: clears and invalidations that are no longer known one by one. */
  #floor: number;
  /** The clears among them: their rows may go. */
  #forgottenNo: number;

  /** `issuedNo`: newest number that an index thread before this one gave out in this process; its invalidations are known to nobody any more. */
  constructor(db: Sqlite, guard: Guard, issuedNo: number) {
    this.#db = db;
    this.#guard = guard;
    this.#sql = prepare(db);
    const state = readState(db);
    this.#newest = Math.max(state.clear_no, issuedNo);
    this.#floor = Math.max(state.floor_no, issuedNo);
    this.#forgottenNo = state.floor_no;
    for (const row of this.#sql.all.iterate())
      this.#remember({
        ...row,
        patterns: row.widened === 1 || row.patterns === null ? null : parsePatterns(row.patterns),
        blocked: row.blocked,
      });
  }

  get newest(): number {
    return this.#newest;
  }

  /** Numbers the clear and arms the guard, durably against a crash of the process. */
  record({ clearId, seq, domain, host, patterns }: ClearRequest): number {
    const clearNo = this.#newest + 1;
    const text = patterns === null ? null : JSON.stringify(patterns);
    commit(this.#db, "normal", () => {
      this.#sql.record.run(clearNo, clearId, seq, domain, host, text);
      this.#sql.number.run(clearNo);
    });
    this.#newest = clearNo;
    const normal = patterns?.map((pattern) => normalPattern(pattern)) ?? null;
    this.#remember({ clearNo, domain, host, patterns: normal, blocked: 0 });
    return clearNo;
  }

  /** The one durable commit of a clear. */
  apply(clearNo: number, seq: number, { ids, matched, widened, invisibleMs }: AppliedRow): void {
    const remembered = this.#find(clearNo);
    if (widened && remembered !== undefined) {
      this.#patternChars -= patternChars(remembered);
      remembered.patterns = null;
    }
    commit(this.#db, "full", () => {
      this.#sql.apply.run(widened ? 1 : 0, matched, invisibleMs, ids, clearNo);
      if (seq > 0) this.#sql.cursor.run(seq);
    });
  }

  /** What a clear that is in force already has come to; undefined where it is not known. */
  stored(clearId: string): StoredClear | undefined {
    const row = this.#sql.byId.get(clearId);
    if (row === undefined || row.phase === 0) return undefined;
    return {
      clearNo: row.clearNo,
      phase: row.phase,
      applied: {
        matched: row.matched,
        widened: row.widened === 1,
        invisibleMs: row.invisibleMs,
      },
      gone: { removed: row.removed, blockedInFlight: row.blocked, goneMs: row.goneMs },
    };
  }

  /** Applied, but not yet deleted. */
  unfinished(): { clearNo: number; ids: number[] }[] {
    return this.#sql.unfinished
      .all()
      .map(({ clearNo, ids }) => ({ clearNo, ids: [...decodeIdRuns(ids ?? new Uint8Array())] }));
  }

  /** Within a transaction of the caller, together with the deletion of the last of its rows. */
  finish(clearNo: number, removed: number, goneMs: number): ClearGone {
    const blockedInFlight = this.#find(clearNo)?.blocked ?? 0;
    this.#sql.finish.run(removed, blockedInFlight, goneMs, clearNo);
    this.#sql.forget.run(this.#forgottenNo);
    this.#sql.floor.run(this.#forgottenNo);
    return { removed, blockedInFlight, goneMs };
  }

  /** Within a FULL transaction of the caller that deletes the URL's rows. */
  invalidate(key: EntryKey): void {
    this.#newest++;
    this.#sql.number.run(this.#newest);
    const url = urlHash(key);
    this.#urls.delete(url); // Moves it to the end: the map stays in the order of numbers.
    this.#urls.set(url, this.#newest);
    if (this.#urls.size <= rememberedUrlsMax) return;
    for (const [oldest, clearNo] of this.#urls) {
      this.#urls.delete(oldest);
      this.#floor = Math.max(this.#floor, clearNo);
      return;
    }
  }

  /**
   * Whether a clear that came after the source was read matches: then the response is not stored. `forgotten`: it is too old to know, and so is
   * whatever it replaces.
   */
  blocks({ key, meta }: Pick<Candidate, "key" | "meta">): false | "matched" | "forgotten" {
    if (meta.sourceNo < this.#floor) return "forgotten";
    if ((this.#urls.get(urlHash(key)) ?? 0) > meta.sourceNo) return "matched";
    const later: Remembered[] = [];
    for (let at = this.#remembered.length - 1; at >= 0; at--) {
      const clear = this.#remembered[at];
      if (clear === undefined || clear.clearNo <= meta.sourceNo) break;
      if (inScope(clear, key)) later.push(clear);
    }
    const { kind, path, query } = key;
    const whole = later.find(({ patterns }) => patterns === null);
    const first = this.#guard.firstMatch(
      { kind, path, query, mime: meta.mime },
      whole === undefined ? later.map(({ patterns }) => patterns ?? []) : [],
    );
    const matched = whole ?? later[first];
    if (matched !== undefined) matched.blocked++;
    return matched === undefined ? false : "matched";
  }

  #find(clearNo: number): Remembered | undefined {
    return this.#remembered.findLast((clear) => clear.clearNo === clearNo);
  }

  #remember(clear: Remembered): void {
    this.#remembered.push(clear);
    this.#patternChars += patternChars(clear);
    while (
      this.#remembered.length > rememberedMax ||
      this.#patternChars > rememberedPatternCharsMax
    ) {
      const oldest = this.#remembered.shift();
      if (oldest === undefined) return;
      this.#patternChars -= patternChars(oldest);
      this.#forgottenNo = oldest.clearNo;
      this.#floor = Math.max(this.#floor, oldest.clearNo);
    }
  }
}

function patternChars({ patterns }: Pick<Remembered, "patterns">): number {
  return patterns?.reduce((sum, pattern) => sum + pattern.length, 0) ?? 0;
}

function urlHash({ domain, host, kind, path, query }: EntryKey): string {
  return createHash("sha256")
    .update(JSON.stringify([domain, host, kind, path, query]))
    .digest("base64");
}

/** Written by `record`. */
function parsePatterns(text: string): readonly string[] {
  const patterns: unknown = JSON.parse(text);
  return Array.isArray(patterns) ? patterns.map((pattern) => normalPattern(String(pattern))) : [];
}

function prepare(db: Sqlite) {
  type Row = Scope & { clearNo: number; patterns: string | null; widened: number; blocked: number };
  type FullRow = Row & {
    phase: number;
    matched: number;
    invisibleMs: number;
    removed: number;
    goneMs: number;
  };
  const columns = "clear_no AS clearNo, domain, host, patterns, widened, blocked";
  return {
    all: db.prepare<[], Row>(`SELECT ${columns} FROM clear ORDER BY clear_no`),
    byId: db.prepare<[string], FullRow>(
      `SELECT ${columns}, phase, matched, invisible_ms AS invisibleMs, removed, gone_ms AS goneMs
       FROM clear WHERE clear_id = ?`,
    ),
    record: db.prepare<
      [number, string, number, string | null, string | null, patterns: string | null]
    >(
      "INSERT INTO clear (clear_no, clear_id, seq, domain, host, patterns, phase) VALUES (?, ?, ?, ?, ?, ?, 0)",
    ),
    apply: db.prepare<[number, number, number, Uint8Array, number]>(
      "UPDATE clear SET phase = 1, widened = ?, matched = ?, invisible_ms = ?, ids = ? WHERE clear_no = ?",
    ),
    unfinished: db.prepare<[], { clearNo: number; ids: Uint8Array | null }>(
      "SELECT clear_no AS clearNo, ids FROM clear WHERE phase = 1 ORDER BY clear_no",
    ),
    finish: db.prepare<[number, number, number, number]>(
      "UPDATE clear SET phase = 2, ids = NULL, removed = ?, blocked = ?, gone_ms = ? WHERE clear_no = ?",
    ),
    forget: db.prepare<[number]>("DELETE FROM clear WHERE phase = 2 AND clear_no <= ?"),
    number: db.prepare<[number]>("UPDATE state SET clear_no = ?"),
    cursor: db.prepare<[number]>("UPDATE state SET cursor_seq = ?"),
    floor: db.prepare<[number]>("UPDATE state SET floor_no = ?"),
  };
}
