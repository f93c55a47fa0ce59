// What a clear would hit: for central's question and for the operator's.

import { exactPatternOf } from "../core/patterns/pattern-recipes.ts";
import {
  dryRunSamplesMax,
  sampleTextMax,
  type DryRunQuestion,
  type DryRunResult,
} from "../wire/ask.ts";
import type { IndexClient } from "./cache/index/index-client.ts";

/** Entries looked through for samples: an URL with its coded bodies is up to four. */
const lookedThrough = dryRunSamplesMax * 4;

/** Rejects with PATTERN_INVALID, and with INDEX_BROKEN where nothing can be counted. */
export async function dryRun(
  index: Pick<IndexClient, "search">,
  { domain, host, patterns }: DryRunQuestion,
  budgetMs?: number,
): Promise<DryRunResult> {
  const { matched, samples, overBudget } = await index.search({
    scope: { domain, host },
    patterns,
    limit: lookedThrough,
    ...(budgetMs === undefined ? {} : { budgetMs }),
  });
  return {
    matched,
    samples: samples
      .filter(({ coding }) => coding === "")
      .slice(0, dryRunSamplesMax)
      .map((entry) => ({
        kind: entry.kind,
        path: entry.path.slice(0, sampleTextMax),
        query: entry.query.slice(0, sampleTextMax),
        mime: entry.mime.slice(0, 255),
        size: entry.size,
        stored_at: new Date(entry.storedAtMs).toISOString(),
        pattern: exactPatternOf(entry),
      })),
    ...(overBudget && { over_budget: true }),
  };
}
