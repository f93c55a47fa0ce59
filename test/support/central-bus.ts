// Centrals at one PostgreSQL of the test's own, each with the bus and what it keeps of the others.

import { randomBytes } from "node:crypto";
import { Registry } from "../../src/base/metrics.ts";
import { silentLog } from "../../src/base/log.ts";
import type { OpenNoticeWay } from "../../src/central/cluster/bus.ts";
import { openCluster, type Cluster } from "../../src/central/cluster/cluster.ts";
import type { Store } from "../../src/central/store/engine/database.ts";
import type { PostgresPlace } from "../../src/central/store/engine/postgres-place.ts";
import { openPostgresNotices } from "../../src/central/store/engine/postgres-store.ts";
import { sealer } from "./agent-side.ts";

export function wayTo(place: PostgresPlace): OpenNoticeWay {
  return async (given) => openPostgresNotices({ ...given, place, random: Math.random });
}

/** Joins the centrals at the store. */
export async function joinCluster(
  store: Store,
  openWay: OpenNoticeWay,
  address = "one.example (127.0.0.1:8000)",
  whenStarted = "2030-01-15T12:00:00.000Z",
): Promise<Cluster> {
  return openCluster({
    store,
    id: randomBytes(8).toString("hex"),
    openWay,
    central: { address, version: "1.0.0", whenStarted },
    sealer,
    settings: { digests: {}, mayDiffer: [] },
    // Nobody answers there.
    baseUrl: "http://127.0.0.1:1",
    authority: () => undefined,
    hostName: "one.example",
    onLone: () => undefined,
    monotonicMs: () => performance.now(),
    now: () => new Date(),
    registry: new Registry(),
    log: silentLog(),
  });
}
