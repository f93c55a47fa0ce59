// Opening a store on PostgreSQL: who migrates when several start at once, what is refused, and that one central holds it.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { storeEpoch } from "../../../../src/central/store/engine/database.ts";
import { migrations } from "../../../../src/central/store/engine/migrations.ts";
import { StoreHold } from "../../../../src/central/store/engine/postgres-hold.ts";
import {
  openPostgresReader,
  openPostgresStore,
  tryPostgres,
} from "../../../../src/central/store/engine/postgres-store.ts";
import type { AccelError } from "../../../../src/core/faults.ts";
import { PostgresServer, postgresBin } from "../../../support/postgres-server.ts";
import { judgeWithoutSync } from "../../../support/postgres.ts";
import { until } from "../../../support/until.ts";

const bin = postgresBin();
const now = (): Date => new Date("2030-01-01T00:00:00Z");
const random = (): number => 0.5;

describe.skipIf(bin === undefined)("a store on PostgreSQL", () => {
  let server: PostgresServer;
  let count = 0;
  beforeAll(async () => void (server = await PostgresServer.start(bin ?? "")), 120_000);
  afterAll(async () => server[Symbol.asyncDispose](), 60_000);
  const database = async (): Promise<string> => {
    const name = `s${++count}`;
    await server.run("postgres", `CREATE DATABASE ${name} TEMPLATE template0`);
    return name;
  };
  const open = (name: string) =>
    openPostgresStore({ place: server.place(name), now, random, judge: judgeWithoutSync });

  test("of four that start at once on an empty database one migrates; all have the same tables and epoch", async () => {
    const name = await database();
    await using stack = new AsyncDisposableStack();
    const stores = await Promise.all(
      Array.from({ length: 4 }, async () => stack.use(await open(name))),
    );
    const epochs = await Promise.all(stores.map(async (store) => storeEpoch(store)));
    expect(new Set(epochs).size).toBe(1);
    const done = await server.run(name, "SELECT name FROM kysely_migration ORDER BY name");
    expect(done).toEqual(Object.keys(migrations).map((one) => ({ name: one })));
  }, 120_000);

  test("a store of a newer release is refused with words, and stays as it is", async () => {
    const name = await database();
    await (await open(name))[Symbol.asyncDispose]();
    await server.run(
      name,
      "INSERT INTO kysely_migration VALUES ('9999-of-tomorrow', '2031-01-01T00:00:00Z')",
    );
    await expect(open(name)).rejects.toMatchObject({
      code: "DATABASE_NEWER",
      message: expect.stringMatching(
        new RegExp(`${name} is of a newer release: its schema is at 9999-of-tomorrow`),
      ),
    });
    expect(await server.run(name, "SELECT count(*)::int AS rows FROM store")).toEqual([
      { rows: 1 },
    ]);
  }, 60_000);

  test("a step that waits for a long read lets others pass, and is done when that ends", async () => {
    const name = await database();
    await (await open(name))[Symbol.asyncDispose]();
    // As the release before left it.
    await server.run(
      name,
      "DROP TABLE store_steps",
      "ALTER TABLE centrals DROP COLUMN level, DROP COLUMN settings",
      "DELETE FROM kysely_migration WHERE name >= '0038'",
    );
    const dump = server.client(name);
    await dump.connect();
    await dump.query("BEGIN");
    await dump.query("SELECT FROM centrals");
    const opening = open(name);
    const waits = async (): Promise<boolean> => {
      const waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'centrals'::regclass";
      return (await server.run(name, waiting)).length > 0;
    };
    await until("the step waits", waits);
    await server.run(name, "SELECT FROM centrals"); // It would wait for as long as the dump reads.
    await until("it waits again", waits);
    await dump.query("COMMIT");
    await dump.end();
    await using store = await opening;
    expect(await store.selectFrom("store_steps").selectAll().execute()).not.toEqual([]);
  }, 60_000);

  test("a role that may make no tables is told so", async () => {
    const name = await database();
    await server.run("postgres", "CREATE ROLE reader LOGIN");
    const place = server.place(name, { user: "reader" });
    const opening = openPostgresStore({ place, now, random, judge: judgeWithoutSync });
    await expect(opening).rejects.toMatchObject({
      code: "STORE_UNSUITED",
      message: expect.stringMatching(/reader@.*permission denied for schema public/),
    });
  }, 60_000);

  test("a database that is not there, and a server that commits without its disk, are told before anything is written", async () => {
    await expect(tryPostgres(server.place("nowhere"))).rejects.toMatchObject({
      code: "STORE_UNSUITED",
      message: expect.stringMatching(/"nowhere" does not exist/),
    });
    await expect(tryPostgres(server.place(await database()))).rejects.toMatchObject({
      code: "STORE_UNSUITED",
      message: expect.stringMatching(/fsync = off/),
    });
  });

  test("the second way in reads one moment, and writes nothing", async () => {
    const name = await database();
    await using store = await open(name);
    await using reader = openPostgresReader({
      place: server.place(name),
      random,
      judge: judgeWithoutSync,
    });
    const seen = reader
      .transaction()
      .setIsolationLevel("repeatable read")
      .execute(async (tx) => {
        const before = await storeEpoch(tx);
        await store.updateTable("store").set({ epoch: "another" }).execute();
        return [before, await storeEpoch(tx)];
      });
    const [before, after] = await seen;
    expect(before).toBe(after);
    expect(await storeEpoch(reader)).toBe("another");
    await expect(
      reader.updateTable("store").set({ epoch: "third" }).execute(),
    ).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  }, 60_000);

  test("one central holds a store: a second one is refused and told of the first; a cut connection is made anew", async () => {
    const name = await database();
    const place = server.place(name);
    const states: string[] = [];
    const options = {
      place,
      random: () => 0,
      onChange: (state: string) => void states.push(state),
      onTaken: () => states.push("taken"),
      patienceMs: 0,
    };
    await using stack = new AsyncDisposableStack();
    const first = stack.use(await StoreHold.take(options));
    const refused = StoreHold.take(options);
    await expect(refused).rejects.toMatchObject({
      code: "STORE_TAKEN",
      message: expect.stringMatching(
        /another central uses the store .*: on the server itself since 20/,
      ),
    });
    await server.run(
      name,
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'",
    );
    await until("it is held again", () => states.includes("held"));
    expect(states).toEqual(["lost", "held"]);
    await expect(StoreHold.take(options)).rejects.toMatchObject({ code: "STORE_TAKEN" });
    await first[Symbol.asyncDispose]();
    // Whoever stopped leaves it to the next one.
    stack.use(await StoreHold.take(options));
  }, 60_000);

  test("centrals that are several hold a store together, and keep out who would be alone", async () => {
    const place = server.place(await database());
    const options = {
      place,
      random: () => 0,
      onChange: () => undefined,
      onTaken: () => undefined,
      patienceMs: 0,
    };
    const shared = { ...options, isShared: true };
    await using stack = new AsyncDisposableStack();
    const both = [await StoreHold.take(shared), await StoreHold.take(shared)];
    for (const one of both) stack.use(one);
    const taken = { code: "STORE_TAKEN" };
    await expect(StoreHold.take(options)).rejects.toMatchObject(taken);
    await both[0]?.[Symbol.asyncDispose]();
    await expect(StoreHold.take(options)).rejects.toMatchObject(taken);
    await both[1]?.[Symbol.asyncDispose]();
    stack.use(await StoreHold.take(options));
    await expect(StoreHold.take(shared)).rejects.toMatchObject(taken);
  }, 60_000);

  test("a central whose connection ended, and whose store another one took meanwhile, must stop", async () => {
    const name = await database();
    const place = server.place(name);
    const taken = Promise.withResolvers<AccelError>();
    const options = {
      place,
      random: () => 0.999,
      onChange: () => undefined,
      onTaken: taken.resolve,
      patienceMs: 30_000,
    };
    await using stack = new AsyncDisposableStack();
    stack.use(await StoreHold.take(options));
    // Waits in line on the server, so that it has the lock as soon as the first one's connection ends.
    const other = server.client(name);
    await other.connect();
    stack.defer(async () => other.end());
    const waiting = other.query("SELECT pg_advisory_lock(7301, 1)");
    await server.run(
      name,
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted",
    );
    await waiting;
    expect((await taken.promise).code).toBe("STORE_TAKEN");
  }, 60_000);
});
