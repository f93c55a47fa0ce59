// The metrics of the cache index, as main exports them.

import { createMetrics, type Registry } from "../../base/metrics.ts";
import { codeOf } from "../../core/faults.ts";
import type { ClearApplied, ClearGone } from "./clearing/clears.ts";
import type { IndexerTotals } from "./messages.ts";

export const cacheMetrics = {
  accel_agent_cache_entries: { kind: "gauge", help: "Stored responses, static files included." },
  accel_agent_cache_bytes: { kind: "gauge", help: "Space that stored responses take on disk." },
  accel_agent_cache_bytes_max: {
    kind: "gauge",
    help: "Limit of the space that stored responses take on disk.",
  },
  accel_agent_cache_withheld_bytes: {
    kind: "gauge",
    help: "How much of the limit may not be used now, because less than cache.disk_free_min would be free.",
  },
  accel_agent_cache_open: { kind: "gauge", help: "1 while the cache index is open." },
  accel_agent_cache_clear_number: { kind: "gauge", help: "The number of the newest clear." },
  accel_agent_cache_deletions: {
    kind: "gauge",
    help: "Clears in force whose entries are still being deleted.",
  },
  accel_agent_cache_commits_total: {
    kind: "counter",
    help: "Responses offered to the index. blocked: cleared, or overtaken by a newer one, while being fetched.",
    labels: ["outcome"],
  },
  accel_agent_cache_evicted_total: { kind: "counter", help: "Entries evicted for space." },
  accel_agent_cache_clears_total: {
    kind: "counter",
    help: "Clears. widened: more was cleared than the patterns match.",
    labels: ["outcome"],
  },
  accel_agent_cache_last_clear_timestamp_seconds: {
    kind: "gauge",
    help: "When the newest clear of this process was applied; 0 if none was.",
  },
  accel_agent_cache_drops_total: {
    kind: "counter",
    help: "How often everything cached was dropped because the index was damaged, out of date or missing.",
  },
  accel_agent_cache_clear_verifications_total: {
    kind: "counter",
    help: "Clears by the result of the second search. left: entries were still servable, or fresh after a soft clear, which is a defect; unknown: the search was not possible.",
    labels: ["outcome"],
  },
  accel_agent_cache_clear_blocked_total: {
    kind: "counter",
    help: "Responses that clears kept from being stored because they were being fetched. Each counts once, when its fetch has ended.",
  },
  accel_agent_cache_clear_gone_seconds: {
    kind: "histogram",
    help: "Time from a clear being in force until its rows and bodies were deleted, or noted as stale by a soft clear.",
    buckets: [0.01, 0.1, 0.5, 1, 5, 15, 60],
  },
  accel_agent_cache_removed_total: { kind: "counter", help: "Entries deleted by clears." },
  accel_agent_cache_clear_invisible_seconds: {
    kind: "histogram",
    help: "Time from the order to clear until nothing that matches was servable, or fresh after a soft clear.",
    buckets: [0.005, 0.02, 0.05, 0.1, 0.3, 0.6, 1, 2.5],
  },
} as const;

export class CacheMetrics {
  readonly #metrics;
  /** The newest that is known. */
  #clearNo = 0;
  /** Totals of the thread that runs; they begin at 0 with each. */
  #last = { stored: 0, blocked: 0, evicted: 0, failed: 0 };

  constructor(registry: Registry) {
    this.#metrics = createMetrics(cacheMetrics, registry);
  }

  restarted(): void {
    this.#last = { stored: 0, blocked: 0, evicted: 0, failed: 0 };
    this.#metrics.accel_agent_cache_open.set(0);
  }

  totals(totals: IndexerTotals): void {
    const metrics = this.#metrics;
    metrics.accel_agent_cache_entries.set(totals.entries);
    metrics.accel_agent_cache_bytes.set(totals.bytes);
    metrics.accel_agent_cache_bytes_max.set(totals.diskMax);
    metrics.accel_agent_cache_withheld_bytes.set(totals.withheldBytes);
    metrics.accel_agent_cache_open.set(totals.isOpen ? 1 : 0);
    this.numbered(totals.clearNo);
    metrics.accel_agent_cache_deletions.set(totals.unfinishedClears);
    for (const outcome of ["stored", "blocked", "failed"] as const)
      metrics.accel_agent_cache_commits_total.inc(
        { outcome },
        totals[outcome] - this.#last[outcome],
      );
    metrics.accel_agent_cache_evicted_total.inc(totals.evicted - this.#last.evicted);
    const { stored, blocked, evicted, failed } = totals;
    this.#last = { stored, blocked, evicted, failed };
  }

  /** A clear has this number. Totals of the thread come later, and may be from before it. */
  numbered(clearNo: number): void {
    this.#clearNo = Math.max(this.#clearNo, clearNo);
    this.#metrics.accel_agent_cache_clear_number.set(this.#clearNo);
  }

  cleared({ clearNo, widened, invisibleMs }: ClearApplied): void {
    this.numbered(clearNo);
    const outcome = widened ? "widened" : "applied";
    this.#metrics.accel_agent_cache_last_clear_timestamp_seconds.setToCurrentTime();
    this.#metrics.accel_agent_cache_clears_total.inc({ outcome });
    this.#metrics.accel_agent_cache_clear_invisible_seconds.observe(invisibleMs / 1_000);
  }

  notCleared(error: unknown): void {
    const outcome = codeOf(error) === "PATTERN_INVALID" ? "refused" : "failed";
    this.#metrics.accel_agent_cache_clears_total.inc({ outcome });
  }

  gone({ removed, blockedInFlight, goneMs, verified, left }: ClearGone): void {
    const metrics = this.#metrics;
    const outcome = verified === true ? "verified" : left > 0 ? "left" : "unknown";
    metrics.accel_agent_cache_removed_total.inc(removed);
    this.refused(blockedInFlight);
    metrics.accel_agent_cache_clear_gone_seconds.observe(goneMs / 1_000);
    metrics.accel_agent_cache_clear_verifications_total.inc({ outcome });
  }

  /** So many more, for one clear. */
  refused(responses: number): void {
    this.#metrics.accel_agent_cache_clear_blocked_total.inc(responses);
  }

  dropped(): void {
    this.#metrics.accel_agent_cache_drops_total.inc();
  }
}
