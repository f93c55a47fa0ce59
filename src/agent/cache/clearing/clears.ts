// Every clear that may still matter: its rows in index.db, and the guard that a response must pass before it is stored.
//
// A clear is recorded (numbered, known to the guard) before anything is matched, applied in one FULL commit with the ids it hit, and gone when their
// rows are deleted. An invalidation (RFC 9111 §4.4) takes a number as well, which tells copies of before from the index; what is being fetched is kept out by its
// mark (shared-header.ts).

import type { Sqlite } from "../../../base/sqlite.ts";
import { inScope, type ClearGroup, type EntryKey, type EntryMeta, type Scope } from "../entry.ts";
import type { Guard } from "../index/guard.ts";
import { commit, readState } from "../index/index-file.ts";
import { prepareClearSql, seenOf, type ClearSeen } from "./clear-sql.ts";
import { decodeIdRuns } from "./id-runs.ts";
import {
  allInScope,
  normalSelection,
  parseSelection,
  patternListsFor,
  selectionChars,
  selectionText,
  type ClearSelection,
} from "./selection.ts";

/** The most clears that are remembered one by one; a response whose source is older than the oldest of them is not stored. */
const rememberedMax = 10_000;
const rememberedPatternCharsMax = 16_777_216;

export type ClearRequest = Scope & {
  readonly clearId: string;
  /** Null: everything in scope. Else at most 64, checked before anything is done. */
  readonly patterns: readonly string[] | null;
  /** What our own programs made of what was named; absent: nothing. */
  readonly groups?: readonly ClearGroup[];
  /** It is wider than what was asked for, because that would have been too much; absent: it is not. */
  readonly isWider?: boolean;
  /** What matches becomes stale, and is kept; absent: it goes. */
  readonly isSoft?: boolean;
  /** The number of the journal entry; 0 for a clear given on this host. */
  readonly seq: number;
};
export type ClearApplied = {
  readonly clearNo: number;
  readonly matched: number;
  readonly widened: boolean;
  readonly invisibleMs: number;
};
export type ClearGone = {
  readonly removed: number;
  /** Responses that were refused for it so far. Each counts for one clear, the oldest that came after it was asked for and matches it. */
  readonly blockedInFlight: number;
  readonly goneMs: number;
  /** The predicate was asked again after the deletion and found nothing; false: it did, or could not be asked; null: not yet. */
  readonly verified: boolean | null;
  /** How many it found, which is a defect; they were dropped then. */
  readonly left: number;
};
export type AppliedRow = Omit<ClearApplied, "clearNo"> & { readonly ids: Uint8Array };

type Remembered = Scope & {
  readonly clearNo: number;
  readonly isSoft: boolean;
  selection: ClearSelection;
};
/** What is asked of the guard. `confirmedNo`: as in Refreshed; absent: soft clears count as the others do. */
export type Guarded = {
  readonly key: EntryKey;
  readonly meta: Pick<EntryMeta, "mime" | "tags" | "sourceNo"> & { readonly confirmedNo?: number };
};
/**
 * Why a response is not stored. `forgotten`: its source is too old to know what came since, and so is whatever it replaces. `matched`: by the oldest clear that came
 * after its source was read and matches.
 */
export type StoreRefusal =
  | { readonly why: "matched"; readonly clearNo: number; readonly isSoft: boolean }
  | { readonly why: "forgotten" };
/** How many responses a clear has kept from being stored. */
export type RefusedStores = { readonly clearId: string; readonly blocked: number };
export type StoredClear = Scope & {
  readonly clearNo: number;
  readonly phase: number;
  readonly isSoft: boolean;
  /** Everything in scope also where it was widened. */
  readonly selection: ClearSelection;
  readonly applied: ClearApplied;
  readonly gone: ClearGone;
};
export class Clears {
  readonly #db: Sqlite;
  readonly #guard: Guard;
  readonly #sql: ReturnType<typeof prepareClearSql>;
  /** Ascending by number. */
  readonly #remembered: Remembered[] = [];
  #patternChars = 0;
  #newest: number;
  /** Newest number that index.db keeps whatever happens to the host. */
  #durableNo: number;
  /** The newest clear that was applied. Clears are applied in their order. */
  #appliedNo: number;
  /** Everything up to here counts as matching: clears that are no longer known one by one. */
  #floor: number;
  /** Those of this index: their rows may go. */
  #forgottenNo: number;
  /** Whether clears of this index are no longer known one by one. The newest of them keeps its row, which tells it after a restart. */
  #hasForgotten = false;
  /** The counts by clear id since it was asked last. */
  #refused = new Map<string, number>();
  /** The counts of the transaction in progress. */
  #pendingRefused: RefusedStores[] = [];

  /** `issuedNo`: newest number that was given out in this process, also where there was no index. */
  constructor(db: Sqlite, guard: Guard, issuedNo: number) {
    this.#db = db;
    this.#guard = guard;
    this.#sql = prepareClearSql(db);
    const state = readState(db);
    this.#newest = Math.max(state.clear_no, issuedNo);
    this.#durableNo = state.clear_no;
    this.#appliedNo = this.#newest;
    this.#floor = Math.max(state.floor_no, issuedNo);
    this.#forgottenNo = state.floor_no;
    for (const { clearNo, domain, host, soft, ...row } of this.#sql.all.iterate())
      if (clearNo <= state.floor_no) this.#hasForgotten = true;
      else
        this.#remember({
          clearNo,
          domain,
          host,
          isSoft: soft === 1,
          selection: selectionOf(row),
        });
  }

  get newest(): number {
    return this.#newest;
  }

  get durableNo(): number {
    return this.#durableNo;
  }

  /** A FULL commit has ended: it wrote out every commit before it. */
  madeDurable(): void {
    this.#durableNo = this.#newest;
  }

  /** Clears up to here have hidden what they match, or are too old to be known one by one. */
  get settledNo(): number {
    return Math.max(this.#appliedNo, this.#floor);
  }

  /** Numbers the clear and arms the guard, durably against a crash of the process. */
  record(
    { clearId, seq, domain, host, patterns, groups = [], isSoft = false }: ClearRequest,
    nowS: number,
  ): number {
    const clearNo = this.#newest + 1;
    const selection = normalSelection({ patterns, groups });
    const text = selectionText(selection);
    commit(this.#db, "normal", () => {
      this.#sql.record.run(clearNo, clearId, seq, domain, host, text, nowS, Number(isSoft));
      this.#sql.number.run(clearNo);
    });
    this.#newest = clearNo;
    this.#remember({ clearNo, domain, host, isSoft, selection });
    return clearNo;
  }

  /** The one durable commit of a clear. */
  apply(clearNo: number, seq: number, { ids, matched, widened, invisibleMs }: AppliedRow): void {
    const remembered = this.#find(clearNo);
    if (widened && remembered !== undefined) {
      this.#patternChars -= selectionChars(remembered.selection);
      remembered.selection = allInScope;
    }
    commit(this.#db, "full", () => {
      this.#sql.apply.run(widened ? 1 : 0, matched, invisibleMs, ids, clearNo);
      if (seq > 0) this.#sql.cursor.run(seq);
    });
    this.#appliedNo = clearNo;
    this.madeDurable();
  }

  /** Returns the result so far of a clear that is in force already, or undefined if it is not known. */
  stored(clearId: string): StoredClear | undefined {
    const row = this.#sql.byId.get(clearId);
    if (row === undefined || row.phase === 0) return undefined;
    const widened = row.widened === 1;
    return {
      clearNo: row.clearNo,
      phase: row.phase,
      domain: row.domain,
      host: row.host,
      isSoft: row.soft === 1,
      selection: selectionOf(row),
      applied: {
        clearNo: row.clearNo,
        matched: row.matched,
        widened,
        invisibleMs: row.invisibleMs,
      },
      gone: {
        removed: row.removed,
        blockedInFlight: row.blocked,
        goneMs: row.goneMs,
        verified: row.verified === null ? null : row.verified === 1,
        left: row.left,
      },
    };
  }

  /** Returns the clears that are applied, and whose entries are not deleted, or not noted as stale, yet. `atS`: when they were given. */
  unfinished(): { clearNo: number; isSoft: boolean; atS: number; ids: Float64Array }[] {
    return this.#sql.unfinished.all().map(({ clearNo, soft, atS, ids }) => ({
      clearNo,
      isSoft: soft === 1,
      atS,
      ids: decodeIdRuns(ids ?? new Uint8Array()),
    }));
  }

  /** Returns the newest clears that concern the key, whatever they match. */
  concerning({ domain, host }: EntryKey, limit: number): ClearSeen[] {
    return this.#sql.concerning.all(domain, host, limit).map(seenOf);
  }

  /** Returns a clear as operators see it. Undefined for an invalidation, and for a clear that is no longer known one by one. */
  seen(clearNo: number): ClearSeen | undefined {
    const row = this.#sql.byNo.get(clearNo);
    return row === undefined ? undefined : seenOf(row);
  }

  /** Returns whether a clear by URL may have hit the scope. Those that are no longer known one by one may have. */
  isByUrl(scope: Scope): boolean {
    if (this.#hasForgotten) return true;
    return this.#remembered.some(
      (clear) => overlap(clear, scope) && clear.selection.groups.some(isOfUrls),
    );
  }

  /** Notes that the last of its rows is deleted, or noted as stale, within the transaction of the caller that does it. */
  finish(clearNo: number, removed: number, goneMs: number): ClearGone {
    const blockedInFlight = this.#sql.finish.get(removed, goneMs, clearNo)?.blocked ?? 0;
    this.#sql.forget.run(this.#forgottenNo);
    this.#sql.floor.run(this.#forgottenNo);
    return { removed, blockedInFlight, goneMs, verified: null, left: 0 };
  }

  /** Returns what came of asking the predicate again. Undefined: that was not done yet. */
  verified(clearNo: number): Pick<ClearGone, "verified" | "left"> | undefined {
    const row = this.#sql.isVerified.get(clearNo);
    return row === undefined || row.verified === null
      ? undefined
      : { verified: row.verified === 1, left: row.left };
  }

  /** Notes the result of asking the predicate again. */
  noteVerified(clearNo: number, { verified, left }: Pick<ClearGone, "verified" | "left">): void {
    commit(this.#db, "normal", () =>
      this.#sql.verified.run(verified === null ? null : Number(verified), left, clearNo),
    );
  }

  /** Numbers an invalidation, within the FULL transaction of the caller that deletes the URL's rows. */
  numberInvalidation(): void {
    this.#newest++;
    this.#sql.number.run(this.#newest);
  }

  /**
   * Returns why the response may not be stored: something that came after its source was read matches it, or a soft clear that came after its origin was asked to
   * confirm it. Undefined: nothing does.
   */
  blocks(guarded: Guarded): StoreRefusal | undefined {
    const { sourceNo, confirmedNo = sourceNo } = guarded.meta;
    if (Math.min(sourceNo, confirmedNo) < this.#floor) return { why: "forgotten" };
    const clear = this.#oldestMatch(guarded);
    if (clear === undefined) return undefined;
    return { why: "matched", clearNo: clear.clearNo, isSoft: clear.isSoft };
  }

  /** Counts a response that was refused for the clear, within the transaction of the caller. */
  countRefused(clearNo: number): void {
    const refused = this.#sql.refused.get(clearNo);
    if (refused !== undefined) this.#pendingRefused.push(refused);
  }

  /** Takes over or forgets what the last transaction counted. */
  settle(committed: boolean): void {
    if (committed)
      for (const { clearId, blocked } of this.#pendingRefused) this.#refused.set(clearId, blocked);
    this.#pendingRefused = [];
  }

  /** Takes the clears of which the count has changed since they were taken last, those first that have waited longest. */
  takeRefused(limit: number): readonly RefusedStores[] {
    const taken = [...this.#refused.entries().take(limit)];
    for (const [clearId] of taken) this.#refused.delete(clearId);
    return taken.map(([clearId, blocked]) => ({ clearId, blocked }));
  }

  #oldestMatch({
    key,
    meta: { mime, tags, sourceNo, confirmedNo = sourceNo },
  }: Guarded): Remembered | undefined {
    const later: Remembered[] = [];
    const oldest = Math.min(sourceNo, confirmedNo);
    for (let at = this.#remembered.length - 1; at >= 0; at--) {
      const clear = this.#remembered[at];
      if (clear === undefined || clear.clearNo <= oldest) break;
      const isLater = clear.clearNo > (clear.isSoft ? confirmedNo : sourceNo);
      if (isLater && inScope(clear, key)) later.push(clear);
    }
    if (later.length === 0) return undefined;
    later.reverse();
    const lists = later.map(({ selection }) => patternListsFor(selection, key.host));
    const wholeAt = lists.indexOf(null);
    const { kind, path, query } = key;
    const first = this.#guard.firstMatch(
      { kind, path, query, mime, tags },
      (wholeAt < 0 ? lists : lists.slice(0, wholeAt)).map((one) => one ?? []),
    );
    return later[first < 0 ? wholeAt : first];
  }

  #find(clearNo: number): Remembered | undefined {
    return this.#remembered.findLast((clear) => clear.clearNo === clearNo);
  }

  #remember(clear: Remembered): void {
    this.#remembered.push(clear);
    this.#patternChars += selectionChars(clear.selection);
    while (
      this.#remembered.length > rememberedMax ||
      this.#patternChars > rememberedPatternCharsMax
    ) {
      const oldest = this.#remembered.shift();
      if (oldest === undefined) return;
      this.#patternChars -= selectionChars(oldest.selection);
      this.#hasForgotten = true;
      this.#forgottenNo = oldest.clearNo;
      this.#floor = Math.max(this.#floor, oldest.clearNo);
    }
  }
}

function overlap(one: Scope, other: Scope): boolean {
  const meet = (a: string | null, b: string | null): boolean => a === null || b === null || a === b;
  return meet(one.domain, other.domain) && meet(one.host, other.host);
}

/** Prefixes have such patterns as well. Tags have none, and neither have clears of everything. */
function isOfUrls({ patterns }: ClearGroup): boolean {
  return patterns?.some((pattern) => pattern.includes("url:")) ?? false;
}

function selectionOf({
  patterns,
  widened,
}: {
  readonly patterns: string | null;
  readonly widened: number;
}): ClearSelection {
  return widened === 1 ? allInScope : parseSelection(patterns);
}
