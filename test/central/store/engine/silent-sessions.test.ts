// A central that is silent at PostgreSQL: another one ends its open transactions, and nobody else's.

import { join } from "node:path";
import { sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StoreHold } from "../../../../src/central/store/engine/postgres-hold.ts";
import { connectPostgresStore } from "../../../../src/central/store/engine/postgres-store.ts";
import {
  sessionName,
  SilentSessions,
  type EndedSessions,
} from "../../../../src/central/store/engine/silent-sessions.ts";
import { judgeWithoutSync } from "../../../support/postgres.ts";
import { PostgresServer, postgresBin } from "../../../support/postgres-server.ts";
import { SocketRelay } from "../../../support/socket-relay.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";

const bin = postgresBin();
const [cutId, otherId] = ["00000000000000aa", "00000000000000bb"];
const unreachable = expect.objectContaining({ code: "STORE_UNREACHABLE" });

describe.skipIf(bin === undefined)("silent centrals", { timeout: 120_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    // Who asks for it waits for a standby that never comes.
    server = await PostgresServer.start(bin ?? "", {
      settings: ["synchronous_standby_names=nobody", "synchronous_commit=local"],
    });
    await server.run(
      "postgres",
      "CREATE TABLE sites (id integer PRIMARY KEY, head integer NOT NULL)",
      "INSERT INTO sites SELECT id, 0 FROM generate_series(1, 9) AS ids (id)",
      "CREATE ROLE another LOGIN",
      "GRANT ALL ON sites TO another",
    );
  }, 120_000);
  afterAll(async () => server[Symbol.asyncDispose](), 60_000);

  const session = async (stack: AsyncDisposableStack, name: string, user = "accel") => {
    const { host, port } = server.place("postgres");
    const client = new pg.Client({ host, port, user, database: "postgres" });
    client.on("error", () => undefined);
    await client.connect();
    stack.defer(async () => client.end().catch(() => undefined));
    await client.query("SELECT set_config('application_name', $1, false)", [name]);
    return client;
  };
  /** A session in a transaction that has locked a site. */
  const locking = async (stack: AsyncDisposableStack, name: string, id: number) => {
    const client = await session(stack, name);
    await client.query("BEGIN");
    await client.query("UPDATE sites SET head = head + 1 WHERE id = $1", [id]);
    return client;
  };
  const isThere = async (client: pg.Client): Promise<boolean> =>
    client.query("SELECT 1").then(
      () => true,
      () => false,
    );

  test("the others wait a few seconds for what one has locked whose way is silent; it comes back to lost connections, and nothing is half done", async () => {
    await using stack = new AsyncDisposableStack();
    const { host, port } = server.place("postgres");
    const relay = stack.use(
      await SocketRelay.open(join(stack.use(tempDir()).path, "way"), host, `.s.PGSQL.${port}`),
    );
    const ended: EndedSessions[] = [];
    const start = async (central: string, at: string) => {
      const place = server.place("postgres", { host: at });
      const opening = { place, central, random: () => 0.5 };
      const states: string[] = [];
      const onChange = (state: string) => void states.push(state);
      const onEnded = (one: EndedSessions) => void ended.push(one);
      const hold = { ...opening, isShared: true, onChange, onTaken: () => undefined, onEnded };
      stack.use(await StoreHold.take(hold));
      const store = stack.use(connectPostgresStore({ ...opening, judge: judgeWithoutSync }));
      return { store, states };
    };
    const cut = await start(cutId, relay.directory);
    const other = await start(otherId, host);
    stack.defer(() => relay.speak());
    // Two units of the cut one stand in line for one lock, of which the second would have it when the first has ended.
    const isLocked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const first = cut.store.transaction().execute(async (tx) => {
      await sql`UPDATE sites SET head = 100 WHERE id = 1`.execute(tx);
      isLocked.resolve();
      await goOn.promise;
      await sql`UPDATE sites SET head = -1 WHERE id = 1`.execute(tx);
    });
    const firstTold = expect(first).rejects.toEqual(unreachable);
    await isLocked.promise;
    const second = await locking(stack, sessionName(cutId), 2);
    // It may get the lock a moment before its own end.
    const waits = second.query("UPDATE sites SET head = 5 WHERE id = 1").catch(() => undefined);
    await until("the second waits", async () => {
      const waiting = await server.run(
        "postgres",
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      return waiting.length === 1;
    });
    const silent = relay.silenceAt("= -1");
    goOn.resolve();
    await silent;
    const beganMs = performance.now();
    await other.store.transaction().execute(async (tx) => {
      await sql`UPDATE sites SET head = 7 WHERE id = 1`.execute(tx);
    });
    // On a host that does nothing else 8 s at most.
    expect(performance.now() - beganMs).toBeLessThan(15_000);
    // The lock is free before the answer comes that says what was ended.
    await until("it is told", () => ended.length > 0);
    expect(ended).toEqual([{ central: cutId, address: null, transactions: 2 }]);
    await waits;
    expect(await isThere(second)).toBe(false);
    relay.speak();
    await firstTold;
    await sql`UPDATE sites SET head = head + 1 WHERE id = 1`.execute(cut.store);
    expect(
      await server.run("postgres", "SELECT head FROM sites WHERE id <= 2 ORDER BY id"),
    ).toEqual([{ head: 8 }, { head: 0 }]);
    // The connections that are in no transaction are left to it.
    expect([cut.states, other.states]).toEqual([[], []]);
  });

  test("a transaction that waits for its central ends at no look while that asks something else, by whichever session", async () => {
    await using stack = new AsyncDisposableStack();
    const looking = await session(stack, sessionName(otherId, "hold"));
    const open = await locking(stack, sessionName(cutId), 3);
    const beating = await session(stack, sessionName(cutId, "bus"));
    const ended: EndedSessions[] = [];
    const silent = new SilentSessions(otherId, (one) => void ended.push(one));
    for (let look = 0; look < 6; look++) {
      await silent.look(looking);
      await beating.query("SELECT 1");
    }
    // Three more, at which nothing has moved.
    for (let look = 0; look < 3; look++) await silent.look(looking);
    expect([ended, await isThere(open)]).toEqual([[], true]);
    for (let look = 0; look < 4; look++) await silent.look(looking);
    expect(ended).toEqual([{ central: cutId, address: null, transactions: 1 }]);
    expect([await isThere(open), await isThere(beating)]).toEqual([false, true]);
  });

  test("what is silent and no central of several with this one's role is left: a command, this one itself, another role", async () => {
    await using stack = new AsyncDisposableStack();
    const looking = await session(stack, sessionName(otherId, "hold"));
    const command = await locking(stack, sessionName(undefined), 4);
    const own = await locking(stack, sessionName(otherId), 5);
    const foreign = await session(stack, sessionName("00000000000000cc"), "another");
    await foreign.query("BEGIN");
    await foreign.query("UPDATE sites SET head = 1 WHERE id = 6");
    const ended: EndedSessions[] = [];
    const silent = new SilentSessions(otherId, (one) => void ended.push(one));
    for (let look = 0; look < 6; look++) await silent.look(looking);
    expect(ended).toEqual([]);
    for (const client of [command, own, foreign]) expect(await isThere(client)).toBe(true);
  });

  test("a COMMIT that waits for a standby is in force, and is left", async () => {
    await using stack = new AsyncDisposableStack();
    const looking = await session(stack, sessionName(otherId, "hold"));
    const committing = await locking(stack, sessionName(cutId), 7);
    await committing.query("SET LOCAL synchronous_commit = on");
    const committed = committing.query("COMMIT");
    const ended: EndedSessions[] = [];
    const silent = new SilentSessions(otherId, (one) => void ended.push(one));
    await until("it waits for the standby", async () => {
      const waiting = await server.run(
        "postgres",
        "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      );
      return waiting.length === 1;
    });
    for (let look = 0; look < 6; look++) await silent.look(looking);
    await server.run(
      "postgres",
      "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
    );
    await committed;
    expect([ended, await isThere(committing)]).toEqual([[], true]);
  });
});
