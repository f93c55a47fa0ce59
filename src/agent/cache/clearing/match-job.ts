// What the matcher process does: reads the index, never writes, answers one job at a time. It has no clock: whoever asked kills it when it takes too long.
//
// FTS5 tells row ids of all customers; they are kept apart outside MATCH, for no pattern can name domain or host. Clears and searches are told all of them: the index
// thread knows in memory whose each is. The proof of a clear asks the base table instead, so that it believes nothing that the clear believed.

import { existsSync } from "node:fs";
import { openSqlite, type Sqlite } from "../../../base/sqlite.ts";
import { messageOf } from "../../../core/faults.ts";
import { ftsQuery } from "../../../core/patterns/pattern-query.ts";
import { normalPattern } from "../../../core/patterns/index-schema.ts";
import type { Scope } from "../entry.ts";
import { indexPath, readState } from "../index/index-file.ts";
import { objectPath } from "../index/object-files.ts";
import type { IdBits } from "../index/entry-bits.ts";
import { isDamage, textIsWhole, textProblems } from "../index/text-index.ts";
import { IdSet } from "./id-set.ts";
import { narrowed, type ClearSelection } from "./selection.ts";

export type MatchJob = {
  readonly directory: string;
  /** Another incarnation is another file under the same name. */
  readonly incarnation: number;
} & (
  | {
      /** Matches the entries of all customers. */
      readonly kind: "match";
      readonly patterns: readonly string[];
      /** The newest number that the index has given: a file without it is a copy that was put in its place. 0: any will do. */
      readonly newestNo: number;
      /** The text index has not been checked since an unclean end: damaged, it would answer too little. */
      readonly checkFirst: boolean;
    }
  | {
      /** Only what is in scope and has a source number below; of a soft clear, what was neither fetched nor confirmed since. */
      readonly kind: "older";
      readonly scope: Scope;
      readonly selection: ClearSelection;
      readonly olderThan: number;
      readonly isSoft: boolean;
    }
  /** Opens the index and answers: the process has started. */
  | { readonly kind: "ready" }
  | { readonly kind: "check" }
  /** Checks the index without the bodies. */
  | { readonly kind: "index" }
  /** The text index alone. */
  | { readonly kind: "text" }
);

export type MatchAnswer =
  | { readonly kind: "matched"; readonly ids: IdBits }
  | { readonly kind: "checked"; readonly problems: readonly string[] }
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly damaged: boolean;
      readonly overBudget?: boolean;
    };

const problemsMax = 20;
/** Up to so many ids are pushed as arguments at once. */
const fewIds = 10_000;
/** Above so many matches, reading the ids of the whole scope costs less than looking up each. */
const lookupsMax = 20_000;
/** KiB of pages that the matcher keeps: the posting lists of a common word and the narrow index of a million entries. */
const pageCacheKiB = 65_536;

export class Matcher implements Disposable {
  #db: Sqlite | undefined;
  #incarnation = 0;

  /** Runs a job. Never throws. */
  run(job: MatchJob): MatchAnswer {
    try {
      const db = this.#open(job);
      switch (job.kind) {
        case "match":
          return distrust(db, job) ?? { kind: "matched", ids: matching(db, job.patterns).bits };
        case "older":
          return { kind: "matched", ids: older(db, job).bits };
        case "ready":
          return { kind: "checked", problems: [] };
        case "text":
          return { kind: "checked", problems: textProblems(db) };
        case "index":
          return { kind: "checked", problems: indexProblems(db) };
        case "check":
          return { kind: "checked", problems: check(db, job.directory) };
        default:
          return job satisfies never;
      }
    } catch (error) {
      return { kind: "failed", reason: messageOf(error), damaged: isDamage(error) };
    }
  }

  #open({ directory, incarnation }: MatchJob): Sqlite {
    if (this.#db === undefined || this.#incarnation !== incarnation) {
      this.#db?.close();
      this.#db = openSqlite(indexPath(directory), { sync: "normal", readonly: true });
      this.#db.pragma(`cache_size = -${pageCacheKiB}`);
      this.#incarnation = incarnation;
    }
    return this.#db;
  }

  [Symbol.dispose](): void {
    this.#db?.close();
  }
}

function distrust(
  db: Sqlite,
  { newestNo, checkFirst }: Extract<MatchJob, { kind: "match" }>,
): MatchAnswer | undefined {
  const problem =
    readState(db).clear_no < newestNo
      ? "index.db is an older copy"
      : checkFirst
        ? textProblems(db)[0]
        : undefined;
  return problem === undefined ? undefined : { kind: "failed", reason: problem, damaged: true };
}

function matching(db: Sqlite, patterns: readonly string[]): IdSet {
  const found = db
    .prepare<[string], number>("SELECT rowid FROM entry_text WHERE entry_text MATCH ?")
    .pluck();
  // Thousands of patterns of one URL each find little: their ids are united together.
  function* lists(): Iterable<number[]> {
    let some: number[] = [];
    for (const pattern of patterns) {
      const ids = found.all(ftsQuery(normalPattern(pattern)));
      if (ids.length >= fewIds) yield ids;
      else if (some.push(...ids) >= fewIds) {
        yield some;
        some = [];
      }
    }
    yield some;
  }
  // One transaction: what is asked in several steps is of one state.
  return db.transaction(() => IdSet.of(lists()))();
}

type Older = Extract<MatchJob, { kind: "older" }>;

function older(db: Sqlite, { scope, selection, olderThan, isSoft }: Older): IdSet {
  const { patterns, groups } = selection;
  function* lists(): Iterable<number[]> {
    for (const part of [{ host: null, patterns }, ...groups]) {
      if (part.patterns?.length === 0) continue;
      const partScope = narrowed(scope, part.host);
      if (partScope === undefined) continue;
      const matches = part.patterns === null ? undefined : matching(db, part.patterns);
      yield Array.from(inScopeOf(db, partScope, matches).filter(isOlder(db, olderThan, isSoft)));
    }
  }
  return db.transaction(() => IdSet.of(lists()))();
}

/** A few are looked up, many are compared with all ids of the scope, which are read from a narrow index: 0.8 µs a row against 0.1 µs. */
function inScopeOf(db: Sqlite, scope: Scope, matches: IdSet | undefined): Float64Array {
  const ids = matches?.ascending();
  if (ids !== undefined && ids.length <= lookupsMax) return ids.filter(isInScope(db, scope));
  const all = IdSet.of([idsInScope(db, scope)]);
  return (matches?.intersect(all) ?? all).ascending();
}

function isOlder(db: Sqlite, clearNo: number, isSoft: boolean): (id: number) => boolean {
  // A coded variant is as fresh as what it was made of.
  const newest = isSoft ? "coding = '' AND max(source_no, confirmed_no)" : "source_no";
  const row = db
    .prepare<[number, number], number>(`SELECT 1 FROM entry WHERE id = ? AND ${newest} < ?`)
    .pluck();
  return (id) => row.get(id, clearNo) === 1;
}

function isInScope(db: Sqlite, { domain, host }: Scope): (id: number) => boolean {
  const row = db
    .prepare<[number, string | null, string | null], number>(
      "SELECT 1 FROM entry WHERE id = ? AND domain = coalesce(?, domain) AND host = coalesce(?, host)",
    )
    .pluck();
  return (id) => row.get(id, domain, host) === 1;
}

/** Returns the ids in scope, in no order. */
function idsInScope(db: Sqlite, { domain, host }: Scope): number[] {
  const ids = (where: string, ...values: readonly string[]): number[] =>
    db
      .prepare<string[], number>(`SELECT id FROM entry ${where}`)
      .pluck()
      .all(...values);
  if (domain !== null)
    return host === null
      ? ids("WHERE domain = ?", domain)
      : ids("WHERE host = ? AND domain = ?", host, domain);
  return host === null ? ids("") : ids("WHERE host = ?", host);
}

/** Says in words what makes the index one that must not be trusted. Reads one moment. */
function indexProblems(db: Sqlite): string[] {
  return db.transaction(() => findIndexProblems(db))();
}

function findIndexProblems(db: Sqlite): string[] {
  // FTS5 is asked by SQLite's own check too.
  const lines = db.prepare<[], string>(`PRAGMA integrity_check(${problemsMax})`).pluck().all();
  const problems = lines.filter((line) => line !== "ok");
  if (!textIsWhole(db, false)) problems.push("the text index does not cover every entry");
  const keyless = db
    .prepare<[], number>(
      "SELECT count(*) FROM entry WHERE NOT EXISTS (SELECT 1 FROM entry_key WHERE key = entry.key AND id = entry.id)",
    )
    .pluck()
    .get();
  if (keyless !== 0) problems.push(`${keyless} entries are not found by their keys`);
  return problems;
}

/** Says in words what an operator should know; returns nothing if all is well. */
function check(db: Sqlite, directory: string): string[] {
  const problems = indexProblems(db);
  let missing = 0;
  for (const object of db
    .prepare<[], string>("SELECT object FROM entry WHERE object IS NOT NULL")
    .pluck()
    .iterate())
    if (!existsSync(objectPath(directory, object))) missing++;
  if (missing > 0)
    problems.push(`${missing} bodies are missing; each is a miss when it is asked for`);
  return problems;
}
