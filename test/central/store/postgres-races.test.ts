// Each unit that runs under READ COMMITTED, twice at once from two processes over one PostgreSQL: what comes of it is what would come of one after the other.

import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { noteDomains } from "../../../src/central/store/content/domain-reports.ts";
import type { Store } from "../../../src/central/store/engine/database.ts";
import {
  readCommitted,
  readCommittedUnits,
  type ReadCommittedUnit,
} from "../../../src/central/store/engine/read-committed.ts";
import { SharedCommits } from "../../../src/central/store/engine/shared-commits.ts";
import {
  confirmDeliveries,
  saveHello,
  saveReports,
} from "../../../src/central/store/journal/instances.ts";
import { removeNumbers } from "../../../src/central/store/engine/postgres-witness.ts";
import { noteSeen } from "../../../src/central/store/journal/instances-seen.ts";
import { findAnswer, storeAnswer } from "../../../src/central/store/engine/idempotency.ts";
import { clearsOfCustomer, createClear } from "../../../src/central/store/journal/clears.ts";
import { appendJournal } from "../../../src/central/store/journal/journal.ts";
import { ReceiptIntake } from "../../../src/central/store/journal/receipts.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import type { Hello, Report } from "../../../src/wire/channel.ts";
import type { Receipt } from "../../../src/wire/receipt.ts";
import { seedSite, sealer } from "../../support/agent-side.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { postgresBin } from "../../support/postgres-server.ts";
import { startPostgres, type Postgres } from "../../support/postgres.ts";
import { until } from "../../support/until.ts";

const bin = postgresBin();
const now = (): Date => new Date("2030-01-15T12:00:00Z");
const at = now().toISOString();
const instanceId = "instance-1";
const domain = "www.example.test";

/** A whole number of requests since the agent's start, and one batch of unreviewed bots. */
function reportOf(requests: number, hasFailed = false): Report {
  const failed = hasFailed ? 5 : 0;
  return {
    instance_id: instanceId,
    spool: { accepted: 0, delivered: 0, spooled: 0, in_memory: 0, dropped: 0 },
    counted: { boot_id: "b1", seq: 1 },
    domains: [
      {
        domain,
        traffic: { requests, hits: 0, blocked: 0, bytes: 0 },
        backend: {
          requests: failed,
          errors: failed,
          latency_buckets: { "+Inf": 0 },
          reachable: !hasFailed,
        },
        unreviewed_bots: [{ name: "curl", description: null, requests: 7 }],
      },
    ],
    warnings: [],
  };
}

describe.skipIf(bin === undefined)("READ COMMITTED", () => {
  const opened = new AsyncDisposableStack();
  let postgres: Postgres;
  let stores: readonly [Store, Store];
  let sites = 0;
  beforeAll(async () => {
    postgres = opened.use(await startPostgres(bin ?? ""));
    const first = opened.use(await postgres.store("races", now));
    stores = [first, opened.use(postgres.reader("races"))];
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);

  const newSite = async () => seedSite(stores[0], `00112233445566${(0x10 + sites++).toString(16)}`);

  const waitingHere = async (): Promise<number> =>
    (
      await postgres.server.run(
        "races",
        "SELECT 1 FROM pg_stat_activity WHERE datname = 'races' AND wait_event_type = 'Lock'",
      )
    ).length;

  /** Holds the row of the instance until both wait for it, so that neither is done before the other begins. */
  async function atOnce(
    siteId: number,
    actions: readonly [() => Promise<unknown>, () => Promise<unknown>],
  ): Promise<void> {
    await noteSeen(stores[0], [{ deploymentSiteId: siteId, instanceId }], at);
    const holder = postgres.client("races");
    await holder.connect();
    await holder.query("BEGIN");
    await holder.query("SELECT 1 FROM instances WHERE deployment_site_id = $1 FOR UPDATE", [
      siteId,
    ]);
    const running = Promise.all(actions.map(async (action) => action()));
    await until("both wait", async () => (await waitingHere()) === 2);
    await holder.query("COMMIT");
    await running;
    await holder.end();
  }

  const trafficOf = async (domainId: number): Promise<number> =>
    (
      await stores[0]
        .selectFrom("traffic_days")
        .select("requests")
        .where("domain_id", "=", domainId)
        .executeTakeFirstOrThrow()
    ).requests;

  const both = <T>(of: (store: Store) => T): readonly [T, T] => [of(stores[0]), of(stores[1])];

  const hello: Hello = {
    type: "hello",
    agent_version: "1.0.0",
    instance_id: instanceId,
    boot_id: "b1",
    epoch: null,
    applied_seq: 3,
    chain: chainStart,
    edge: null,
  };

  const races: Readonly<Record<ReadCommittedUnit, () => Promise<void>>> = {
    async hellos() {
      const { siteId } = await newSite();
      const [one, other] = stores.map((store) => new SharedCommits(store));
      const said = [
        { ...hello, agent_version: "1.0.0", applied_seq: 3 },
        { ...hello, agent_version: "2.0.0", applied_seq: 4 },
      ];
      await atOnce(siteId, [
        async () => one?.run(async (tx) => saveHello(tx, siteId, said[0] ?? hello, at), "hellos"),
        async () => other?.run(async (tx) => saveHello(tx, siteId, said[1] ?? hello, at), "hellos"),
      ]);
      const row = await stores[0]
        .selectFrom("instances")
        .select(["agent_version", "applied_seq"])
        .where("deployment_site_id", "=", siteId)
        .executeTakeFirstOrThrow();
      // One of them as a whole.
      expect(
        said.map(({ agent_version, applied_seq }) => ({ agent_version, applied_seq })),
      ).toContainEqual(row);
    },

    async reports() {
      const { siteId, domainId } = await newSite();
      // One report that comes by two centrals, since the answer of the first was lost.
      const report = reportOf(100, true);
      const save = (store: Store) => {
        const commits = new SharedCommits(store);
        return async () =>
          commits.run(
            async (tx) => saveReports(tx, [{ deploymentSiteId: siteId, report }], at),
            "reports",
          );
      };
      await atOnce(siteId, both(save));
      expect(await trafficOf(domainId)).toBe(100);
      const bots = await stores[0]
        .selectFrom("unreviewed_bots")
        .select("requests")
        .where("domain_id", "=", domainId)
        .execute();
      expect(bots).toEqual([{ requests: 7 }]);
      const troubles = await stores[0]
        .selectFrom("backend_troubles")
        .select("kind")
        .where("domain_id", "=", domainId)
        .execute();
      expect(troubles).toEqual([{ kind: "unreachable" }]);
    },

    async receipts() {
      const { siteId } = await newSite();
      await stores[0]
        .transaction()
        .execute(async (tx) => appendJournal(tx, [siteId], "domains.changed", { domains: [] }, at));
      const intakes = stores.map(
        (store) =>
          new ReceiptIntake({
            store,
            commits: new SharedCommits(store),
            now,
            backendRules: {},
            // No receipt here ends an import.
            blobs: {} as never,
            judge: {} as never,
          }),
      );
      const told = (correction: number): Receipt => ({
        seq: 1,
        phase: "applied",
        detail: correction === 0 ? {} : { correction },
        took_ms: 1,
      });
      await intakes[0]?.save(siteId, instanceId, [told(0)]);
      await atOnce(siteId, [
        async () => intakes[0]?.save(siteId, instanceId, [told(2)]),
        async () => intakes[1]?.save(siteId, instanceId, [told(1)]),
      ]);
      const rows = await stores[0]
        .selectFrom("receipts")
        .select("detail")
        .where("deployment_site_id", "=", siteId)
        .execute();
      // Whichever comes last: the newest correction stays.
      expect(rows).toEqual([{ detail: JSON.stringify({ correction: 2 }) }]);
    },

    async log_confirmations() {
      const { siteId } = await newSite();
      const delivery = { deploymentSiteId: siteId, instanceId };
      const times = ["2030-01-15T12:00:01.000Z", "2030-01-15T12:00:02.000Z"];
      const confirm = (store: Store, when: string | undefined) => {
        const commits = new SharedCommits(store);
        return async () =>
          commits.run(
            async (tx) => confirmDeliveries(tx, [delivery], when ?? at),
            "log_confirmations",
          );
      };
      await atOnce(siteId, [confirm(stores[0], times[0]), confirm(stores[1], times[1])]);
      const row = await stores[0]
        .selectFrom("instances")
        .select(["last_seen", "logs_confirmed_at"])
        .where("deployment_site_id", "=", siteId)
        .executeTakeFirstOrThrow();
      expect(times).toContain(row.logs_confirmed_at);
      expect(row.last_seen).toBe(row.logs_confirmed_at);
    },

    async clears() {
      const { domainId } = await newSite();
      const { customer_id: customerId } = await stores[0]
        .selectFrom("domains")
        .select("customer_id")
        .where("id", "=", domainId)
        .executeTakeFirstOrThrow();
      // Another clear of the customer has its turn: it is there first.
      const [taken, before] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const held = readCommitted(stores[0], "clears").execute(async (tx) => {
        await clearsOfCustomer(customerId).lock(tx);
        taken.resolve();
        await before.promise;
      });
      await Promise.race([taken.promise, held]);
      // One call comes by two centrals, and another one.
      const call = { scope: "user/1", key: "once", requestDigest: "d" };
      const clear = async (store: Store, isCall: boolean): Promise<unknown> => {
        const customers = new CustomerStore({ store, sealer, now, randomBytes });
        const { value } = await customers.run<unknown>(async (work) => {
          const answered = isCall ? await findAnswer(work, call) : undefined;
          if (answered !== undefined) return { keep: true, value: answered };
          const body = await createClear(work, {
            domainId,
            main: domain,
            host: domain,
            patterns: ["path:a"],
            named: {},
            planned: { host: null, patterns: ["path:a"] },
          });
          if (isCall) await storeAnswer(work, call, 200, body);
          return { keep: true, value: { outcome: "answered", status: 200, body } };
        }, clearsOfCustomer(customerId));
        return value;
      };
      const running = Promise.all([
        clear(stores[0], true),
        clear(stores[1], true),
        clear(stores[1], false),
      ]);
      try {
        await until("all wait", async () => (await waitingHere()) === 3);
      } finally {
        before.resolve(); // It would have every later test wait.
      }
      await held;
      const [one, other] = await running;
      expect(one).toEqual(other);
      const rows = await stores[0]
        .selectFrom("clears")
        .innerJoin("clear_deployments", "clear_id", "clears.id")
        .select(["no", "seq"])
        .where("domain_id", "=", domainId)
        .orderBy("no")
        .execute();
      expect(rows).toEqual([
        { no: 1, seq: 1 },
        { no: 2, seq: 2 },
      ]);
    },

    async commit_marks() {
      const [writer, remover] = stores;
      const put = async (no: number): Promise<void> => {
        await writer
          .transaction()
          .execute(async (tx) =>
            tx.insertInto("commit_marks").values({ run: "r", no, at }).execute(),
          );
      };
      const remove = async (below: number): Promise<void> => {
        await readCommitted(remover, "commit_marks").execute(async (tx) =>
          removeNumbers(tx, { run: "r", below, at }),
        );
      };
      for (let no = 0; no < 100; no++) await Promise.all([put(no), remove(Math.max(1, no - 5))]);
      const rows = await writer.selectFrom("commit_marks").select("no").orderBy("no").execute();
      expect(rows.map(({ no }) => no)).toEqual([-94, 94, 95, 96, 97, 98, 99]);
    },
  };

  test.each(Object.keys(readCommittedUnits) as ReadCommittedUnit[])(
    "%s, two at once",
    async (unit) => {
      expect.hasAssertions();
      await races[unit]();
    },
    60_000,
  );

  test("units on the list run so, and no others", async () => {
    const commits = new SharedCommits(stores[0]);
    const seen: unknown[] = [];
    const look: Parameters<SharedCommits["run"]>[0] = async (tx) => {
      const { rows } = await sql`SELECT current_setting('transaction_isolation') AS level`.execute(
        tx,
      );
      seen.push(...rows);
    };
    await commits.run(look, "reports");
    await commits.run(look);
    expect(seen).toEqual([{ level: "read committed" }, { level: "serializable" }]);
  });

  test("that its own row comes first is what makes a report safe: without it both add it", async () => {
    const { siteId, domainId } = await newSite();
    const given = [{ deploymentSiteId: siteId, report: reportOf(100) }];
    const noted = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await Promise.all(
      stores.map(async (store, no) =>
        readCommitted(store, "reports").execute(async (tx) => {
          // Both look for the report before, and only then write.
          await tx.selectFrom("instances").selectAll().execute();
          noted[no]?.resolve();
          await Promise.all(noted.map(async ({ promise }) => promise));
          await noteDomains(tx, given, at);
        }),
      ),
    );
    expect(await trafficOf(domainId)).toBe(200);
  }, 60_000);

  test("units that wait for each other in two orders are run again", async () => {
    const ids = [(await newSite()).siteId, (await newSite()).siteId];
    const touch = async (store: Store, order: readonly number[]): Promise<void> => {
      for (let round = 0; round < 20; round++)
        await readCommitted(store, "reports").execute(async (tx) => {
          for (const id of order) await noteSeen(tx, [{ deploymentSiteId: id, instanceId }], at);
        });
    };
    await Promise.all([touch(stores[0], ids), touch(stores[1], ids.toReversed())]);
    const rows = await stores[0]
      .selectFrom("instances")
      .select("last_seen")
      .where("deployment_site_id", "in", ids)
      .execute();
    expect(rows).toEqual([{ last_seen: at }, { last_seen: at }]);
  }, 120_000);

  test("an import that two instances end at once ends once: such receipts are SERIALIZABLE", async () => {
    const { siteId, domainId } = await newSite();
    const importId = "11111111-2222-4333-8444-555555555555";
    await stores[0]
      .insertInto("imports")
      .values({
        id: importId,
        domain_id: domainId,
        deployment_site_id: siteId,
        viewset_name: "v1",
        state: "started",
        error: null,
        viewset_id: null,
        files: null,
        bytes: null,
        when_started: at,
        when_ended: null,
      })
      .execute();
    const entry = { import_id: importId, domain };
    await stores[0]
      .transaction()
      .execute(async (tx) => appendJournal(tx, [siteId], "viewset.import", entry, at));
    const units: unknown[] = [];
    const save = (store: Store) => {
      const commits = new SharedCommits(store);
      const run: SharedCommits["run"] = async (action, unit) => {
        units.push(unit);
        return commits.run(action, unit);
      };
      const intake = new ReceiptIntake({
        store,
        commits: { run },
        now,
        backendRules: {},
        blobs: {} as never,
        judge: {} as never,
      });
      const receipt = (reason: string): Receipt => ({
        seq: 1,
        phase: "failed",
        detail: { reason },
        took_ms: 1,
      });
      return async () => intake.save(siteId, instanceId, [receipt("no such directory")]);
    };
    await atOnce(siteId, both(save));
    expect(units).toEqual([undefined, undefined]);
    const rows = await stores[0].selectFrom("imports").select(["state", "error"]).execute();
    expect(rows).toEqual([{ state: "failed", error: "no such directory" }]);
  }, 60_000);

  test("orders that append meanwhile are one chain", async () => {
    const { siteId } = await newSite();
    const save = stores.map((store) => {
      const commits = new SharedCommits(store);
      return async (requests: number): Promise<void> =>
        commits.run(
          async (tx) =>
            saveReports(tx, [{ deploymentSiteId: siteId, report: reportOf(requests) }], at),
          "reports",
        );
    });
    const customers = stores.map(
      (store) =>
        new CustomerStore({ store, sealer, now, randomBytes: (count) => Buffer.alloc(count, 1) }),
    );
    await Promise.all([
      ...customers.map(async (one) => {
        for (let no = 0; no < 20; no++)
          await one.transact(async ({ tx }) =>
            appendJournal(tx, [siteId], "domains.changed", { domains: [] }, at),
          );
      }),
      ...save.map(async (one) => {
        for (let no = 1; no <= 20; no++) await one(no);
      }),
    ]);
    const { rows } = await sql`
      SELECT count(*)::int AS entries, max(seq)::int AS last FROM journal WHERE deployment_site_id = ${siteId}
    `.execute(stores[0]);
    expect(rows).toEqual([{ entries: 40, last: 40 }]);
  }, 120_000);
});
