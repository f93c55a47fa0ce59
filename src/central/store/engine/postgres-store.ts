// The store on PostgreSQL: opened, brought to this release, read beside. Loaded only where the settings name such a store.

import { setTimeout as sleepFor } from "node:timers/promises";
import { sql } from "kysely";
import { AccelError } from "../../../core/faults.ts";
import { prepareStore, schemaFault, type PrepareOptions, type Store } from "./database.ts";
import { migrations } from "./migrations.ts";
import { postgresFault } from "./postgres-faults.ts";
import { placeText, type PostgresPlace } from "./postgres-place.ts";
import { createPool, unhurriedLimits, type PostgresPoolOptions } from "./postgres-pool.ts";
import { PostgresStore, type PostgresStoreOptions } from "./postgres-dialect.ts";
import { StoreHold, type StoreHoldOptions } from "./postgres-hold.ts";
import {
  StoreWitness,
  tryEvidence,
  type Witnessed,
  type WitnessOptions,
} from "./postgres-witness.ts";
import { refuseToBreak } from "./store-steps.ts";
import { PostgresNotices, type PostgresNoticesOptions } from "./postgres-notices.ts";

export type PostgresOpening = Omit<PostgresPoolOptions, "limits" | "isReader"> & {
  readonly now: () => Date;
  /** In [0, 1). */
  readonly random: () => number;
  /** Called before a unit is run again. */
  readonly onRepeat?: () => void;
};

/** A migration needs one connection, and a second one where it looks beside its transaction. */
const migratingConnections = 2;
/** Long reads such as snapshots, beside the pool of those who write. */
const readerConnections = 3;

/**
 * Opens the store and brings it to this release. Of several that start at once one migrates, and the others wait for it. Throws STORE_UNREACHABLE, STORE_UNSUITED for
 * a server that cannot hold the store, and DATABASE_NEWER for a store of a newer release.
 */
export async function openPostgresStore(
  options: PostgresOpening,
): Promise<Store & AsyncDisposable> {
  await migratePostgresStore(options);
  return connectPostgresStore(options);
}

/** A store that is compared with what central acknowledged, now and whenever its server is another one; what `loss` says it had lost now, for which it has another epoch. */
export type WitnessedStore = {
  readonly store: Store & AsyncDisposable;
  readonly openReader: () => Store & AsyncDisposable;
  readonly witness: StoreWitness;
  readonly loss: Witnessed["loss"];
  /** What is to be logged of that. */
  readonly told: Witnessed["told"];
};

/**
 * Opens the store as `openPostgresStore` does, for a central that serves. `check` throws for a store that is not to be changed. The caller disposes of the witness
 * behind the store. Throws also STORE_UNREACHABLE for a server that is not the primary any more.
 */
export async function openWitnessedStore(
  options: PostgresOpening,
  check: (store: Store) => Promise<void>,
  witnessing: Omit<WitnessOptions, "where" | "now">,
): Promise<WitnessedStore> {
  await migratePostgresStore(options, { newer: "used" });
  const { place, now } = options;
  await using first = connectPostgresStore({ ...options, place: { ...place, connections: 1 } });
  await check(first);
  const { witness, loss, told } = await StoreWitness.open(first, {
    ...witnessing,
    now,
    where: placeText(place),
  });
  const admit: PostgresPoolOptions["admit"] = async (client) => witness.admit(client);
  const store = connectPostgresStore({ ...options, admit, marks: witness.marks });
  witness.removesFrom(store);
  const open = () => openPostgresReader({ ...options, admit });
  return { store, openReader: open, witness, loss, told };
}

/** A step waits so long for a table that others read or write, and they wait behind it. Then it lets them pass. */
const lockMs = 3_000;
const lockPauseMs = 2_000;
/** A `pg_dump` reads every table until it ends. */
const lockPatienceMs = 600_000;

/**
 * Brings the tables to this release, without the limits of time that hold while central serves. Centrals of the release before may work meanwhile; throws STORE_TAKEN where
 * what is to be done would break one of them.
 */
export async function migratePostgresStore(
  options: PostgresOpening,
  prepare: PrepareOptions = { newer: "refused" },
): Promise<void> {
  const where = placeText(options.place);
  {
    await using first = connectPostgresStore({
      ...options,
      place: { ...options.place, connections: 1 },
    });
    await refuseHalfMoved(first, where);
  }
  const place = { ...options.place, connections: migratingConnections };
  const limits = { ...unhurriedLimits, lockMs };
  await using store = connectPostgresStore({ ...options, place, limits });
  await refuseToBreak(store, migrations, where);
  const endMs = performance.now() + lockPatienceMs;
  for (;;) {
    const error = await prepareStore(store, options.now, prepare).catch(
      (thrown: unknown) => thrown,
    );
    if (error === undefined) return;
    const fault = postgresFault(error, where);
    const isBusy = fault instanceof AccelError && fault.code === "BUSY";
    if (!isBusy || performance.now() >= endMs) throw await schemaFault(store, where, fault);
    await sleepFor(lockPauseMs);
  }
}

/** A store that `accel-central migrate` has not brought whole is none. */
async function refuseHalfMoved(store: Store, where: string): Promise<void> {
  const { rows } = await sql<{ there: boolean }>`
    SELECT to_regclass('store_move') IS NOT NULL AS there
  `.execute(store);
  if (rows[0]?.there !== true) return;
  throw new AccelError(
    "STORE_MOVED",
    `a store is being moved to ${where}, and not all of it is there`,
    {
      hint: "Give `accel-central migrate --from` again, where it was given: it goes on where it was.",
    },
  );
}

/** A way into a store that is there. It connects at its first query. */
export function connectPostgresStore(
  options: Omit<PostgresOpening, "now"> &
    Pick<PostgresPoolOptions, "limits" | "isReader"> &
    Pick<PostgresStoreOptions, "marks" | "now">,
): Store & AsyncDisposable {
  const { place, random, onRepeat, marks, now } = options;
  const store = new PostgresStore({
    pool: createPool(options),
    where: placeText(place),
    random,
    ...(onRepeat !== undefined && { onRepeat }),
    ...(marks !== undefined && { marks }),
    ...(now !== undefined && { now }),
  });
  return Object.assign(store, { [Symbol.asyncDispose]: async () => store.destroy() });
}

/** A second way into the store: long reads see one moment of it and hold up no writer. */
export function openPostgresReader(options: Omit<PostgresOpening, "now">): Store & AsyncDisposable {
  const place = { ...options.place, connections: readerConnections };
  return connectPostgresStore({ ...options, place, isReader: true });
}

/**
 * Asks a server whether it can hold the store, and returns its version. Writes nothing. `inspect` is asked of a store that is there. Throws STORE_UNREACHABLE, STORE_UNSUITED,
 * STORE_MOVED for a store that is not whole, and what `inspect` throws.
 */
export async function tryPostgres(
  place: PostgresPlace,
  inspect: (store: Store) => Promise<void> = async () => undefined,
): Promise<string> {
  await using store = connectPostgresStore({
    place: { ...place, connections: 1 },
    random: Math.random,
    isReader: true,
  });
  await refuseHalfMoved(store, placeText(place));
  const { rows: tables } = await sql<{ there: boolean }>`
    SELECT to_regclass('deployment_sites') IS NOT NULL AS there
  `.execute(store);
  if (tables[0]?.there === true) await inspect(store);
  const { rows } = await sql<{ version: string }>`
    SELECT current_setting('server_version') AS version
  `.execute(store);
  return `PostgreSQL ${rows[0]?.version ?? ""}`;
}

/** Opens the way of notices to the other centrals; what `PostgresNotices.open` says. */
export async function openPostgresNotices(
  options: PostgresNoticesOptions,
): Promise<PostgresNotices> {
  return PostgresNotices.open(options);
}

/** Holds the store for one central, or for one of several; what `StoreHold.take` says. */
export async function holdPostgresStore(options: StoreHoldOptions): Promise<AsyncDisposable> {
  return StoreHold.take(options);
}

export { tryEvidence, unhurriedLimits };
