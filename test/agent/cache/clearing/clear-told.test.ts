// What is told of clears: the log line of a drop, and the number of the newest clear beside the other series.

import pino from "pino";
import { expect, test } from "vitest";
import { CacheMetrics } from "../../../../src/agent/cache/cache-metrics.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { clear, keyOf, openedRig, store } from "../rig.ts";

test("a drop says in its log line what was dropped", async () => {
  using dir = tempDir();
  const lines: { readonly msg: string; readonly clear_id?: string }[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  await using rig = await openedRig(dir.path, { log });
  await rig.client.dropDomain("a.test");
  await store(rig.cache, keyOf({ path: "/x" }));
  await rig.client.dropDomain("a.test");
  await store(rig.cache, keyOf({ path: "/x" }));
  await rig.client.dropHost("a.test");
  await store(rig.cache, keyOf({ path: "/x" }));
  await rig.client.dropAll();
  const told = lines.filter(({ clear_id: id }) => id !== undefined).map(({ msg }) => msg);
  expect(told).toEqual([
    "everything cached of a.test was to be dropped, but there was nothing",
    "everything cached of a.test was dropped",
    "everything cached of a.test was dropped",
    "everything cached was dropped",
  ]);
});

test("the number of the newest clear is that of the clear that is counted, and never goes back", async () => {
  const registry = new Registry();
  const metrics = new CacheMetrics(registry);
  const number = async (): Promise<string | undefined> =>
    /^accel_agent_cache_clear_number (\d+)$/m.exec(await registry.metrics())?.[1];
  metrics.cleared({ clearNo: 8, matched: 0, widened: false, invisibleMs: 1 });
  expect(await number()).toBe("8");
  const sizes = { diskMax: 1, withheldBytes: 0, walBytes: 0, entries: 0, bytes: 0 };
  const counts = { stored: 0, blocked: 0, evicted: 0, failed: 0, unfinishedClears: 0 };
  const totals = { ...counts, ...sizes, isOpen: true, durableNo: 0 };
  metrics.totals({ ...totals, clearNo: 7 }); // Told by the index thread before the clear.
  expect(await number()).toBe("8");
  metrics.totals({ ...totals, clearNo: 9 });
  expect(await number()).toBe("9");
});

test("the line of a soft clear says so, that of another does not", async () => {
  using dir = tempDir();
  const lines: { readonly msg: string; readonly soft?: boolean }[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  await using rig = await openedRig(dir.path, { log });
  await clear(rig, ["path:x"], { clearId: "soft", isSoft: true }).gone;
  await clear(rig, ["path:x"], { clearId: "hard" }).gone;
  const told = (): readonly (boolean | undefined)[] =>
    lines.filter(({ msg }) => msg === "cleared").map(({ soft }) => soft);
  await until("both are told", () => told().length === 2);
  expect(told()).toEqual([true, undefined]);
});
