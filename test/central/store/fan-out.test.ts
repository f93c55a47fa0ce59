// An order to all sites of a domain, thousands of them, in one transaction: each journal gets one entry behind its last, whoever orders something else meanwhile.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fillWithFleet } from "../../../bench/support/fleet-seed.ts";
import { readClear } from "../../../src/central/api/clear-proof.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { openStore, type Store } from "../../../src/central/store/engine/database.ts";
import { append } from "../../../src/central/store/engine/work.ts";
import { clearsOfDomain, createClear } from "../../../src/central/store/journal/clears.ts";
import { announcePolicy } from "../../../src/central/store/journal/links.ts";
import { bodyDigest, chainStart, nextChain } from "../../../src/core/journal/journal-chain.ts";
import { sealer } from "../../support/agent-side.ts";
import { postgresBin } from "../../support/postgres-server.ts";
import { startPostgres, type Postgres } from "../../support/postgres.ts";
import { tempDir } from "../../support/temp-dir.ts";

const bin = postgresBin();
const now = (): Date => new Date("2030-01-15T12:00:00Z");
const main = "fleet.example.com";
const sites = 6_500; // More than one part on PostgreSQL, and no round number.

const customersOf = (store: Store): CustomerStore =>
  new CustomerStore({ store, sealer, now, randomBytes });

async function domainIdOf(store: Store): Promise<number> {
  const { id } = await store
    .selectFrom("domains")
    .select("id")
    .where("name", "=", main)
    .executeTakeFirstOrThrow();
  return id;
}

async function orderClear(customers: CustomerStore, domainId: number): Promise<string> {
  const planned = { host: null, patterns: ["path:a"] };
  const clear = { domainId, main, host: main, patterns: ["path:a"], named: {}, planned };
  const { value } = await customers.run(
    async (work) => ({ keep: true, value: await createClear(work, clear) }),
    clearsOfDomain(domainId),
  );
  return value;
}

/** Each journal counts from 1 without a gap, its chain holds, and its head is its end. Returns the entries of each kind, and the sites of each length. */
async function journalsOf(store: Store) {
  const entries = await store
    .selectFrom("journal")
    .innerJoin("journal_bodies", "digest", "body_digest")
    .select(["deployment_site_id as id", "seq", "kind", "at", "chain", "body"])
    .orderBy("deployment_site_id")
    .orderBy("seq")
    .execute();
  const heads = await store
    .selectFrom("deployment_sites")
    .select(["id", "journal_head as seq", "journal_chain as chain"])
    .execute();
  const bySite = Map.groupBy(entries, ({ id }) => id);
  const wrong: number[] = [];
  const lengths: Record<number, number> = {};
  for (const { id, seq, chain } of heads) {
    const own = bySite.get(id) ?? [];
    lengths[own.length] = (lengths[own.length] ?? 0) + 1;
    let before: string = chainStart;
    for (const [at, entry] of own.entries()) {
      before = nextChain(before, { ...entry, bodyDigest: bodyDigest(JSON.parse(entry.body)) });
      if (entry.seq !== at + 1 || entry.chain !== before) wrong.push(id);
    }
    if (seq !== own.length || chain !== before) wrong.push(id);
  }
  const kinds: Record<string, number> = {};
  for (const { kind } of entries) kinds[kind] = (kinds[kind] ?? 0) + 1;
  return { wrong, lengths, kinds };
}

type Ways = readonly [Store, Store];

/** `open` gives two ways into one store: of two centrals, or twice the one that there is. */
function ordersHold(open: (stack: AsyncDisposableStack) => Promise<Ways>): void {
  const stack = new AsyncDisposableStack();
  let ways: Ways;
  let domainId = 0;
  beforeAll(async () => {
    ways = await open(stack);
    await fillWithFleet(ways[0], sealer, { customers: 1, domains: 2, sites });
    domainId = await domainIdOf(ways[0]);
  }, 120_000);
  afterAll(async () => stack.disposeAsync(), 60_000);

  test("orders of two at once, and others to some of the sites in another order: one entry of each, in one order", async () => {
    const [one, other] = ways.map(customersOf);
    if (one === undefined || other === undefined) throw new Error("there are two");
    const rows = await ways[0].selectFrom("deployment_sites").select("id").orderBy("id").execute();
    const ids = rows.map(({ id }) => id);
    const few = async (customers: CustomerStore, siteIds: readonly number[]): Promise<void> => {
      await customers.transact(async (work) =>
        append(work, siteIds, "domains.changed", { domains: [] }),
      );
    };
    const some = ids.slice(3_000, 3_100);
    await Promise.all([
      orderClear(one, domainId),
      orderClear(other, domainId),
      few(one, some.toReversed()),
      few(other, some),
      orderClear(one, domainId),
    ]);
    expect(await journalsOf(ways[0])).toEqual({
      wrong: [],
      lengths: { 3: sites - some.length, 5: some.length },
      kinds: { "cache.clear": 3 * sites, "domains.changed": 2 * some.length },
    });
    const placed = await ways[0]
      .selectFrom("clears")
      .innerJoin("clear_deployments", "clear_id", "clears.id")
      .select(["no", "seq", ({ fn }) => fn.countAll<number>().as("count")])
      .where("seq", "<=", 3)
      .where("deployment_site_id", "not in", some)
      .groupBy(["no", "seq"])
      .orderBy("no")
      .execute();
    // Numbers of clears, and places in the journals, come in one order at every site.
    expect(placed.map(({ no, seq, count }) => [no, seq, count])).toEqual(
      [1, 2, 3].map((no) => [no, no, sites - some.length]),
    );
  }, 120_000);

  test("the proof of an order is read in parts, and says the same of each site", async () => {
    const customers = customersOf(ways[0]);
    const clearId = await orderClear(customers, domainId);
    const read = await readClear(async (action) => customers.transact(action), 1, clearId);
    expect(read?.deployments.length).toBe(sites);
    expect(new Set(read?.deployments.map(({ state }) => state))).toEqual(new Set(["pending"]));
    const ids = read?.deployments.map(({ deployment_site_id: id }) => id) ?? [];
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  }, 120_000);

  test("policies of sites that serve the same are one body, those of others are theirs", async () => {
    const customers = customersOf(ways[0]);
    const { id: unlinked } = await ways[0]
      .selectFrom("domain_links")
      .select("deployment_site_id as id")
      .where("domain_id", "=", domainId)
      .orderBy("deployment_site_id")
      .executeTakeFirstOrThrow();
    await ways[0].deleteFrom("domain_links").where("deployment_site_id", "=", unlinked).execute();
    const all = await ways[0].selectFrom("deployment_sites").select("id").execute();
    const before = await journalsOf(ways[0]);
    await customers.transact(async (work) =>
      announcePolicy(
        work,
        all.map(({ id }) => id),
      ),
    );
    const after = await journalsOf(ways[0]);
    expect(after.wrong).toEqual([]);
    expect(after.kinds).toEqual({ ...before.kinds, "policy.changed": sites });
    const bodies = await ways[0]
      .selectFrom("journal")
      .innerJoin("journal_bodies", "digest", "body_digest")
      .select(["body", ({ fn }) => fn.countAll<number>().as("count")])
      .where("kind", "=", "policy.changed")
      .groupBy("body")
      .execute();
    const counts = bodies.map(({ body, count }) => [JSON.parse(body).domains.length, count]);
    expect(counts.toSorted(([one = 0], [other = 0]) => one - other)).toEqual([
      [0, 1],
      [1, sites - 1],
    ]);
  }, 120_000);
}

describe("SQLite", () => {
  ordersHold(async (stack) => {
    const { path } = stack.use(tempDir());
    const store = stack.use(await openStore(join(path, "central.db"), now));
    return [store, store];
  });
});

describe.skipIf(bin === undefined)("PostgreSQL, two centrals", () => {
  let postgres: Postgres;
  ordersHold(async (stack) => {
    postgres = stack.use(await startPostgres(bin ?? ""));
    const store = stack.use(await postgres.store("fan_out", now));
    return [store, stack.use(postgres.reader("fan_out"))];
  });
});
