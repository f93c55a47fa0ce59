// What the matcher process does: reads the index, never writes, answers one job at a time. It has no clock: whoever asked kills it when it takes too long.

import { existsSync } from "node:fs";
import { openSqlite, type Sqlite } from "../../base/sqlite.ts";
import { messageOf } from "../../core/faults.ts";
import { normalPattern } from "../../core/index-schema.ts";
import type { Scope } from "./entry.ts";
import { encodeIdRuns } from "./id-runs.ts";
import { indexPath } from "./index-file.ts";
import { objectPath } from "./object-files.ts";
import { isDamage, textIsWhole } from "./text-index.ts";

export type MatchJob = {
  readonly directory: string;
  /** Another incarnation is another file under the same name. */
  readonly incarnation: number;
} & (
  | { readonly kind: "match"; readonly scope: Scope; readonly patterns: readonly string[] }
  | { readonly kind: "check" }
);

export type MatchAnswer =
  /** Runs of ids, see id-runs.ts. */
  | { readonly kind: "matched"; readonly ids: Uint8Array }
  | { readonly kind: "checked"; readonly problems: readonly string[] }
  | { readonly kind: "failed"; readonly reason: string; readonly damaged: boolean };

const problemsMax = 20;

export class Matcher implements Disposable {
  #db: Sqlite | undefined;
  #incarnation = 0;

  /** Never throws. */
  run(job: MatchJob): MatchAnswer {
    try {
      const db = this.#open(job);
      return job.kind === "match"
        ? { kind: "matched", ids: match(db, job.scope, job.patterns) }
        : { kind: "checked", problems: check(db, job.directory) };
    } catch (error) {
      return { kind: "failed", reason: messageOf(error), damaged: isDamage(error) };
    }
  }

  #open({ directory, incarnation }: MatchJob): Sqlite {
    if (this.#db === undefined || this.#incarnation !== incarnation) {
      this.#db?.close();
      this.#db = openSqlite(indexPath(directory), { sync: "normal", readonly: true });
      this.#incarnation = incarnation;
    }
    return this.#db;
  }

  [Symbol.dispose](): void {
    this.#db?.close();
  }
}

/** Customers are kept apart outside MATCH: no pattern can name domain or host. */
function match(db: Sqlite, { domain, host }: Scope, patterns: readonly string[]): Uint8Array {
  const inScope = db
    .prepare<[string, string | null, string | null], number>(
      `SELECT entry.id FROM entry_text CROSS JOIN entry ON entry.id = entry_text.rowid
       WHERE entry_text MATCH ? AND entry.domain = coalesce(?, entry.domain) AND entry.host = coalesce(?, entry.host)`,
    )
    .pluck();
  const ids = new Set<number>();
  for (const pattern of patterns)
    for (const id of inScope.iterate(normalPattern(pattern), domain, host)) ids.add(id);
  return encodeIdRuns(Float64Array.from(ids).sort());
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
