// Connections that PostgreSQL, the network or an operator ends: whoever uses one is told, nobody dies, and the next one is made.

import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StoreHold } from "../../../../src/central/store/engine/postgres-hold.ts";
import { PostgresSilence } from "../../../../src/central/store/engine/postgres-silence.ts";
import {
  connectPostgresStore,
  tryPostgres,
} from "../../../../src/central/store/engine/postgres-store.ts";
import type { Store } from "../../../../src/central/store/engine/database.ts";
import type { PostgresPlace } from "../../../../src/central/store/engine/postgres-place.ts";
import { PostgresServer, postgresBin } from "../../../support/postgres-server.ts";
import { judgeWithoutSync } from "../../../support/postgres.ts";
import { SocketRelay } from "../../../support/socket-relay.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { makeCertificate } from "../../../support/x509.ts";
import { until } from "../../../support/until.ts";

const bin = postgresBin();
const random = (): number => 0.5;
const unreachable = expect.objectContaining({ code: "STORE_UNREACHABLE" });
const authority = makeCertificate({ subject: "An authority", isAuthority: true });
const own = makeCertificate({ subject: "db", names: ["127.0.0.1"], issuer: authority });

const connect = (
  place: PostgresPlace,
  lost: unknown[] = [],
  limits?: { statementMs: number; lockMs: number; idleInTransactionMs: number },
): Store & AsyncDisposable =>
  connectPostgresStore({
    place,
    random,
    judge: judgeWithoutSync,
    onLost: (error) => void lost.push(error),
    ...(limits !== undefined && { limits }),
  });

describe.skipIf(bin === undefined)("connections", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start(bin ?? "", {
      settings: ["ssl=on"],
      files: { "server.crt": own.pem, "server.key": own.key },
    });
    await server.run("postgres", "CREATE TABLE orders (id integer PRIMARY KEY)");
  }, 120_000);
  afterAll(async () => server[Symbol.asyncDispose](), 60_000);
  const endAll = async (): Promise<void> =>
    void (await server.run(
      "postgres",
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'accel-central'",
    ));
  const orders = async (): Promise<unknown> =>
    server.run("postgres", "SELECT id FROM orders ORDER BY id");

  test("one that nobody uses ends: nothing is told to anybody but the log, and the next query has another", async () => {
    const lost: unknown[] = [];
    await using store = connect(server.place("postgres"), lost);
    await sql`SELECT 1`.execute(store);
    await endAll();
    await until("the loss is told", () => lost.length > 0);
    expect(lost).toHaveLength(1);
    expect((await sql`SELECT 2 AS two`.execute(store)).rows).toEqual([{ two: 2 }]);
  });

  test("of a central that stops: all end at the cut, whatever they wait for of a server that is silent, and no other one is made", async () => {
    await using stack = new AsyncDisposableStack();
    const place = server.place("postgres");
    const { path } = stack.use(tempDir());
    const relay = stack.use(
      await SocketRelay.open(join(path, "way"), place.host, `.s.PGSQL.${place.port}`),
    );
    const end = new AbortController();
    const ways = { place: { ...place, host: relay.directory }, random, cut: end.signal };
    const changes: string[] = [];
    const hold = await StoreHold.take({
      ...ways,
      onChange: (state) => changes.push(state),
      onTaken: () => undefined,
    });
    const store = connectPostgresStore({ ...ways, judge: judgeWithoutSync });
    const silent = relay.silenceAt("INSERT INTO orders");
    const insert = sql`INSERT INTO orders VALUES (9)`;
    const waiting = [
      store.transaction().execute(async (tx) => insert.execute(tx)),
      insert.execute(store),
    ];
    const failed = Promise.all(
      waiting.map(async (one) => expect(one).rejects.toEqual(unreachable)),
    );
    await silent;
    end.abort();
    await failed;
    await expect(sql`SELECT 1`.execute(store)).rejects.toEqual(unreachable);
    await until("the hold has lost its connection", () => changes.includes("lost"));
    await hold[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    expect(changes).not.toContain("held");
  }, 40_000);

  test("a server goes silent: what waits for it ends when the holding connection finds that out, and others are made when it speaks", async () => {
    await using stack = new AsyncDisposableStack();
    const place = server.place("postgres");
    const { path } = stack.use(tempDir());
    const relay = stack.use(
      await SocketRelay.open(join(path, "way"), place.host, `.s.PGSQL.${place.port}`),
    );
    const ways = {
      place: { ...place, host: relay.directory },
      random,
      silence: new PostgresSilence(),
    };
    const changes: string[] = [];
    const hold = await StoreHold.take({
      ...ways,
      onChange: (state) => changes.push(state),
      onTaken: () => undefined,
    });
    stack.defer(async () => hold[Symbol.asyncDispose]());
    const store = stack.use(connectPostgresStore({ ...ways, judge: judgeWithoutSync }));
    const silent = relay.silenceAt("INSERT INTO silent_orders");
    const failed = expect(
      sql`INSERT INTO silent_orders VALUES (9)`.execute(store),
    ).rejects.toMatchObject({
      code: "STORE_UNREACHABLE",
      message: expect.stringContaining("PostgreSQL did not answer for 15 s") as string,
    });
    await silent;
    await failed;
    await until("the hold is known as lost", () => changes.includes("lost"));
    relay.speak();
    await until("it is held again", () => changes.includes("held"), 40_000);
    expect((await sql`SELECT 1 AS one`.execute(store)).rows).toEqual([{ one: 1 }]);
  }, 90_000);

  test("one that ends within a transaction: the unit fails, nothing of it is there, and it is not run again", async () => {
    await using store = connect(server.place("postgres"));
    let runs = 0;
    const unit = store.transaction().execute(async (tx) => {
      runs++;
      await sql`INSERT INTO orders VALUES (1)`.execute(tx);
      await endAll();
      await sql`INSERT INTO orders VALUES (2)`.execute(tx);
    });
    await expect(unit).rejects.toEqual(unreachable);
    expect([runs, await orders()]).toEqual([1, []]);
    await sql`INSERT INTO orders VALUES (3)`.execute(store);
    expect(await orders()).toEqual([{ id: 3 }]);
  });

  test("one that ends between two statements, while its unit waits for something else, fails that unit alone", async () => {
    await using store = connect(server.place("postgres"));
    const unit = store.transaction().execute(async (tx) => {
      await sql`SELECT 1`.execute(tx);
      await endAll();
      await until("the server has ended it", async () => {
        const rows = await server.run(
          "postgres",
          "SELECT 1 FROM pg_stat_activity WHERE application_name = 'accel-central'",
        );
        return rows.length === 0;
      });
      return "nothing was asked since";
    });
    await expect(unit).rejects.toEqual(unreachable);
  });

  test.each(["fast", "immediate", "kill"] as const)(
    "the server restarts (%s): told meanwhile, and there again by itself",
    async (mode) => {
      await using store = connect(server.place("postgres"));
      await sql`SELECT 1`.execute(store);
      const busy = sql`SELECT pg_sleep(60)`.execute(store);
      const failed = expect(busy).rejects.toEqual(unreachable);
      await until("it sleeps", async () => {
        const rows = await server.run(
          "postgres",
          "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        );
        return rows.length > 0;
      });
      await server.end(mode);
      await failed;
      await expect(sql`SELECT 1`.execute(store)).rejects.toEqual(unreachable);
      await server.begin();
      expect((await sql`SELECT 3 AS three`.execute(store)).rows).toEqual([{ three: 3 }]);
    },
    60_000,
  );

  test("limits of time are kept by the server, and told as an overload, or as a lock of another session", async () => {
    const limits = { statementMs: 200, lockMs: 100, idleInTransactionMs: 60_000 };
    await using store = connect(server.place("postgres"), [], limits);
    const busy = expect.objectContaining({ code: "BUSY" });
    await expect(sql`SELECT pg_sleep(60)`.execute(store)).rejects.toEqual(busy);
    const waiting = store.transaction().execute(async (tx) => {
      await sql`LOCK TABLE orders`.execute(tx);
      await expect(sql`INSERT INTO orders VALUES (9)`.execute(store)).rejects.toMatchObject({
        code: "BUSY",
        message: expect.stringMatching(/^another session of the store .* holds/),
      });
    });
    await waiting;
  });

  test("sessions are as the store relies on", async () => {
    await using store = connect(server.place("postgres"));
    const { rows } = await sql`
      SELECT current_setting('default_transaction_isolation') AS isolation, current_setting('plan_cache_mode') AS plans,
        current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
        current_setting('idle_in_transaction_session_timeout') AS idle, 2::bigint AS big, 1.5::numeric AS decimal
    `.execute(store);
    expect(rows).toEqual([
      {
        isolation: "serializable",
        plans: "force_custom_plan",
        statement: "1min",
        lock: "20s",
        idle: "1min",
        big: 2,
        decimal: 1.5,
      },
    ]);
  });

  test("TLS is of the authority and of the host that is named, or there is no connection", async () => {
    const host = "127.0.0.1";
    const over = (ca: string | undefined, name: string) =>
      connect(server.place("postgres", { host: name, tls: { ca } }));
    await using good = over(authority.pem, host);
    const { rows } = await sql`
      SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()
    `.execute(good);
    expect(rows).toEqual([{ ssl: true }]);
    const other = makeCertificate({ subject: "Another authority", isAuthority: true });
    await using stranger = over(other.pem, host);
    await expect(sql`SELECT 1`.execute(stranger)).rejects.toThrow(/certificate|signature/);
    await using publicOnly = over(undefined, host);
    await expect(sql`SELECT 1`.execute(publicOnly)).rejects.toThrow(/certificate/);
    await using otherName = over(authority.pem, "localhost");
    await expect(sql`SELECT 1`.execute(otherName)).rejects.toThrow(/localhost/);
  });

  test("a server without TLS is refused where TLS is asked for", async () => {
    await using plain = await PostgresServer.start(bin ?? "");
    await using store = connect(
      plain.place("postgres", { host: "127.0.0.1", tls: { ca: authority.pem } }),
    );
    await expect(sql`SELECT 1`.execute(store)).rejects.toThrow(/SSL/);
  }, 60_000);

  test("a server that commits without waiting for its disk is refused by name, also where only the role is set so", async () => {
    await server.run(
      "postgres",
      "CREATE ROLE hasty LOGIN",
      "ALTER ROLE hasty SET synchronous_commit = off",
    );
    await using store = connect(server.place("postgres", { user: "hasty" }));
    await expect(sql`SELECT 1`.execute(store)).rejects.toMatchObject({
      code: "STORE_UNSUITED",
      message: expect.stringMatching(/hasty@.* synchronous_commit = off/),
    });
  });

  test("a standby is one that may be promoted, for whoever serves, tries or holds the store", async () => {
    await using primary = await PostgresServer.start(bin ?? "");
    await using standby = await primary.standby("hot");
    const place = standby.place("postgres");
    const told = { code: "STORE_UNREACHABLE", message: expect.stringMatching(/is a standby/) };
    await using store = connect(place);
    await expect(sql`SELECT 1`.execute(store)).rejects.toMatchObject(told);
    await expect(tryPostgres(place)).rejects.toMatchObject(told);
    const hold = { random, onChange: () => undefined, onTaken: () => undefined };
    await expect(StoreHold.take({ place, ...hold })).rejects.toMatchObject(told);
    await standby.promote();
    await until("it takes writes", async () =>
      sql`CREATE TABLE promoted (id integer)`.execute(store).then(
        () => true,
        () => false,
      ),
    );
    await using _ = await StoreHold.take({ place, ...hold });
  }, 60_000);

  test("a database that sorts in another way than SQLite is refused", async () => {
    await server.run(
      "postgres",
      "CREATE DATABASE sorted TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de'",
    );
    await using store = connect(server.place("sorted"));
    await expect(sql`SELECT 1`.execute(store)).rejects.toMatchObject({ code: "STORE_UNSUITED" });
  });
});

test("nobody there: told at once, with the place and without the password", async () => {
  const listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  listener.close();
  await once(listener, "close");
  const place = { host: "127.0.0.1", port, database: "central", user: "accel" };
  await using store = connect({
    ...place,
    password: () => "not to be seen",
    tls: false,
    connections: 2,
  });
  const failed = await sql`SELECT 1`.execute(store).catch((error: unknown) => error);
  expect(failed).toEqual(unreachable);
  expect(String(failed)).toContain(`postgres://accel@127.0.0.1:${port}/central`);
  expect(`${String(failed)} ${JSON.stringify(failed)}`).not.toContain("not to be seen");
});
