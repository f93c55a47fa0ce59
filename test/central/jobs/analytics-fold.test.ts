// The job that keeps numbers of requests up to date: at the start, by the minute, and what it says when it cannot.

import { expect, test } from "vitest";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { startAnalyticsFold } from "../../../src/central/jobs/analytics-fold.ts";
import { until } from "../../support/until.ts";

test("it folds at the start and again; a failure is a warning until it works, and the end waits for nothing else", async () => {
  const now = new Date("2030-01-15T12:00:00Z");
  const health = new Health(() => now);
  const registry = new Registry();
  const folded: Date[] = [];
  let failure: Error | undefined = new Error("disk full");
  let stopped: AbortSignal | undefined;
  {
    await using _ = startAnalyticsFold({
      fold: async (at, stop) => {
        stopped = stop;
        if (failure !== undefined) throw failure;
        folded.push(at);
      },
      bytes: async () => 4_096,
      now: () => now,
      log: silentLog(),
      health,
      registry,
      intervalMs: 20,
      retryMs: 10,
    });
    await until("a warning", () => health.list().length > 0);
    expect(health.list()).toMatchObject([
      { code: "analytics_not_kept", severity: "error", text: expect.stringContaining("disk full") },
    ]);
    expect(await registry.metrics()).toContain("accel_central_analytics_failing 1");
    failure = undefined;
    await until("it works again", () => folded.length >= 2);
    await until("the warning is over", () => health.list().length === 0);
    const text = await registry.metrics();
    expect(text).toContain("accel_central_analytics_failing 0");
    expect(text).toContain("accel_central_analytics_bytes 4096");
  }
  expect(stopped?.aborted).toBe(true);
  expect(folded[0]).toBe(now);
});
