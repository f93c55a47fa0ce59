// The metrics of the cache index: counters of main go on where those of an index thread begin anew.

import { expect, test } from "vitest";
import { CacheMetrics } from "../../../src/agent/cache/cache-metrics.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { AccelError } from "../../../src/core/faults.ts";

const totals = {
  isOpen: true,
  entries: 12,
  bytes: 3_400,
  diskMax: 9_000,
  withheldBytes: 70,
  walBytes: 0,
  clearNo: 5,
  durableNo: 5,
  unfinishedClears: 1,
};

/** Every sample but of histograms, `name{label}`: value. */
async function samples(registry: Registry): Promise<Record<string, number>> {
  const metrics = await registry.getMetricsAsJSON();
  return Object.fromEntries(
    metrics
      .filter(({ type }) => String(type) !== "histogram")
      .flatMap(({ name, values }) =>
        values.map(({ labels, value }) => [
          [name.replace("accel_agent_cache_", ""), ...Object.values(labels)].join(" "),
          value,
        ]),
      ),
  );
}

test("totals of the index thread are told, and counted on from one thread to the next", async () => {
  const registry = new Registry();
  const metrics = new CacheMetrics(registry);
  metrics.restarted();
  metrics.totals({ ...totals, stored: 5, blocked: 4, evicted: 3, failed: 2 });
  metrics.totals({ ...totals, stored: 15, blocked: 8, evicted: 6, failed: 4 });
  const counted = {
    "commits_total stored": 15,
    "commits_total blocked": 8,
    "commits_total failed": 4,
    evicted_total: 6,
  };
  expect(await samples(registry)).toMatchObject({
    ...counted,
    entries: 12,
    bytes: 3_400,
    bytes_max: 9_000,
    withheld_bytes: 70,
    clear_number: 5,
    deletions: 1,
    open: 1,
  });
  metrics.restarted();
  expect(await samples(registry)).toMatchObject({ ...counted, open: 0 });
  metrics.totals({ ...totals, isOpen: false, stored: 1, blocked: 2, evicted: 3, failed: 4 });
  expect(await samples(registry)).toMatchObject({
    "commits_total stored": 16,
    "commits_total blocked": 10,
    "commits_total failed": 8,
    evicted_total: 9,
    open: 0,
  });
});

test("clears are counted by what came of them", async () => {
  const registry = new Registry();
  const metrics = new CacheMetrics(registry);
  const applied = { clearNo: 1, matched: 2, widened: false, invisibleMs: 20 };
  const gone = { removed: 2, blockedInFlight: 3, goneMs: 40, verified: true, left: 0 };
  metrics.cleared(applied);
  metrics.cleared({ ...applied, widened: true });
  metrics.cleared(applied);
  metrics.notCleared(new AccelError("PATTERN_INVALID", "no"));
  metrics.notCleared(new AccelError("INDEX_BROKEN", "no"));
  metrics.notCleared(new AccelError("INDEX_BROKEN", "no"));
  metrics.gone(gone);
  metrics.gone({ ...gone, verified: false, left: 1 });
  metrics.gone({ ...gone, verified: null });
  metrics.refused(4);
  metrics.dropped();
  expect(await samples(registry)).toMatchObject({
    "clears_total applied": 2,
    "clears_total widened": 1,
    "clears_total refused": 1,
    "clears_total failed": 2,
    "clear_verifications_total verified": 1,
    "clear_verifications_total left": 1,
    "clear_verifications_total unknown": 1,
    removed_total: 6,
    clear_blocked_total: 13,
    drops_total: 1,
  });
});
