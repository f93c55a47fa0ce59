// The wake-up of channels between processes: PostgreSQL's NOTIFY, which is heard after the commit of whoever sends it.

import type { WakeBus } from "../../src/central/agents/wake.ts";
import type pg from "pg";

const channel = "accel_journal";
/** A notification has at most 8,000 bytes. */
const idsAtOnce = 500;

/** The client is connected and is closed by its owner. */
export async function createPostgresWakeBus(client: pg.Client): Promise<WakeBus> {
  const listeners = new Set<(deploymentSiteIds: readonly number[]) => void>();
  client.on("notification", ({ payload = "" }) => {
    const ids = payload.split(",").map(Number);
    for (const listener of listeners) listener(ids);
  });
  await client.query(`LISTEN ${channel}`);
  return {
    publish(deploymentSiteIds) {
      const ids = [...new Set(deploymentSiteIds)];
      for (let at = 0; at < ids.length; at += idsAtOnce)
        // One that is lost costs a minute: agents ask for the journal beside their channel.
        client
          .query("SELECT pg_notify($1, $2)", [channel, ids.slice(at, at + idsAtOnce).join(",")])
          .catch(() => undefined);
    },
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
  };
}
