// What a selection matches, asked of the matcher part by part within one budget: FTS5 tells ids of all hosts, so
// the patterns of each host are asked for themselves.

import { everything } from "../../../core/patterns/pattern-recipes.ts";
import type { Scope } from "../entry.ts";
import type { OpenIndex } from "../index/open-index.ts";
import { IdSet } from "./id-set.ts";
import type { MatchAnswer } from "./match-job.ts";
import { narrowed, type ClearSelection } from "./selection.ts";

export type SelectionMatched =
  /** The servable ids in scope that the selection matches, ascending. */
  | { readonly kind: "matched"; readonly ids: Float64Array }
  | Extract<MatchAnswer, { kind: "failed" }>;

export type SelectionQuestion = {
  readonly index: Pick<OpenIndex, "servableIds" | "entries">;
  readonly scope: Scope;
  readonly selection: ClearSelection;
  readonly budgetMs: number;
  readonly elapsedMs: () => number;
  /** Asks the matcher for these patterns. Never rejects. */
  readonly match: (patterns: readonly string[], budgetMs: number) => Promise<MatchAnswer>;
};

const indexing = {
  kind: "failed",
  reason: "what an earlier release has stored is being indexed",
  damaged: false,
} as const;

/** Asks for each part. Never rejects but with what the index throws. */
export async function matchSelection(question: SelectionQuestion): Promise<SelectionMatched> {
  const { index, scope, selection, budgetMs, elapsedMs, match } = question;
  const endMs = elapsedMs() + budgetMs;
  const found: Float64Array[] = [];
  for (const { host, patterns } of partsOf(selection)) {
    const partScope = narrowed(scope, host);
    if (partScope === undefined) continue;
    // All of a host needs no search: that would take a third of a second for half a million entries.
    if (patterns === null || patterns.includes(everything)) {
      found.push(index.servableIds(partScope));
      continue;
    }
    if (index.entries.isIndexing) return indexing;
    const restMs = endMs - elapsedMs();
    if (restMs <= 0)
      return {
        kind: "failed",
        reason: `over the budget of ${budgetMs} ms`,
        damaged: false,
        overBudget: true,
      };
    const answer = await match(patterns, restMs);
    if (answer.kind === "failed") return answer;
    if (answer.kind !== "matched")
      return { kind: "failed", reason: "the matcher answered another question", damaged: false };
    found.push(index.servableIds(partScope, answer.ids));
  }
  const [only = new Float64Array()] = found;
  const lists = found.map((ids) => Array.from(ids));
  return { kind: "matched", ids: found.length < 2 ? only : IdSet.of(lists).ascending() };
}

/** Returns the parts with the patterns that hold for one host joined; those that match nothing are left out. */
function partsOf({ patterns, groups }: ClearSelection): ClearSelection["groups"] {
  const byHost = new Map<string | null, readonly string[] | null>([[null, patterns]]);
  for (const group of groups) {
    const before = byHost.get(group.host);
    const joined =
      before === null || group.patterns === null ? null : [...(before ?? []), ...group.patterns];
    byHost.set(group.host, joined);
  }
  const all = byHost.get(null) === null;
  return [...byHost]
    .filter(([host, list]) => list?.length !== 0 && (!all || host === null))
    .map(([host, list]) => ({ host, patterns: list }));
}
