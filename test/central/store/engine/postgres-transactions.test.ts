// Units over PostgreSQL from two processes at once: what they read together with what they write is as if they had run one after the other.

import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CustomerStore } from "../../../../src/central/store/engine/customer-store.ts";
import type { Store } from "../../../../src/central/store/engine/database.ts";
import { append } from "../../../../src/central/store/engine/work.ts";
import { chainStart, nextChain } from "../../../../src/core/journal/journal-chain.ts";
import { seedSite, sealer } from "../../../support/agent-side.ts";
import { postgresBin } from "../../../support/postgres-server.ts";
import { startPostgres, type Postgres } from "../../../support/postgres.ts";

const bin = postgresBin();
const now = (): Date => new Date("2030-01-01T00:00:00Z");
const noDomains = { domains: [] };
const repetitions = { count: 0 };

describe.skipIf(bin === undefined)("two processes at one PostgreSQL", () => {
  const opened = new AsyncDisposableStack();
  let postgres: Postgres;
  let stores: readonly Store[] = [];
  beforeAll(async () => {
    postgres = opened.use(await startPostgres(bin ?? ""));
    const first = opened.use(await postgres.store("two", now));
    stores = [first, opened.use(postgres.reader("two", () => void repetitions.count++))];
    await sql`CREATE TABLE on_call (doctor integer PRIMARY KEY, is_on integer NOT NULL)`.execute(
      first,
    );
    await sql`CREATE TABLE counters (id integer PRIMARY KEY, count integer NOT NULL)`.execute(
      first,
    );
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);

  const customers = (): readonly CustomerStore[] =>
    stores.map(
      (store) =>
        new CustomerStore({ store, sealer, now, randomBytes: (count) => Buffer.alloc(count, 1) }),
    );

  async function appendAll(
    ids: readonly number[],
    callers: readonly CustomerStore[],
    units: number,
    orderOf: (caller: number) => readonly number[],
  ): Promise<void> {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    await Promise.all(
      callers.map(async (caller, at) => {
        for (let no = 0; no < units; no++)
          await caller.transact(async (work) => {
            for (const id of orderOf(at)) await append(work, [id], "domains.changed", noDomains);
          });
      }),
    );
    for (const id of ids) {
      const entries = await first
        .selectFrom("journal")
        .selectAll()
        .where("deployment_site_id", "=", id)
        .orderBy("seq")
        .execute();
      expect(entries).toHaveLength(callers.length * units);
      let chain: string = chainStart;
      for (const [at, entry] of entries.entries()) {
        const { seq, kind, at: when, body_digest: bodyDigest } = entry;
        chain = nextChain(chain, { seq, kind, at: when, bodyDigest });
        expect([seq, entry.chain]).toEqual([at + 1, chain]);
      }
    }
  }

  async function sites(count: number, prefix: string): Promise<readonly number[]> {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    const ids: number[] = [];
    for (let no = 0; no < count; no++) ids.push((await seedSite(first, `${prefix}${no}`)).siteId);
    return ids;
  }

  test("200 entries of 4 sites by 8 callers: all are there, each journal is one chain", async () => {
    const ids = await sites(4, "00112233445566a");
    const callers = [...customers(), ...customers(), ...customers(), ...customers()];
    await appendAll(ids, callers, 25, () => ids);
    expect(repetitions.count).toBeGreaterThan(0); // They did meet.
  }, 120_000);

  test("units that wait for each other: PostgreSQL ends one of them, and it is run again", async () => {
    const ids = await sites(2, "00112233445566c");
    await appendAll(ids, customers(), 3, (at) => (at === 0 ? ids : ids.toReversed()));
  }, 120_000);

  /** Each doctor goes home if another one stays. Both look before either goes. */
  async function goHome(isolation: "as units" | "read committed"): Promise<number> {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    await sql`DELETE FROM on_call`.execute(first);
    await sql`INSERT INTO on_call (doctor, is_on) VALUES (1, 1), (2, 1)`.execute(first);
    const looked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await Promise.all(
      stores.map(async (store, at) => {
        const builder = store.transaction();
        const runs =
          isolation === "as units" ? builder : builder.setIsolationLevel("read committed");
        await runs.execute(async (tx) => {
          const { rows } = await sql`SELECT doctor FROM on_call WHERE is_on = 1`.execute(tx);
          looked[at]?.resolve();
          await Promise.all(looked.map(async ({ promise }) => promise));
          if (rows.length > 1)
            await sql`UPDATE on_call SET is_on = 0 WHERE doctor = ${at + 1}`.execute(tx);
        });
      }),
    );
    return (await sql`SELECT doctor FROM on_call WHERE is_on = 1`.execute(first)).rows.length;
  }

  test("of two that each leave if the other stays, one stays", async () => {
    expect(await goHome("as units")).toBe(1);
    // That this is no luck: without SERIALIZABLE both go.
    expect(await goHome("read committed")).toBe(0);
  }, 60_000);

  test("of two that look for a name and take it, one finds it taken", async () => {
    const looked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const outcomes = await Promise.all(
      customers().map(async (one, at) =>
        one.transact(async ({ tx, at: when }) => {
          const found = await tx
            .selectFrom("users")
            .select("id")
            .where("username", "=", "anna")
            .executeTakeFirst();
          looked[at]?.resolve();
          await Promise.all(looked.map(async ({ promise }) => promise));
          if (found !== undefined) return "taken";
          const { id } = await tx
            .insertInto("customers")
            .values({ name: "Anna's", created_by_user_id: null, when_created: when })
            .returning("id")
            .executeTakeFirstOrThrow();
          await sql`
            INSERT INTO users (customer_id, username, email, first_name, last_name, may_publish, may_read_logs, date_joined)
            VALUES (${id}, 'anna', 'a@c.example', '', '', 0, 0, ${when})
          `.execute(tx);
          return "made";
        }),
      ),
    );
    expect(outcomes.toSorted()).toEqual(["made", "taken"]);
  }, 60_000);

  test("single statements that meet are run again: no count is lost", async () => {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    await sql`INSERT INTO counters (id, count) VALUES (1, 0)`.execute(first);
    await Promise.all(
      [...stores, ...stores].map(async (store) => {
        for (let no = 0; no < 20; no++)
          await sql`UPDATE counters SET count = count + 1 WHERE id = 1`.execute(store);
      }),
    );
    const { rows } = await sql<{ count: number }>`SELECT count FROM counters`.execute(first);
    expect(rows).toEqual([{ count: 80 }]);
  }, 60_000);

  test("a constraint that is violated each time is told after three runs, with its name", async () => {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    await sql`INSERT INTO counters (id, count) VALUES (7, 0)`.execute(first);
    let runs = 0;
    const unit = first.transaction().execute(async (tx) => {
      runs++;
      await sql`INSERT INTO counters (id, count) VALUES (7, 0)`.execute(tx);
    });
    await expect(unit).rejects.toThrow(/counters_pkey/);
    expect(runs).toBe(3);
  });

  test("a text with NUL is held as one with U+FFFD, and found by either", async () => {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    await sql`CREATE TABLE texts (text text NOT NULL)`.execute(first);
    await sql`INSERT INTO texts VALUES (${"a\0b"}), (${"c"})`.execute(first);
    for (const text of ["a\0b", "a\uFFFDb"]) {
      const { rows } = await sql`SELECT text FROM texts WHERE text = ${text}`.execute(first);
      expect(rows).toEqual([{ text: "a\uFFFDb" }]);
    }
  });

  test("a unit that swallows an error of PostgreSQL is not told as kept", async () => {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    const unit = first.transaction().execute(async (tx) => {
      await sql`INSERT INTO counters (id, count) VALUES (8, 0)`.execute(tx);
      await sql`SELECT 1 / 0`.execute(tx).catch(() => undefined);
    });
    await expect(unit).rejects.toThrow(/rolled back instead of committed/);
    const { rows } = await sql`SELECT 1 FROM counters WHERE id = 8`.execute(first);
    expect(rows).toEqual([]);
  });

  test("what a run that was taken back appended and named is not told, and marks are asked for their turn once", async () => {
    const [first] = stores;
    if (first === undefined) throw new TypeError("no store");
    const { siteId } = await seedSite(first, "00112233445566b0");
    let asked = 0;
    const told: number[][] = [];
    const store = new CustomerStore({
      store: first,
      sealer,
      now,
      randomBytes: (count) => Buffer.alloc(count, 1),
      marks: {
        isDue: () => ++asked === 1,
        changed: (ids) => void told.push([...ids]),
      },
    });
    let runs = 0;
    const done = await store.run(async (work) => {
      runs++;
      expect(work.marksAreDue()).toBe(true);
      work.concerned.add(`run ${runs}`);
      work.unjournaled.add(runs);
      await append(work, [siteId], "domains.changed", noDomains);
      if (runs === 1)
        await sql`DO $$ BEGIN RAISE EXCEPTION 'met another' USING ERRCODE = '40001'; END $$`.execute(
          work.tx,
        );
      return { keep: true, value: runs };
    });
    expect(done).toEqual({ value: 2, appended: [siteId], concerned: ["run 2"] });
    expect([asked, told]).toEqual([1, [[2]]]);
  });
});
