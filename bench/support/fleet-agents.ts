// A process full of agents without visitors: the real link over a database in memory, each with its own credentials. It is told of its sites by the process
// that started it, and tells every second how many of them are connected and how often a link failed.

import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { sleep } from "../../src/base/wait.ts";
import { openAgentDb } from "../../src/agent/link/agent-db.ts";
import { CentralClient } from "../../src/agent/link/central-client.ts";
import { startLink, type Link } from "../../src/agent/link/link.ts";
import { parseName16, parseSecret16 } from "../../src/core/ids.ts";
import type { Site } from "./fleet-seed.ts";

export type FleetOrder = { readonly centralUrl: string; readonly sites: readonly Site[] };
export type FleetSaid = {
  readonly connected: number;
  readonly snapshots: number;
  /** Links by what failed them last; that central was away is none. */
  readonly failures: Readonly<Record<string, number>>;
};

const sayEveryMs = 250;
/** Agents of a fleet were not all switched on in one second. */
const startsPerSecond = 400;

const stop = new AbortController();
const links: Link[] = [];
let snapshots = 0;

function start(centralUrl: string, site: Site): void {
  const name16 = parseName16(site.name16);
  const secret16 = parseSecret16(site.secret16);
  if (name16 === undefined || secret16 === undefined) throw new TypeError("no credentials");
  const now = (): Date => new Date();
  const db = openAgentDb(":memory:");
  const client = new CentralClient({ centralUrl, name16, secret16, stop: stop.signal });
  const other = async () => ({ phase: "applied" as const, detail: {} });
  links.push(
    startLink({
      centralUrl,
      name16,
      agentVersion: "0.1.0",
      bootId: name16,
      edge: null,
      client,
      db,
      appliers: {
        "viewset.activated": other,
        "viewset.import": other,
        "cache.clear": async ({ body }) => ({
          phase: "applied",
          detail: {
            clear_id: body.clear_id,
            clear_no: 1,
            matched: 0,
            widened: false,
            invisible_ms: 0,
          },
        }),
        "policy.changed": other,
        "domains.changed": other,
        "key.changed": other,
        "certificate.changed": other,
        "bots.changed": other,
      },
      applySnapshot: async () => {
        snapshots++;
        return { cleared: [] };
      },
      onHeadApplied: () => undefined,
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
      stop: stop.signal,
    }),
  );
}

process.on("message", (order: FleetOrder) => {
  void (async () => {
    for (const [no, site] of order.sites.entries()) {
      start(order.centralUrl, site);
      if (no % 20 === 19) await sleep((20 * 1_000) / startsPerSecond, stop.signal);
    }
  })();
});

setInterval(() => {
  const failures: Record<string, number> = {};
  let connected = 0;
  for (const link of links) {
    const { state, last_error: error } = link.status();
    if (state === "connected") connected++;
    if (error !== null && error.code !== "CENTRAL_UNREACHABLE") {
      const what = `${error.code}: ${error.message}`;
      failures[what] = (failures[what] ?? 0) + 1;
    }
  }
  process.send?.({ connected, snapshots, failures } satisfies FleetSaid);
}, sayEveryMs);
process.once("disconnect", () => process.exit());
