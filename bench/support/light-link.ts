// What the link of an agent without visitors is made of: the real client of central and a database in memory. Every entry is taken for applied, and nothing
// is reported; whoever starts the link says otherwise where there is more.

import { fixedSecret } from "../../src/agent/link/site-secret.ts";
import { openAgentDb } from "../../src/agent/link/agent-db.ts";
import { CentralClient } from "../../src/agent/link/central-client.ts";
import type { LinkOptions } from "../../src/agent/link/link.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { parseName16, parseSecret16 } from "../../src/core/ids.ts";
import { appliersOf } from "../../test/support/link-rig.ts";
import type { Site } from "./fleet-seed.ts";

/** `client` and `db` are the caller's to dispose. */
export function lightLink(centralUrl: string, site: Site, stop: AbortSignal): LinkOptions {
  const name16 = parseName16(site.name16);
  const secret16 = parseSecret16(site.secret16);
  if (name16 === undefined || secret16 === undefined) throw new TypeError("no credentials");
  const now = (): Date => new Date();
  const applied = async () => ({ phase: "applied" as const, detail: {} });
  return {
    centralUrl,
    name16,
    agentVersion: "0.1.0",
    bootId: name16,
    edge: null,
    client: new CentralClient({ centralUrl, name16, secret: fixedSecret(secret16), stop }),
    db: openAgentDb(":memory:"),
    appliers: appliersOf(applied),
    applySnapshot: async () => ({ cleared: [] }),
    onHeadApplied: () => undefined,
    onWake: () => undefined,
    siteDeleted: async () => undefined,
    report: async () => ({
      spool: { accepted: 0, delivered: 0, spooled: 0, in_memory: 0, dropped: 0 },
      domains: [],
      warnings: [],
    }),
    counted: () => undefined,
    answerDryRun: async () => ({ matched: 0, over_budget: false, samples: [] }),
    registry: new Registry(),
    health: new Health(now),
    log: silentLog(),
    random: Math.random,
    now,
    stop,
  };
}
