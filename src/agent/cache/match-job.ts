// What the matcher process does: reads the index, never writes, answers one job at a time. It has no clock: whoever asked kills it when it takes too long.
//
// FTS5 tells row ids of all customers; they are kept apart outside MATCH, for no pattern can name domain or host: a few matches by looking each row up,
// many by the ids of the scope, read from an index that is narrow (0.8 µs a row against 0.1 µs).

import { existsSync } from "node:fs";
import { openSqlite, type Sqlite } from "../../base/sqlite.ts";
import { messageOf } from "../../core/faults.ts";
import { normalPattern } from "../../core/index-schema.ts";
import type { Scope } from "./entry.ts";
import { IdSet } from "./id-set.ts";
import { encodeIdRuns } from "./id-runs.ts";
import { indexPath, readState } from "./index-file.ts";
import { objectPath } from "./object-files.ts";
import { isDamage, textIsWhole, textProblems } from "./text-index.ts";

export type MatchJob = {
  readonly directory: string;
  /** Another incarnation is another file under the same name. */
  readonly incarnation: number;
} & (
  | {
      readonly kind: "match";
      readonly scope: Scope;
      /** Null: everything in scope. */
      readonly patterns: readonly string[] | null;
      /** Only entries whose source number is below; null: all. */
      readonly olderThan: number | null;
      /** The newest number that the index has given: a file without it is a copy that was put in its place. */
      readonly newestNo?: number;
      /** The text index has not been checked since an unclean end: damaged, it would answer too little. */
      readonly checkFirst?: boolean;
    }
  | { readonly kind: "check" }
  /** The text index alone. */
  | { readonly kind: "text" }
);

export type MatchAnswer =
  /** Runs of ids, see id-runs.ts. */
  | { readonly kind: "matched"; readonly ids: Uint8Array }
  | { readonly kind: "checked"; readonly problems: readonly string[] }
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly damaged: boolean;
      readonly overBudget?: boolean;
    };

const problemsMax = 20;
/** Above, reading the ids of the whole scope costs less than looking up each match. */
const lookupsMax = 20_000;
/** KiB of pages that the matcher keeps: the posting lists of a common word and the narrow index of a million entries. */
const pageCacheKiB = 65_536;

export class Matcher implements Disposable {
  #db: Sqlite | undefined;
  #incarnation = 0;

  /** Never throws. */
  run(job: MatchJob): MatchAnswer {
    try {
      const db = this.#open(job);
      if (job.kind === "match" && readState(db).clear_no < (job.newestNo ?? 0))
        return { kind: "failed", reason: "index.db is an older copy", damaged: true };
      if (job.kind === "text") return { kind: "checked", problems: textProblems(db) };
      if (job.kind === "match" && job.checkFirst === true) {
        const [problem] = textProblems(db);
        if (problem !== undefined) return { kind: "failed", reason: problem, damaged: true };
      }
      return job.kind === "match"
        ? { kind: "matched", ids: encodeIdRuns(match(db, job)) }
        : { kind: "checked", problems: check(db, job.directory) };
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

type Match = Extract<MatchJob, { kind: "match" }>;

/** Ascending. One transaction: what is asked in several steps is of one state. */
function match(db: Sqlite, job: Match): Float64Array {
  return db.transaction(() => {
    const ids = matching(db, job);
    return job.olderThan === null ? ids : ids.filter(isOlder(db, job.olderThan));
  })();
}

function matching(db: Sqlite, { scope, patterns }: Match): Float64Array {
  if (patterns === null) return IdSet.of([idsInScope(db, scope)]).ascending();
  const found = db
    .prepare<[string], number>("SELECT rowid FROM entry_text WHERE entry_text MATCH ?")
    .pluck();
  const matches = IdSet.of(patterns.map((pattern) => found.all(normalPattern(pattern))));
  const ids = matches.ascending();
  if (scope.domain === null && scope.host === null) return ids;
  if (ids.length <= lookupsMax) return ids.filter(isInScope(db, scope));
  return matches.intersect(idsInScope(db, scope)).ascending();
}

function isOlder(db: Sqlite, clearNo: number): (id: number) => boolean {
  const row = db
    .prepare<[number, number], number>("SELECT 1 FROM entry WHERE id = ? AND source_no < ?")
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

/** In no order. */
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

/** What an operator should know, in words; nothing where all is well. */
function check(db: Sqlite, directory: string): string[] {
  // FTS5 is asked by SQLite's own check too.
  const lines = db.prepare<[], string>(`PRAGMA integrity_check(${problemsMax})`).pluck().all();
  const problems = lines.filter((line) => line !== "ok");
  if (!textIsWhole(db, false)) problems.push("the text index does not cover every entry");
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
