// The store that the settings name: a file in the state directory, or a database of a PostgreSQL, whose code is loaded only then.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import { createMetrics, type MetricTable, type Registry } from "../base/metrics.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import type { OpenNoticeWay } from "./cluster/bus.ts";
import { keyFileOf, type CentralSettings } from "./settings/fields.ts";
import { readPassword } from "./settings/password-file.ts";
import {
  newerStep,
  openReader,
  openStore,
  storeEpoch,
  storeLevel,
  type Store,
} from "./store/engine/database.ts";
import { evidenceName } from "./store/engine/evidence-file.ts";
import { placeText, type PostgresPlace } from "./store/engine/postgres-place.ts";
import type { StoreHoldOptions } from "./store/engine/postgres-hold.ts";
import { PostgresSilence } from "./store/engine/postgres-silence.ts";
import type { StoreWitness } from "./store/engine/postgres-witness.ts";
import { formerEpochs } from "./store/engine/restores.ts";
import { lossFacts } from "./store/engine/store-evidence.ts";
import { tryStoreKey } from "./store/engine/store-key.ts";
import { readStoreMark } from "./store/move/store-mark.ts";
import { quietLog, StoreAbsence } from "./store-absence.ts";
import { StoreSight } from "./store-sight.ts";

export const storeMetrics = {
  accel_central_store_repeats_total: {
    kind: "counter",
    help: "Transactions and statements that PostgreSQL refused because of others beside them, and that were run again.",
  },
  accel_central_store_connections_lost_total: {
    kind: "counter",
    help: "Connections to PostgreSQL that ended without being asked to.",
  },
} as const satisfies MetricTable;

const fileName = "central.db";
/** A central that was just killed is gone for PostgreSQL a moment later. */
export const commandPatienceMs = 5_000;

/** Where the store is if it is on PostgreSQL. Throws FILE_UNUSABLE for an authority that cannot be read. */
export function postgresPlace(settings: CentralSettings): PostgresPlace | undefined {
  const url = settings["store.url"];
  if (url === undefined) return undefined;
  const passwordFile = settings["store.password_file"];
  return {
    ...url,
    password: () => readPassword("store.password_file", passwordFile),
    tls: settings["store.tls"] === "none" ? false : { ca: readCa(settings["store.ca_file"]) },
    connections: settings["store.connections"],
  };
}

function readCa(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError("FILE_UNUSABLE", `store.ca_file cannot be read: ${messageOf(error)}`);
  }
}

/** Names the store in messages and in the status; without a password. */
export function storeText(settings: CentralSettings): string {
  const place = postgresPlace(settings);
  return place === undefined ? join(settings.state_dir, fileName) : placeText(place);
}

export type StoreOpening = {
  readonly settings: CentralSettings;
  readonly now: () => Date;
  readonly log: Log;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly registry: Registry;
  /** Aborts when a stop waits no longer for a PostgreSQL. */
  readonly cut: AbortSignal;
  /** Called when this central must stop; at most once. */
  readonly fail: (error: AccelError) => void;
  /** Called when all of this central must be closed and opened anew; at most once. */
  readonly reopen: (error: AccelError) => void;
};

export type CentralStore = AsyncDisposable & {
  readonly store: Store;
  /** Names this central to the others, and in its sessions at PostgreSQL. */
  readonly id: string;
  /** The log for all who use the store: while that is away, it says so once. */
  readonly log: Log;
  /** A second way in, for long reads. */
  readonly openReader: () => Store & AsyncDisposable;
  /** Whether the store is another program's, which may be away while this one is well. */
  readonly isShared: boolean;
  /** To be told where journals end whose commits are acknowledged. */
  readonly onJournals?: (ends: ReadonlyMap<number, number>) => void;
  /** The way to the other centrals at the store; undefined where this is the only one. */
  readonly openWay: OpenNoticeWay | undefined;
  /** To be told when this central alone has no way to the store, and when that is over. */
  readonly onLone: (isLone: boolean) => void;
};

/** Opens the store for a central that serves. Throws what opening throws, STORE_TAKEN, and STORE_MOVED for a state directory that belongs to another store. */
export async function openCentralStore(opening: StoreOpening): Promise<CentralStore> {
  const { settings, now } = opening;
  const place = postgresPlace(settings);
  const id = randomBytes(8).toString("hex");
  if (place !== undefined) return openOnPostgres({ ...opening, id }, place);
  refuseMovedFile(settings.state_dir);
  const path = join(settings.state_dir, fileName);
  const store = await openStore(path, now, { newer: "used" });
  await tellNewer(opening, store, path);
  return {
    store,
    id,
    log: opening.log,
    openReader: () => openReader(path),
    isShared: false,
    openWay: undefined,
    onLone: () => undefined, // There are no others.
    [Symbol.asyncDispose]: async () => store[Symbol.asyncDispose](),
  };
}

type NamedOpening = StoreOpening & Pick<CentralStore, "id">;

async function openOnPostgres(opening: NamedOpening, place: PostgresPlace): Promise<CentralStore> {
  const { id, settings, now, log, health, registry, reopen, cut } = opening;
  const { holdPostgresStore, openPostgresNotices, openWitnessedStore } =
    await import("./store/engine/postgres-store.ts");
  const isOneOfSeveral = settings["store.instances"] === "many";
  await using stack = new AsyncDisposableStack();
  const where = placeText(place);
  const metrics = createMetrics(storeMetrics, registry);
  const absence = new StoreAbsence({ log, where, monotonicMs: () => performance.now() });
  const ours = { place, central: id, cut, silence: new PostgresSilence(), random: Math.random };
  const options = {
    ...ours,
    now,
    onRepeat: () => metrics.accel_central_store_repeats_total.inc({}),
    onLost: (error: unknown) => {
      metrics.accel_central_store_connections_lost_total.inc({});
      absence.met(error, "a connection to the store ended");
    },
  };
  refuseUnmovedFile(settings.state_dir);
  const sight = new StoreSight({ health, absence, where });
  /** Of the first connections nothing is known yet: the opening compares the store before anything is served. */
  const admission: { witness?: StoreWitness } = {};
  stack.use(
    await holdPostgresStore({
      ...holdOptions(opening, sight),
      ...ours,
      admit: async (client) => admission.witness?.admit(client),
    }),
  );
  const check = async (first: Store): Promise<void> =>
    refuseOtherStore(settings.state_dir, first, where);
  const { store, openReader, witness, loss, told } = await openWitnessedStore(options, check, {
    path: join(settings.state_dir, evidenceName),
    onLess: reopen,
    onWhole: (before, { timeline, isSynchronous }) =>
      log.info(
        { store: where, timeline_before: before.timeline, timeline, synchronous: isSynchronous },
        "the store's server was started again, or another one took over: it has all that was acknowledged",
      ),
    onFailure: (error) =>
      log.error(
        { err: error, path: join(settings.state_dir, evidenceName) },
        "what central acknowledges cannot be noted: a failover that loses some of it may not be noticed if central ends before",
      ),
  });
  admission.witness = witness;
  stack.use(witness);
  stack.use(store);
  stack.use(witness.watch(store, { onAsked: (error) => sight.poolAsked(error) }));
  if (told !== undefined) log.error({ store: where, ...(loss && lossFacts(loss)) }, told);
  log.info({ store: where, connections: place.connections }, "the store is on PostgreSQL");
  await tellNewer(opening, store, where);
  const owned = stack.move();
  return {
    store,
    id,
    log: quietLog(log, absence),
    openReader,
    isShared: true,
    onJournals: (ends) => witness.marks.journalsTold(ends),
    openWay: isOneOfSeveral
      ? async (given) => openPostgresNotices({ ...given, ...ours })
      : undefined,
    onLone: (isLone) => sight.alone(isLone),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

/** Returns how a central that serves holds the store, and what it tells of that. */
function holdOptions({ settings, log, fail }: NamedOpening, sight: StoreSight) {
  return {
    isShared: settings["store.instances"] === "many",
    onChange: (state, error) => (state === "held" ? sight.holdBack() : sight.holdLost(error)),
    onTaken: fail,
    onEnded: (ended) =>
      log.warn(
        ended,
        "another central was silent: its open transactions were ended, since others wait for their locks",
      ),
  } satisfies Partial<StoreHoldOptions>;
}

/** Warns where a newer release has brought the store further than this one knows. */
async function tellNewer(
  { health, log }: Pick<StoreOpening, "health" | "log">,
  store: Store,
  where: string,
): Promise<void> {
  const newest = await newerStep(store);
  if (newest === undefined) return health.settle("store_newer");
  const text = `a newer release brought the store ${where} to ${newest}, and this release knows ${storeLevel}: by what the newer one says of it, this release may use it, and does`;
  log.warn({ store: where, newest, known: storeLevel }, text);
  health.raise(
    "store_newer",
    "info",
    text,
    "Nothing while a release is brought to one central after the other, or after going back. What the newer release added is not in force at this central.",
  );
}

/** Opens the store for a command that works while no central runs. The caller has locked the state directory. */
export async function openStoppedStore(
  settings: CentralSettings,
  now: () => Date,
): Promise<Store & AsyncDisposable> {
  const place = postgresPlace(settings);
  if (place === undefined) {
    refuseMovedFile(settings.state_dir);
    const path = join(settings.state_dir, fileName);
    if (!existsSync(path))
      throw new AccelError("NOT_FOUND", `there is no store in ${settings.state_dir}`);
    return openStore(path, now);
  }
  const { holdPostgresStore, openPostgresStore } = await import("./store/engine/postgres-store.ts");
  await using stack = new AsyncDisposableStack();
  stack.use(
    await holdPostgresStore({
      place,
      random: Math.random,
      onChange: () => undefined, // What is under way meets it as well.
      onTaken: () => undefined,
      patienceMs: commandPatienceMs,
    }),
  );
  const store = stack.use(await openPostgresStore({ place, now, random: Math.random }));
  await refuseOtherStore(settings.state_dir, store, placeText(place));
  const owned = stack.move();
  return Object.assign(store, { [Symbol.asyncDispose]: async () => owned.disposeAsync() });
}

/**
 * Asks a PostgreSQL whether it can hold the store, and whether a start with these settings would be refused there; changes nothing. Throws what a start throws. A file that is
 * still to be moved there is no fault: `check` is given before `migrate`. `inspect` looks at what the store says, if there is one, on PostgreSQL or in the file.
 */
export async function tryStore(
  settings: CentralSettings,
  inspect: (store: Store) => Promise<void>,
): Promise<string | undefined> {
  const place = postgresPlace(settings);
  if (place === undefined) {
    const path = join(settings.state_dir, fileName);
    if (!existsSync(path) || readStoreMark(settings.state_dir) !== undefined) return undefined;
    await using store = openReader(path);
    await inspect(store);
    return undefined;
  }
  const { tryEvidence, tryPostgres } = await import("./store/engine/postgres-store.ts");
  const { state_dir: stateDir } = settings;
  const where = placeText(place);
  return tryPostgres(place, async (store) => {
    await tryEvidence(store, join(stateDir, evidenceName), where);
    await refuseOtherStore(stateDir, store, where);
    await tryStoreKey(store, keyFileOf(settings));
    await inspect(store);
  });
}

/** Throws STORE_MOVED where the file in the state directory is not the store any more, or will not be. */
export function refuseMovedFile(stateDir: string): void {
  const mark = readStoreMark(stateDir);
  if (mark === undefined) return;
  const text =
    mark.state === "moved"
      ? `the store of ${stateDir} was moved to ${mark.to} at ${mark.when}; ${fileName} there is what it was before`
      : `the store of ${stateDir} is being moved to ${mark.to}: \`accel-central migrate\` began at ${mark.when}`;
  throw new AccelError("STORE_MOVED", text, {
    hint: "Put `store.url` into central.yaml (`accel-central migrate --from` ends what it began, or takes it back with --abandon). docs/operations/cluster.md has the steps.",
  });
}

function refuseUnmovedFile(stateDir: string): void {
  const mark = readStoreMark(stateDir);
  if (mark?.state === "moved") return;
  if (mark !== undefined)
    throw new AccelError(
      "STORE_MOVED",
      `the store of ${stateDir} is being moved to ${mark.to}, and not all of it is there yet`,
      { hint: "Give `accel-central migrate --from` again: it goes on where it was." },
    );
  if (existsSync(join(stateDir, fileName)))
    throw new AccelError(
      "STORE_MOVED",
      `${stateDir} holds a store of its own, ${fileName}, that was not moved to PostgreSQL`,
      {
        hint: "`accel-central migrate --from` moves it. If it is of no use any more, take central.db away; or take `store.url` out of central.yaml.",
      },
    );
}

/** A state directory holds the request logs, blobs and packages of one store, and its agents know that one by its epoch. */
async function refuseOtherStore(stateDir: string, store: Store, where: string): Promise<void> {
  const mark = readStoreMark(stateDir);
  const epoch = await storeEpoch(store);
  if (mark === undefined || mark.epoch === epoch) return;
  if ((await formerEpochs(store)).includes(mark.epoch)) return;
  throw new AccelError(
    "STORE_MOVED",
    `the store of ${stateDir} was moved to ${mark.to} (epoch ${mark.epoch}), and ${where} is another one (epoch ${epoch})`,
    { hint: "Let `store.url` name the database to which the store was moved." },
  );
}
