// A domain with a small site, and the viewsets part over a real directory with a central in memory.

import { openViewsets, type ViewsetsOptions } from "../../../src/agent/viewset/viewsets.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { FakeCentral } from "./fake-central.ts";

export const never = new AbortController().signal;
export const names = { name: "www.example.com", subDomains: ["static.example.com"] };
export const devlove = JSON.stringify({
  domains: { "www.example.com": {}, "static.example.com": { views_dir: "static" } },
});
export const site = { "index.html": "<p>home", "a/b.html": "<p>b", "a/copy.html": "<p>b" };

export async function setUp(
  path: string,
  central = new FakeCentral(),
  releases?: ViewsetsOptions["releases"],
  backendRules: ViewsetsOptions["backendRules"] = {},
) {
  const registry = new Registry();
  const health = new Health(() => new Date(0));
  const viewsets = await openViewsets({
    stateDir: path,
    central,
    sites: [],
    ...(releases && { releases }),
    backendRules,
    onProgress: () => undefined,
    registry,
    health,
    log: silentLog(),
    stop: never,
  });
  const metric = async (name: string): Promise<unknown> =>
    (await registry.getSingleMetric(`accel_agent_viewset_${name}`)?.get())?.values;
  return { central, viewsets, health, metric };
}
