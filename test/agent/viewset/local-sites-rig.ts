// The sites of one host on a real directory under a real watch, with what they told, counted and warned of.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SiteNames } from "../../../src/agent/viewset/devlove-text.ts";
import { openLocalSites, type LocalSitesOptions } from "../../../src/agent/viewset/local-sites.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";

export const domain = "www.example.com";
export const text = (config: object, host = domain): string =>
  JSON.stringify({ domains: { [host]: config } });

export async function setUp(path: string, options: Partial<LocalSitesOptions> = {}, file?: string) {
  const views = join(path, "views");
  const devloveFile = join(path, "devlove.json");
  await mkdir(views, { recursive: true });
  if (file !== undefined) await writeFile(devloveFile, file);
  const health = new Health(() => new Date(0));
  const changes: string[] = [];
  const viewChanges: (readonly string[] | undefined)[] = [];
  const registry = new Registry();
  let names: SiteNames | undefined = { name: domain, subDomains: [] };
  const sites = await openLocalSites({
    sites: [{ domain, views_dir: views, devlove_file: devloveFile }],
    watchViews: true,
    names: () => names,
    backendRules: {},
    onChange: (changed) => changes.push(changed),
    onViews: (_, paths) => viewChanges.push(paths),
    registry,
    health,
    log: silentLog(),
    stop: new AbortController().signal,
    ...options,
  });
  const valueOf = async (name: string): Promise<unknown> =>
    (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
  return {
    counted: async () => [
      await valueOf("accel_agent_site_files"),
      await valueOf("accel_agent_site_bytes"),
    ],
    views,
    devloveFile,
    health,
    changes,
    viewChanges,
    sites,
    rename: (next: SiteNames | undefined) => (names = next),
    told: () => viewChanges.flatMap((paths) => paths ?? ["everything"]),
  };
}
