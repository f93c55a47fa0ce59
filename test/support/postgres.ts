// Databases of a PostgreSQL of the test's own, each a store of this release.

import type pg from "pg";
import { prepareStore, type Store } from "../../src/central/store/engine/database.ts";
import type { PostgresPlace } from "../../src/central/store/engine/postgres-place.ts";
import { serverFault } from "../../src/central/store/engine/postgres-server.ts";
import { connectPostgresStore } from "../../src/central/store/engine/postgres-store.ts";
import { PostgresServer, type ServerOptions } from "./postgres-server.ts";

const template = "accel_template";

export type Postgres = AsyncDisposable & {
  readonly server: PostgresServer;
  /** How many there are, the template among them. */
  readonly databases: number;
  /** Makes the database where it is not there yet, with the tables of this release. */
  store(name: string, now: () => Date): Promise<Store & AsyncDisposable>;
  /** Of a database that is there: another way in. */
  reader(name: string, onRepeat?: () => void): Store & AsyncDisposable;
  client(name: string): pg.Client;
  /** How the database is reached. */
  place(name: string): PostgresPlace;
};

export type PostgresOptions = ServerOptions & {
  /** Called with the store that all others are copies of, when it is of this release. */
  readonly bring?: (store: Store) => Promise<void>;
};

/** Nothing of a test is to outlive a power failure, and a sync of each commit would cost a third of the time. */
export const judgeWithoutSync: typeof serverFault = (facts, where) =>
  serverFault({ ...facts, fsync: "on" }, where);

export async function startPostgres(bin: string, options: PostgresOptions = {}): Promise<Postgres> {
  const server = await PostgresServer.start(bin, options);
  const known = new Set<string>();
  const open = (name: string, onRepeat?: () => void) =>
    connectPostgresStore({
      place: server.place(name),
      random: Math.random,
      judge: judgeWithoutSync,
      ...(onRepeat !== undefined && { onRepeat }),
    });
  const make = async (name: string, from: string): Promise<void> => {
    await server.run("postgres", `CREATE DATABASE ${name} TEMPLATE ${from}`);
    known.add(name);
  };
  return {
    server,
    get databases() {
      return known.size;
    },
    async store(name, now) {
      if (!known.has(template)) {
        await make(template, "template0");
        await using first = open(template);
        const error = await prepareStore(first, now);
        if (error !== undefined) throw error;
        await options.bring?.(first);
      }
      if (!known.has(name)) {
        await make(name, template);
        // Each store has an epoch of its own.
        await using fresh = open(name);
        await fresh.deleteFrom("store").execute();
      }
      const store = open(name);
      const error = await prepareStore(store, now, { newer: "used" });
      if (error !== undefined) throw error;
      return store;
    },
    reader: open,
    place: (name) => server.place(name),
    client: (name) => server.client(name),
    [Symbol.asyncDispose]: async () => server[Symbol.asyncDispose](),
  };
}
