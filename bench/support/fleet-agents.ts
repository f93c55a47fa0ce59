// A process full of agents without visitors: the real link over a database in memory, each with its own credentials. It is told of its sites by the process
// that started it, and tells every second how many of them are connected and how often a link failed.

import { Link } from "../../src/agent/link/link.ts";
import { sleep } from "../../src/base/wait.ts";
import type { Site } from "./fleet-seed.ts";
import { lightLink } from "./light-link.ts";

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
  const link = lightLink(centralUrl, site, stop.signal);
  links.push(
    new Link({
      ...link,
      appliers: {
        ...link.appliers,
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
      },
      applySnapshot: async () => {
        snapshots++;
        return { cleared: [] };
      },
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
