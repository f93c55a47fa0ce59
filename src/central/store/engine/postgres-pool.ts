// Connections to PostgreSQL that end without taking central with them.
//
// Every wait has an end: connecting and waiting for a free connection (`connectMs`), a statement, a lock and a transaction that nobody goes on with (kept by
// the server), and an answer that never comes because the way there is gone (`silentMs`, kept here; sooner where the holding connection meets that, `silence`). A central that stops
// has less time than that: what it waits for then ends with its connections (`cut`).

import { Socket } from "node:net";
import { checkServerIdentity } from "node:tls";
import pg from "pg";
import { messageOf } from "../../../core/faults.ts";
import { placeText, tlsOptions, type PostgresPlace } from "./postgres-place.ts";
import { PostgresSilent, type PostgresSilence } from "./postgres-silence.ts";
import {
  serverFactsOf,
  serverFactsSql,
  serverFault,
  serverVersionOf,
  serverVersionSql,
  standbyFault,
  standbySql,
  versionFault,
  type ServerFacts,
} from "./postgres-server.ts";
import { sessionName } from "./silent-sessions.ts";

export type PostgresLimits = {
  readonly statementMs: number;
  readonly lockMs: number;
  readonly idleInTransactionMs: number;
};

/** A lock is waited for by whoever meets it, so its limit is below that of the statement. */
export const servingLimits: PostgresLimits = {
  statementMs: 60_000,
  lockMs: 20_000,
  idleInTransactionMs: 60_000,
};

/** Migrations, and the copying of a store, take as long as they take. */
export const unhurriedLimits: PostgresLimits = {
  statementMs: 0,
  lockMs: 0,
  idleInTransactionMs: 0,
};

const connectMs = 10_000;
/** How much longer than the server's own limit an answer is waited for. */
const silentBeyondMs = 10_000;
/** The wait for a server that keeps no limit of its own: a migration of a large table. */
const silentUnlimitedMs = 6 * 3_600_000;
const idleMs = 60_000;
/** A firewall between forgets a connection that is silent for longer than some minutes. */
const keepAliveMs = 30_000;

export type PostgresPoolOptions = {
  readonly place: PostgresPlace;
  readonly limits?: PostgresLimits;
  /** Whether its transactions can only read. */
  readonly isReader?: boolean;
  /** The id of the central whose connections these are; absent for a command. */
  readonly central?: string;
  /** Ends all connections when it aborts, whatever is waited for, and lets no other one be made. */
  readonly cut?: AbortSignal | undefined;
  /** Ends those that are there when the server is found silent. */
  readonly silence?: Pick<PostgresSilence, "signal"> | undefined;
  /** Returns why the server cannot hold the store. By default it is what serverFault says. */
  readonly judge?: (facts: ServerFacts, where: string) => Error | undefined;
  /** Returns why a connection must not be used to whose server the judge had no objection. */
  readonly admit?: (client: pg.ClientBase) => Promise<Error | undefined>;
  /** Called for each connection that ended without being asked to; must not throw. */
  readonly onLost?: (error: unknown) => void;
};

/** What a connection is made with. The password is asked for when it is needed, and stands in no object that is logged. */
export function clientConfig({
  place,
  limits = servingLimits,
  isReader = false,
  central,
  cut,
  silence,
}: PostgresPoolOptions) {
  const { host, port, database, user, password } = place;
  const silentMs =
    limits.statementMs === 0 ? silentUnlimitedMs : limits.statementMs + silentBeyondMs;
  return {
    host,
    port,
    database,
    user,
    // Kept out of `.pgpass` and of the environment: undefined would ask them.
    password: async () => password() ?? "",
    ssl: tlsOptions(place, checkServerIdentity),
    application_name: sessionName(central),
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    statement_timeout: limits.statementMs,
    lock_timeout: limits.lockMs,
    idle_in_transaction_session_timeout: limits.idleInTransactionMs,
    options: [
      "-c default_transaction_isolation=serializable",
      `-c default_transaction_read_only=${isReader ? "on" : "off"}`,
      // A plan that is made for any values reads whole tables for the few rows that the values at hand name.
      "-c plan_cache_mode=force_custom_plan",
    ].join(" "),
    stream: () => endedBy(silence?.signal, endedBy(cut, silenced(new Socket(), silentMs), cutText)),
    types: numbersAsNumbers(),
  } satisfies pg.ClientConfig;
}

/** Ends a connection over which nothing came or went for so long. */
function silenced(socket: Socket, silentMs: number): Socket {
  socket.setTimeout(silentMs, () => socket.destroy(new PostgresSilent(silentMs)));
  return socket;
}

/** Begins as the driver says that a connection ended. */
const cutText =
  "Connection terminated: central stops, and waits no longer for what PostgreSQL has not answered";

/** Ends a connection at the signal, with its reason if no text is given. One that is made later fails as soon as whoever makes it listens. */
function endedBy(signal: AbortSignal | undefined, socket: Socket, text?: string): Socket {
  if (signal === undefined) return socket;
  const reason = (): Error => (text === undefined ? (signal.reason as Error) : new Error(text));
  const end = (): void => void socket.destroy(reason());
  if (signal.aborted) {
    setImmediate(end);
    return socket;
  }
  signal.addEventListener("abort", end, { once: true });
  socket.once("close", () => signal.removeEventListener("abort", end));
  return socket;
}

/** Counters of the store stay below 2^53, on which SQLite's answers rely as well. */
function numbersAsNumbers(): pg.TypeOverrides {
  const types = new pg.TypeOverrides();
  for (const type of [pg.types.builtins.INT8, pg.types.builtins.NUMERIC])
    types.setTypeParser(type, Number);
  return types;
}

/**
 * Opens no connection yet. A connection that fails is told by the query that it fails; one that nobody uses, or whose query failed before, is told to `onLost`:
 * without a listener Node would end the process.
 */
export function createPool(options: PostgresPoolOptions): pg.Pool {
  const { place, judge = serverFault, admit, onLost = () => undefined } = options;
  const pool = new pg.Pool({
    ...clientConfig(options),
    max: place.connections,
    idleTimeoutMillis: idleMs,
    verify: (client, done) => {
      const verify = async (): Promise<void> =>
        done(await checkServer(client, { where: placeText(place), judge, admit }));
      void verify();
    },
  });
  pool.on("error", () => undefined); // Of a connection that nobody uses, which the line below tells already.
  pool.on("connect", (client) => client.on("error", onLost));
  return pool;
}

type Checks = Required<Pick<PostgresPoolOptions, "judge">> & {
  readonly where: string;
  readonly admit: PostgresPoolOptions["admit"];
};

/** Returns why the server cannot hold the store, or cannot say so. */
async function checkServer(
  client: pg.ClientBase,
  { where, judge, admit }: Checks,
): Promise<Error | undefined> {
  try {
    return (await judged(client, where, judge)) ?? (await admit?.(client));
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}

async function judged(
  client: Pick<pg.ClientBase, "query">,
  where: string,
  judge: NonNullable<PostgresPoolOptions["judge"]>,
): Promise<Error | undefined> {
  const early = await earlyFault(client, where);
  if (early !== undefined) return early;
  const { rows } = await client.query<Record<string, unknown>>(serverFactsSql);
  return judge(serverFactsOf(rows[0] ?? {}), where);
}

/** Returns why nothing else may be asked of the server: it is too old, or a standby. */
export async function earlyFault(
  client: Pick<pg.ClientBase, "query">,
  where: string,
): Promise<Error | undefined> {
  const { rows: versions } = await client.query<Record<string, unknown>>(serverVersionSql);
  const old = versionFault(serverVersionOf(versions[0]), where);
  if (old !== undefined) return old;
  const { rows } = await client.query<Record<string, unknown>>(standbySql);
  return rows[0]?.["in_hot_standby"] === "on" ? standbyFault(where) : undefined;
}
