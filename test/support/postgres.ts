// A PostgreSQL of the test's own: initialized in a temporary directory, reached through a socket there, run as a user without rights, gone with the test.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Kysely, PostgresDialect, PostgresDriver, sql } from "kysely";
import type { DatabaseConnection, PostgresDialectConfig, TransactionSettings } from "kysely";
import pg from "pg";
import { prepareStore, type Store } from "../../src/central/store/engine/database.ts";
import type { StoreTables } from "../../src/central/store/engine/schema.ts";
import { tempDir } from "./temp-dir.ts";
import { until } from "./until.ts";

const installed = "/usr/lib/postgresql";
const template = "accel_template";
const user = "accel";
/** One lock for all that write, of all instances: as with SQLite, writers take turns. */
const writersLock = 7_301;

/** The newest of Debian's packages; undefined where there is none. */
export function postgresBin(): string | undefined {
  if (!existsSync(installed)) return undefined;
  const versions = readdirSync(installed)
    .map(Number)
    .filter((version) => version >= 15);
  const newest = Math.max(...versions);
  return versions.length === 0 ? undefined : join(installed, String(newest), "bin");
}

// Counters of the store stay below 2^53, on which SQLite's answers rely as well.
for (const type of [pg.types.builtins.INT8, pg.types.builtins.NUMERIC])
  pg.types.setTypeParser(type, Number);

export type Postgres = AsyncDisposable & {
  /** How many there are, the template among them. */
  readonly databases: number;
  /** Makes the database where it is not there yet, with the tables of this release. */
  store(name: string, now: () => Date): Promise<Store & AsyncDisposable>;
  /** Of a database that is there: another way in. */
  reader(name: string): Store & AsyncDisposable;
  client(name: string): pg.Client;
};

export async function startPostgres(bin: string): Promise<Postgres> {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const data = join(dir, "data");
  mkdirSync(data, { mode: 0o700 });
  const as = ownerOf("postgres");
  if (as !== undefined) {
    chmodSync(dir, 0o755);
    chownSync(data, as.uid, as.gid);
  }
  const options = ["--auth=trust", `--username=${user}`, "--locale=C", "--encoding=UTF8"];
  execFileSync(join(bin, "initdb"), ["-D", data, ...options, "--no-sync"], {
    ...as,
    stdio: "pipe",
  });
  const quick = ["fsync=off", "full_page_writes=off", "listen_addresses=", "max_connections=200"];
  // Who waits for who waits for him is told as a failure of his test.
  quick.push("idle_in_transaction_session_timeout=60s", "lock_timeout=60s");
  const server = spawn(
    join(bin, "postgres"),
    ["-D", data, "-k", data, ...quick.flatMap((setting) => ["-c", setting])],
    { ...as, stdio: "ignore" },
  );
  stack.defer(async () => {
    if (server.exitCode !== null) return;
    server.kill("SIGINT"); // Fast: whoever is connected is cut off.
    await once(server, "exit");
  });
  const config = (database: string): pg.ClientConfig => ({ host: data, user, database });
  const admin = await until("PostgreSQL answers", async () => {
    const client = new pg.Client(config("postgres"));
    client.on("error", () => undefined);
    await client.connect();
    return client;
  });
  stack.defer(async () => admin.end());
  const known = new Set<string>();
  const open = (name: string) => openStore({ ...config(name), max: 4 });
  const make = async (name: string, from: string): Promise<void> => {
    await admin.query(`CREATE DATABASE ${name} TEMPLATE ${from}`);
    known.add(name);
  };
  const owned = stack.move();
  return {
    get databases() {
      return known.size;
    },
    async store(name, now) {
      if (!known.has(template)) {
        await make(template, "template0");
        await using first = open(template);
        const error = await prepareStore(first, now);
        if (error !== undefined) throw error;
      }
      if (!known.has(name)) {
        await make(name, template);
        // Each store has an epoch of its own.
        await using fresh = open(name);
        await fresh.deleteFrom("store").execute();
      }
      const store = open(name);
      const error = await prepareStore(store, now);
      if (error !== undefined) throw error;
      return store;
    },
    reader: open,
    client: (name) => new pg.Client(config(name)),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

/** Root is refused by PostgreSQL. */
function ownerOf(name: string): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function openStore(config: pg.PoolConfig): Store & AsyncDisposable {
  const pool = new pg.Pool(config);
  pool.on("error", () => undefined); // The server ends before a pool that a test left open.
  const store = new Kysely<StoreTables>({ dialect: new TurnsDialect({ pool }) });
  return Object.assign(store, { [Symbol.asyncDispose]: async () => store.destroy() });
}

class TurnsDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig;

  constructor(config: PostgresDialectConfig) {
    super(config);
    this.#config = config;
  }

  override createDriver(): PostgresDriver {
    return new TurnsDriver(this.#config);
  }
}

class TurnsDriver extends PostgresDriver {
  /** A transaction that says its isolation only reads. */
  override async beginTransaction(
    connection: DatabaseConnection,
    settings: TransactionSettings,
  ): Promise<void> {
    await super.beginTransaction(connection, settings);
    if (settings.isolationLevel !== undefined) return;
    const lock = sql`SELECT pg_advisory_xact_lock(${sql.lit(writersLock)})`;
    await connection.executeQuery(lock.compile(compiler));
  }
}

const compiler = new Kysely<StoreTables>({
  dialect: new PostgresDialect({ pool: async () => Promise.reject(new Error("compiles only")) }),
});
