// What thousands of agents tell at once, on SQLite and on PostgreSQL: as few statements as the engine bears, whoever tells it, and no word of one in the row of another.

import { join } from "node:path";
import type { KyselyPlugin } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fillWithFleet } from "../../../../bench/support/fleet-seed.ts";
import {
  openStore,
  type Queries,
  type Store,
} from "../../../../src/central/store/engine/database.ts";
import { rowsAtOnce } from "../../../../src/central/store/engine/listed.ts";
import { saveHellos } from "../../../../src/central/store/journal/instances.ts";
import { noteSeen } from "../../../../src/central/store/journal/instances-seen.ts";
import { appendJournal } from "../../../../src/central/store/journal/journal.ts";
import { JournalPages } from "../../../../src/central/store/journal/journal-pages.ts";
import { ReceiptIntake } from "../../../../src/central/store/journal/receipts.ts";
import { chainStart } from "../../../../src/core/journal/journal-chain.ts";
import type { Hello } from "../../../../src/wire/channel.ts";
import type { Position } from "../../../../src/wire/position.ts";
import { sealer } from "../../../support/agent-side.ts";
import { postgresBin } from "../../../support/postgres-server.ts";
import { startPostgres } from "../../../support/postgres.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const bin = postgresBin();
const now = (): Date => new Date("2030-01-15T12:00:00Z");
const at = now().toISOString();
const later = "2030-01-15T12:00:05.000Z";
const sites = 5_300; // More than one part on PostgreSQL, and no round number.

const positionAt = (seq: number): Position => ({
  epoch: "e".repeat(32),
  applied_seq: seq,
  chain: chainStart,
  oldest_unfinished: { seq, kind: "cache.clear", since: at },
});

const helloOf = (instanceId: string, version: string): Hello => ({
  type: "hello",
  agent_version: version,
  instance_id: instanceId,
  boot_id: "b1",
  epoch: null,
  applied_seq: 3,
  chain: chainStart,
  edge: null,
});

/** The store, with the number of statements that went through it. */
function counted(store: Store) {
  const counts = { statements: 0 };
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      counts.statements++;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { counts, store: store.withPlugin(plugin) };
}

const rowOf = async (db: Queries, siteId: number, instanceId: string) =>
  db
    .selectFrom("instances")
    .selectAll()
    .where("deployment_site_id", "=", siteId)
    .where("instance_id", "=", instanceId)
    .executeTakeFirstOrThrow();

function holds(open: (stack: AsyncDisposableStack) => Promise<Store>): void {
  const stack = new AsyncDisposableStack();
  let store: Store;
  let ids: readonly number[];
  beforeAll(async () => {
    store = await open(stack);
    await fillWithFleet(store, sealer, { customers: 1, domains: 1, sites });
    ids = (await store.selectFrom("deployment_sites").select("id").orderBy("id").execute()).map(
      ({ id }) => id,
    );
  }, 120_000);
  afterAll(async () => stack.disposeAsync(), 60_000);

  /** The fewest statements that so many rows take on this engine; less than a whole part comes in round sizes. */
  const partsOf = (rows: number): number => Math.ceil(rows / rowsAtOnce(store)) + 4;
  const first = (): number => ids[0] ?? 0;

  test("positions of thousands are noted by a few statements, each in its own row", async () => {
    const way = counted(store);
    const seen = ids.map((id, no) => {
      return { deploymentSiteId: id, instanceId: `many-${no}`, position: positionAt(no) };
    });
    await noteSeen(way.store, seen, at);
    await noteSeen(
      way.store,
      seen.map((one, no) => ({ ...one, position: positionAt(no + 1) })),
      later,
    );
    expect(way.counts.statements).toBeLessThanOrEqual(2 * partsOf(sites));
    const rows = await store
      .selectFrom("instances")
      .select(["deployment_site_id as id", "instance_id", "applied_seq", "oldest_unfinished"])
      .select(["last_seen", "position_at", "agent_version"])
      .where("instance_id", "like", "many-%")
      .orderBy("deployment_site_id")
      .execute();
    expect(rows).toEqual(
      ids.map((id, no) => ({
        id,
        instance_id: `many-${no}`,
        applied_seq: no + 1,
        oldest_unfinished: JSON.stringify(positionAt(no + 1).oldest_unfinished),
        last_seen: later,
        position_at: later,
        agent_version: "",
      })),
    );
  }, 120_000);

  test("what an instance does not tell stays as it was; of what it tells twice the last counts", async () => {
    const key = { deploymentSiteId: first(), instanceId: "stays" };
    const other = { deploymentSiteId: first(), instanceId: "other" };
    const edge = { server_name: 'edge "1", {NULL} \\ ä' } as unknown as Hello["edge"];
    await noteSeen(store, [{ ...key, self: { agent_version: "1.0.0", edge } }], at);
    await noteSeen(store, [{ ...key, position: positionAt(4) }, other], at);
    await noteSeen(store, [key, { ...key, hasDelivered: true }, key], later);
    const whole = await rowOf(store, first(), "stays");
    expect(whole).toEqual({
      deployment_site_id: first(),
      instance_id: "stays",
      agent_version: "1.0.0",
      edge: JSON.stringify(edge),
      ...positionAt(4),
      oldest_unfinished: JSON.stringify(positionAt(4).oldest_unfinished),
      position_at: at,
      last_seen: later,
      last_report: null,
      logs_confirmed_at: later,
    });
    expect(await rowOf(store, first(), "other")).toMatchObject({
      agent_version: "",
      edge: null,
      position_at: null,
      logs_confirmed_at: null,
      last_seen: at,
    });
    const none = { epoch: null, oldest_unfinished: null };
    const told = [{ ...positionAt(9), ...none }, positionAt(5), { ...positionAt(7), ...none }];
    await noteSeen(
      store,
      told.map((position) => ({ ...key, position })),
      later,
    );
    expect(await rowOf(store, first(), "stays")).toEqual({
      ...whole,
      ...none,
      applied_seq: 7,
      position_at: later,
    });
  });

  test("hellos of thousands at once: what each says of itself, and null is a word, too", async () => {
    const way = counted(store);
    const facts = { server_name: "edge-1" } as unknown as Hello["edge"];
    const before = { ...helloOf("hello-0", "0.9.0"), edge: facts };
    await saveHellos(store, [{ deploymentSiteId: first(), hello: before }], at);
    const given = ids.map((id, no) => {
      return { deploymentSiteId: id, hello: helloOf(`hello-${no}`, `1.0.${no}`) };
    });
    await saveHellos(way.store, given, later);
    expect(way.counts.statements).toBeLessThanOrEqual(partsOf(sites));
    const rows = await store
      .selectFrom("instances")
      .select(["instance_id", "agent_version", "edge", "applied_seq"])
      .where("instance_id", "like", "hello-%")
      .orderBy("deployment_site_id")
      .execute();
    expect(rows).toEqual(
      given.map(({ hello: { instance_id, agent_version } }) => {
        return { instance_id, agent_version, edge: null, applied_seq: 3 };
      }),
    );
  }, 120_000);

  test("an entry that thousands are told of is read, and receipted, by a few statements", async () => {
    await store
      .transaction()
      .execute(async (tx) => appendJournal(tx, ids, "domains.changed", { domains: [] }, at));
    const reading = counted(store);
    const pages = new JournalPages(reading.store);
    const read = await Promise.all(ids.map(async (id) => pages.after(id, 0)));
    expect(new Set(read.map(({ entries }) => entries.map(({ seq }) => seq).join()))).toEqual(
      new Set(["1"]),
    );
    // The places, and the one body.
    expect(reading.counts.statements).toBeLessThanOrEqual(2 * partsOf(sites));

    const writing = counted(store);
    const intake = new ReceiptIntake({
      store: writing.store,
      commits: { run: async (action) => writing.store.transaction().execute(action) },
      now,
      backendRules: {},
      // No receipt here ends an import.
      blobs: {} as never,
      judge: {} as never,
    });
    await Promise.all(
      ids.map(async (id, no) =>
        intake.save(
          id,
          `receipts-${no}`,
          [{ seq: 1, phase: "applied", detail: { note: `{"${no}\\` }, took_ms: no }],
          positionAt(1),
        ),
      ),
    );
    const rows = await store
      .selectFrom("receipts")
      .innerJoin("instances", (join) =>
        join
          .onRef("instances.deployment_site_id", "=", "receipts.deployment_site_id")
          .onRef("instances.instance_id", "=", "receipts.instance_id"),
      )
      .select(["receipts.instance_id", "seq", "phase", "detail", "took_ms", "applied_seq"])
      .orderBy("receipts.deployment_site_id")
      .execute();
    expect(rows).toEqual(
      ids.map((_, no) => ({
        instance_id: `receipts-${no}`,
        seq: 1,
        phase: "applied",
        detail: JSON.stringify({ note: `{"${no}\\` }),
        took_ms: no,
        applied_seq: 1,
      })),
    );
    // Of each part: imports, heads, instances and receipts.
    expect(writing.counts.statements).toBeLessThanOrEqual(4 * partsOf(sites) + 12);
  }, 120_000);
}

describe("SQLite", () => {
  holds(async (stack) => {
    const { path } = stack.use(tempDir());
    return stack.use(await openStore(join(path, "central.db"), now));
  });
});

describe.skipIf(bin === undefined)("PostgreSQL", () => {
  holds(async (stack) => {
    const postgres = stack.use(await startPostgres(bin ?? ""));
    return stack.use(await postgres.store("seen", now));
  });
});
