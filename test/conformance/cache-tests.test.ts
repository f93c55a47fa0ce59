// The public tests for HTTP caches through the whole pipeline and the real store: the results are those of expected.ts, and any change in either direction
// fails. Skipped where npm cannot fetch the tests.

import { expect, it } from "vitest";
import {
  findCacheTests,
  runCacheTests,
  startCacheTestOrigin,
  type CacheTestResults,
} from "../support/cache-tests.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { openRig } from "../agent/cache/rig.ts";
import { host, openEdge } from "../agent/accelerator/edge.ts";
import { checksNo, optimal, required, type NotPassed } from "./expected.ts";

const folder = await findCacheTests();

// Their pauses and lifetimes are real, and others may take all the time: once in a few tries there is enough.
it.skipIf(folder === undefined)(
  "are passed but for what expected.ts gives a reason for",
  { retry: 2, timeout: 400_000 },
  async () => {
    const results = await run(folder ?? "");
    expect(notPassed(results, "required")).toEqual(outcomes(required));
    expect(notPassed(results, "optimal")).toEqual(outcomes(optimal));
    expect(Object.keys(notPassed(results, "check")).sort()).toEqual([...checksNo].sort());
    expect([results.required.pass, results.optimal.pass]).toEqual([149, 68]);
  },
);

/** The only setting is that stale answers stand in for errors, without which four required tests would not even run. */
async function run(tests: string): Promise<CacheTestResults> {
  await using origin = await startCacheTestOrigin(tests);
  const site = {
    backend: { urls: [origin.url], retries: 0 },
    cache: { default: { stale_if_error_s: 60 } },
  };
  using dir = tempDir();
  await using rig = openRig(dir.path);
  rig.client.setConfirmed();
  await until("the index", () => rig.cache.confirmed(host));
  await using edge = await openEdge({ site, cache: rig.cache });
  return await runCacheTests(tests, `http://127.0.0.1:${edge.port}`, { host });
}

function notPassed(
  { byId }: CacheTestResults,
  kind: "required" | "optimal" | "check",
): Record<string, string> {
  const others = [...byId.values()].filter((one) => one.kind === kind && one.outcome !== "pass");
  return Object.fromEntries(others.map(({ id, outcome }) => [id, outcome]));
}

function outcomes(expected: Readonly<Record<string, NotPassed>>): Record<string, string> {
  return Object.fromEntries(Object.entries(expected).map(([id, { outcome }]) => [id, outcome]));
}
