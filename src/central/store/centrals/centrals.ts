// The centrals that work on one store: which are there, and the work that one of them does for all.
//
// Who is there is told by no clock: each central counts its own beat up, and whoever sees a beat stand still for long enough by its own clock removes that row.
// All of this is READ COMMITTED: every statement changes rows by their key, and none decides by what another transaction may be changing.

import { sql } from "kysely";
import { storeLevel, type Store, type Tx } from "../engine/database.ts";
import { removeChannelsOf } from "./channels.ts";

/** A central as the others see it. */
export type CentralSeen = {
  readonly id: string;
  readonly address: string;
  readonly version: string;
  /** ISO 8601. */
  readonly whenStarted: string;
  /** A text that opens with the key of the store's secrets. */
  readonly keyProof: string;
  readonly beat: number;
  /** What it tells of its settings; null: a release that tells nothing. */
  readonly settings: string | null;
};

/** Runs an action that looks at rows by their keys alone. */
export async function byKeys<T>(store: Store, action: (tx: Tx) => Promise<T>): Promise<T> {
  return store.transaction().setIsolationLevel("read committed").execute(action);
}

export async function addCentral(tx: Tx, central: Omit<CentralSeen, "beat">): Promise<void> {
  const { id, address, version, whenStarted, keyProof, settings } = central;
  await tx
    .insertInto("centrals")
    .values({
      id,
      address,
      version,
      when_started: whenStarted,
      key_proof: keyProof,
      beat: 0,
      level: storeLevel,
      settings,
    })
    .execute();
}

/** Returns the clock of the store's server, in milliseconds since the epoch. All centrals at the store share it. */
export async function storeClockMs(tx: Tx): Promise<number> {
  const { rows } = await sql<{ ms: string }>`
    SELECT round(extract(epoch FROM clock_timestamp()) * 1000)::text AS ms
  `.execute(tx);
  return Number(rows[0]?.ms);
}

/** Counts the beat up. Returns false for a central that the others took for gone. */
export async function beatCentral(tx: Tx, id: string): Promise<boolean> {
  const beaten = await tx
    .updateTable("centrals")
    .set((set) => ({ beat: set("beat", "+", 1) }))
    .where("id", "=", id)
    .returning("id")
    .execute();
  return beaten.length > 0;
}

export async function listCentrals(tx: Tx): Promise<readonly CentralSeen[]> {
  const rows = await tx.selectFrom("centrals").selectAll().orderBy("id").execute();
  return rows.map(({ when_started: whenStarted, key_proof: keyProof, ...row }) => {
    return { ...row, whenStarted, keyProof };
  });
}

/** Returns what the centrals at the store tell of their settings; of a store that no such central has opened yet, nothing. */
export async function settingsAtStore(
  store: Store,
): Promise<readonly Pick<CentralSeen, "id" | "address" | "beat" | "settings">[]> {
  const { rows } = await sql<{ there: boolean }>`
    SELECT EXISTS (
      SELECT FROM pg_attribute
      WHERE attrelid = to_regclass('centrals') AND attname = 'settings' AND NOT attisdropped
    ) AS there
  `.execute(store);
  if (rows[0]?.there !== true) return [];
  return store.selectFrom("centrals").select(["id", "address", "beat", "settings"]).execute();
}

/** Removes a central with its channels, unless its beat has moved since it was seen. Returns whether it is gone by this. */
export async function removeCentral(
  tx: Tx,
  { id, beat }: { readonly id: string; readonly beat?: number },
): Promise<boolean> {
  let removed = tx.deleteFrom("centrals").where("id", "=", id);
  if (beat !== undefined) removed = removed.where("beat", "=", beat);
  const gone = await removed.returning("id").execute();
  if (gone.length > 0) await removeChannelsOf(tx, id);
  return gone.length > 0;
}

/** Takes the jobs that nobody does who is there. Returns all that this central does now. */
export async function takeJobs(
  tx: Tx,
  central: string,
  jobs: readonly string[],
): Promise<readonly string[]> {
  const rows = await tx.selectFrom("central_jobs").select(["job", "central"]).execute();
  const known = new Set(rows.map(({ job }) => job));
  const added = jobs.filter((job) => !known.has(job));
  if (added.length > 0)
    await tx
      .insertInto("central_jobs")
      .values(added.map((job) => ({ job, central })))
      .onConflict((conflict) => conflict.column("job").doNothing())
      .execute();
  // Of two who meet here the second waits for the row of the first, and finds it taken by one who is there.
  await tx
    .updateTable("central_jobs")
    .set({ central })
    .where("job", "in", jobs)
    .where("central", "not in", tx.selectFrom("centrals").select("id"))
    .execute();
  const mine = await tx
    .selectFrom("central_jobs")
    .select("job")
    .where("central", "=", central)
    .execute();
  return mine.map(({ job }) => job);
}
