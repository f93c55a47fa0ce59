// Tells what a clear would hit, for central and for operators.

import { exactPatternOf } from "../core/patterns/pattern-recipes.ts";
import {
  dryRunSamplesMax,
  sampleTextMax,
  type DryRunQuestion,
  type DryRunResult,
} from "../wire/ask.ts";
import type { IndexClient } from "./cache/index/index-client.ts";

/** The most entries looked through for samples; a URL with its coded bodies may have four. */
const lookedThrough = dryRunSamplesMax * 4;

/**
 * Counts what a clear would hit and gives samples. Rejects with PATTERN_INVALID, and with INDEX_BROKEN if
 * nothing can be counted.
 */
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
