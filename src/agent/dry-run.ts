// Tells what a clear would hit, for central and for operators.

import { exactPatternOf } from "../core/patterns/pattern-recipes.ts";
import { dryRunSamplesMax, sampleTextMax, type DryRunResult } from "../wire/ask.ts";
import type { Scope } from "./cache/entry.ts";
import type { IndexClient } from "./cache/index/index-client.ts";
import type { ClearSelected } from "./steering/clear-order.ts";

/** The most entries looked through for samples; a URL with its coded bodies may have four. */
const lookedThrough = dryRunSamplesMax * 4;

/**
 * Counts what a clear would hit and gives samples. Rejects with PATTERN_INVALID, and with INDEX_BROKEN if
 * nothing can be counted.
 */
export async function dryRun(
  index: Pick<IndexClient, "search">,
  { domain, host, patterns, groups = [], isWider }: Scope & ClearSelected,
  budgetMs?: number,
): Promise<DryRunResult> {
  if (isWider === true) return { matched: 0, samples: [], over_budget: true };
  const { matched, samples, overBudget } = await index.search({
    scope: { domain, host },
    patterns,
    groups,
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
