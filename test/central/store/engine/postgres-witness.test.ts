// What central acknowledged is looked for on each server that it meets: over restarts of PostgreSQL, promotions that lose nothing and that do, a primary that was not
// shut off, and a central that was cut off.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { sql } from "kysely";
import type { AccelError } from "../../../../src/core/faults.ts";
import type { Store } from "../../../../src/central/store/engine/database.ts";
import { evidenceName } from "../../../../src/central/store/engine/evidence-file.ts";
import {
  openWitnessedStore,
  type WitnessedStore,
} from "../../../../src/central/store/engine/postgres-store.ts";
import { lastRestore, noteRestore } from "../../../../src/central/store/engine/restores.ts";
import { appendJournal } from "../../../../src/central/store/journal/journal.ts";
import { storeEpoch } from "../../../../src/central/store/engine/database.ts";
import { seedSite } from "../../../support/agent-side.ts";
import { judgeWithoutSync } from "../../../support/postgres.ts";
import { PostgresServer, postgresBin } from "../../../support/postgres-server.ts";
import { Switchboard } from "../../../support/switchboard.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";

const bin = postgresBin();

/** A server with a database, an address that leads there, and a directory for what central notes. */
async function scene(stack: AsyncDisposableStack) {
  const primary = stack.use(await PostgresServer.start(bin ?? ""));
  await primary.run("postgres", "CREATE DATABASE central TEMPLATE template0");
  const address = stack.use(await Switchboard.start(primary.port));
  const dir = stack.use(tempDir()).path;
  return { primary, address, dir };
}

type Scene = Awaited<ReturnType<typeof scene>>;
type Opened = WitnessedStore & {
  readonly lessTold: readonly AccelError[];
  readonly wholeTold: readonly string[];
  /** Closes it as a central does that ends. */
  readonly close: () => Promise<void>;
};

async function open({ primary, address, dir }: Scene): Promise<Opened> {
  const place = primary.place("central", { host: "127.0.0.1", port: address.port });
  const lessTold: AccelError[] = [];
  const wholeTold: string[] = [];
  const opened = await openWitnessedStore(
    { place, now: () => new Date(), random: Math.random, judge: judgeWithoutSync },
    async () => undefined,
    {
      path: join(dir, evidenceName),
      onLess: (error) => void lessTold.push(error),
      onWhole: (before, now) => void wholeTold.push(`${before.timeline} ${now.timeline}`),
      onFailure: (error) => expect.unreachable(String(error)),
    },
  );
  const close = async (): Promise<void> => {
    await opened.store[Symbol.asyncDispose]();
    await opened.witness[Symbol.asyncDispose]();
  };
  return { ...opened, lessTold, wholeTold, close };
}

/** An acknowledged change. */
async function order(store: Store, name: string): Promise<void> {
  await store.transaction().execute(async (tx) => {
    await tx
      .insertInto("customers")
      .values({ name, created_by_user_id: null, when_created: "2030-01-01T00:00:00.000Z" })
      .execute();
  });
}

const append = async (store: Store, siteIds: readonly number[]) =>
  store
    .transaction()
    .execute(async (tx) =>
      appendJournal(tx, siteIds, "domains.changed", { domains: [] }, new Date().toISOString()),
    );

const names = async (store: Store): Promise<readonly string[]> =>
  (await store.selectFrom("customers").select("name").orderBy("id").execute()).map(
    ({ name }) => name,
  );
const marksOf = async (store: Store): Promise<number> =>
  (await store.selectFrom("commit_marks").select("no").execute()).length;
const fileOf = ({ dir }: Scene): string => readFileSync(join(dir, evidenceName), "utf8");

describe.skipIf(bin === undefined)("a store that is witnessed", () => {
  let stack = new AsyncDisposableStack();
  afterEach(async () => {
    await stack.disposeAsync();
    stack = new AsyncDisposableStack();
  }, 60_000);

  test("transactions that write leave a number, and no others", async () => {
    const here = await scene(stack);
    const { store, witness, close } = await open(here);
    expect(await marksOf(store)).toBe(1);
    await order(store, "a");
    await store.transaction().execute(async (tx) => names(tx));
    await store.transaction().execute(async (tx) => sql`SELECT 1`.execute(tx));
    await expect(
      store.transaction().execute(async (tx) => {
        await tx.deleteFrom("customers").execute();
        throw new Error("taken back");
      }),
    ).rejects.toThrow("taken back");
    await expect(
      store.transaction().execute(async (tx) => {
        await tx.deleteFrom("customers").execute();
        await sql`SELECT 1 / 0`.execute(tx).catch(() => undefined);
      }),
    ).rejects.toThrow(/rolled back instead of committed/);
    expect([await marksOf(store), await names(store)]).toEqual([2, ["a"]]);
    expect(witness.marks.commits.map(({ no }) => no)).toEqual([0, 1]);
    // Those that have served go; what removes them says so, and leaves one of its own.
    for (let count = 0; count < 1_300; count++) {
      const no = witness.marks.next();
      witness.marks.acknowledged(no);
      witness.marks.ended(no);
    }
    const marks = async (): Promise<readonly number[]> =>
      (await store.selectFrom("commit_marks").select("no").orderBy("no").execute()).map(
        ({ no }) => no,
      );
    const removal = expect.toSatisfy((no: number) => no < -1_000);
    await until("old numbers are removed", async () => ((await marks())[0] ?? 0) < 0);
    expect(await marks()).toEqual([removal, expect.any(Number)]);
    await close();
    expect(JSON.parse(fileOf(here))).toMatchObject({ isFinal: true });
  }, 120_000);

  test("a restart, fast and immediate, loses nothing: the epoch stays", async () => {
    const here = await scene(stack);
    const { store, lessTold, wholeTold, close } = await open(here);
    const epoch = await storeEpoch(store);
    for (const mode of ["fast", "immediate"] as const) {
      await order(store, mode);
      await here.primary.end(mode);
      await expect(order(store, "while it is away")).rejects.toMatchObject({
        code: "STORE_UNREACHABLE",
      });
      await here.primary.begin();
      await order(store, `after ${mode}`);
    }
    expect(await names(store)).toEqual(["fast", "after fast", "immediate", "after immediate"]);
    expect([lessTold, wholeTold]).toEqual([[], ["1 1", "1 1"]]);
    await close();
    const again = await open(here);
    expect([again.loss, await storeEpoch(again.store)]).toEqual([undefined, epoch]);
    // Of the run that is over its removal is left.
    expect(await marksOf(again.store)).toBe(2);
    await again.close();
  }, 120_000);

  test("a standby that lacks what was acknowledged is not used until the epoch is another", async () => {
    const here = await scene(stack);
    const first = await open(here);
    const epoch = await storeEpoch(first.store);
    await order(first.store, "kept");
    const standby = stack.use(await here.primary.standby("async"));
    await standby.cutOff();
    await order(first.store, "lost 1");
    await order(first.store, "lost 2");
    await here.primary.end("kill");
    await standby.promote();
    here.address.switchTo(standby.port);
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(order(first.store, "too early")).rejects.toMatchObject({
        code: "STORE_UNREACHABLE",
      });
    await expect(names(first.openReader())).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    expect(first.lessTold.map(({ code }) => code)).toEqual(["STORE_REWOUND"]);
    await first.close();

    const second = await open(here);
    expect(second.loss).toMatchObject({
      isCertain: true,
      commits: 2,
      timelines: { before: 1, now: 2 },
    });
    const raised = await storeEpoch(second.store);
    expect(raised).not.toBe(epoch);
    expect(await names(second.store)).toEqual(["kept"]);
    expect(await lastRestore(second.store)).toMatchObject({
      cause: "failover",
      clear_now: false,
      detail: expect.stringContaining("at least 2 of them"),
    });
    const lines = await second.store
      .selectFrom("audit")
      .select(["who", "action", "ids", "change"])
      .execute();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ who: "central", action: "store lost commits" });
    expect(JSON.parse(lines[0]?.ids ?? "")).toEqual({ epoch: raised });
    expect(JSON.parse(lines[0]?.change ?? "")).toMatchObject({ commits_missing_at_least: 2 });
    await order(second.store, "new");
    await second.close();
    const third = await open(here);
    expect([third.loss, await storeEpoch(third.store)]).toEqual([undefined, raised]);
    await third.close();

    // The primary of before comes back, and the address leads there.
    await here.primary.begin();
    here.address.switchTo(here.primary.port);
    await expect(open(here)).rejects.toMatchObject({
      code: "STORE_UNREACHABLE",
      message: expect.stringContaining("a former primary (timeline 1)"),
    });
    const rows = await here.primary.run("central", "SELECT count(*)::int FROM restores");
    expect(rows).toEqual([{ count: 0 }]);
  }, 180_000);

  test("connections to a primary that was not shut off end when its successor is met", async () => {
    const here = await scene(stack);
    const { store, lessTold, wholeTold, close } = await open(here);
    const standby = stack.use(await here.primary.standby("other"));
    await order(store, "both have it");
    const lsn = await here.primary.run("postgres", "SELECT pg_current_wal_lsn()::text AS lsn");
    const [{ lsn: end }] = lsn as [{ lsn: string }];
    await until("the standby has it", async () => {
      const [row] = await standby.run(
        "postgres",
        `SELECT pg_last_wal_replay_lsn() >= '${end}' AS there`,
      );
      return Object(row)["there"] === true;
    });
    await standby.promote();
    here.address.switchTo(standby.port);
    // One connection is in use at the primary; the next one is new.
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const atPrimary = store.transaction().execute(async (tx) => {
      await names(tx);
      begun.resolve();
      await held.promise;
      return names(tx);
    });
    const caught = expect(atPrimary).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await begun.promise;
    await order(store, "at the successor");
    held.resolve();
    await caught;
    expect(wholeTold).toEqual(["1 2"]);
    here.address.switchTo(here.primary.port);
    const busy = store.transaction().execute(async (tx) => {
      await names(tx);
      // Another connection than this one is asked for, and none can be had there.
      await expect(order(store, "at the primary")).rejects.toThrow(/a former primary/);
      return names(tx);
    });
    expect(await busy).toEqual(["both have it", "at the successor"]);
    expect(lessTold).toEqual([]);
    await close();
    expect(await here.primary.run("central", "SELECT name FROM customers")).toEqual([
      { name: "both have it" },
    ]);
  }, 180_000);

  test("a central that is cut off, and a standby that takes over before it is started again: nobody knows what is missing", async () => {
    const here = await scene(stack);
    const first = await open(here);
    await order(first.store, "before");
    const epoch = await storeEpoch(first.store);
    const written = await until("the file has it", () => {
      const text = fileOf(here);
      return text.includes('"no":1,') && text;
    });
    await first.close();
    // As a kill would have left it.
    writeFileSync(join(here.dir, evidenceName), written);
    const standby = stack.use(await here.primary.standby("late"));
    await here.primary.end("fast");
    await standby.promote();
    here.address.switchTo(standby.port);
    const second = await open(here);
    expect(second.loss).toMatchObject({ isCertain: false, commits: 0 });
    expect(await storeEpoch(second.store)).not.toBe(epoch);
    expect(await names(second.store)).toEqual(["before"]);
    await second.close();
  }, 180_000);

  test("a copy of the database from before is a store that has less", async () => {
    const here = await scene(stack);
    const first = await open(here);
    await order(first.store, "in the copy");
    await first.close();
    const second = await open(here);
    await here.primary.run("postgres", "CREATE DATABASE copied TEMPLATE template0");
    await second.close();
    await here.primary.run(
      "postgres",
      "DROP DATABASE copied",
      "CREATE DATABASE copied TEMPLATE central",
    );
    const third = await open(here);
    await order(third.store, "not in the copy");
    await third.close();
    await here.primary.run(
      "postgres",
      "DROP DATABASE central",
      "ALTER DATABASE copied RENAME TO central",
    );
    const fourth = await open(here);
    expect(fourth.loss).toMatchObject({ isCertain: true, timelines: { before: 1, now: 1 } });
    expect(await names(fourth.store)).toEqual(["in the copy"]);
    await fourth.close();
    const before = fileOf(here);

    // What operators do where copy and directory are of one moment.
    await here.primary.run("central", "DELETE FROM commit_marks");
    const { commits } = JSON.parse(fileOf(here)) as { commits: { atMs: number }[] };
    const fifth = await open(here);
    expect(fifth.loss).toBeUndefined();
    expect(fifth.told).toMatch(/restored from a backup/);
    expect(await lastRestore(fifth.store)).toMatchObject({
      cause: "backup",
      when_backed_up: new Date(Math.max(...commits.map(({ atMs }) => atMs))).toISOString(),
    });
    const raised = await storeEpoch(fifth.store);
    expect(raised).not.toBe(JSON.parse(before)["epoch"]);
    await fifth.close();
    const sixth = await open(here);
    expect([sixth.told, await storeEpoch(sixth.store)]).toEqual([undefined, raised]);
    await sixth.close();
  }, 180_000);

  test("what each of several had acknowledged is in the account of losses, also of one that was dead meanwhile, and once", async () => {
    const one = await scene(stack);
    const other = { ...one, dir: stack.use(tempDir()).path };
    const first = await open(one);
    const second = await open(other);
    await order(second.store, "kept");
    const [{ siteId: site }, { siteId: wholeSite }] = [
      await seedSite(first.store, "00000000000000a1"),
      await seedSite(first.store, "00000000000000b2"),
    ];
    for (let no = 0; no < 2; no++) await append(first.store, [site, wholeSite]);
    const standby = stack.use(await one.primary.standby("async"));
    await standby.cutOff();
    await order(first.store, "lost 1");
    await order(second.store, "lost 2");
    await order(second.store, "lost 3");
    second.witness.marks.journalsTold([
      [site, 621],
      [wholeSite, 2],
    ]);
    await second.close();
    const dead = fileOf(other);
    await one.primary.end("kill");
    await standby.promote();
    one.address.switchTo(standby.port);
    await first.close();

    const again = await open(one);
    expect(again.loss).toMatchObject({ commits: 1 });
    const epoch = await storeEpoch(again.store);
    // What is ordered since is no part of what was left.
    await append(again.store, [site]);
    const back = await open(other);
    expect([back.loss, await storeEpoch(back.store)]).toEqual([undefined, epoch]);
    const words = new RegExp(
      `at least 1 of them.*\\. Another central had acknowledged at least 2 more .*deployment sites ${site} \\(3 to 621\\)$`,
    );
    const account = async () => (await lastRestore(again.store))?.detail;
    expect(await account()).toMatch(words);
    expect(back.told).toMatch(/^Another central had acknowledged at least 2 more/);
    await back.close();
    // As a kill right after the account would have left it.
    writeFileSync(join(other.dir, evidenceName), dead);
    const twice = await open(other);
    expect(twice.told).toBeUndefined();
    expect(await account()).toMatch(words);
    const lines = await again.store.selectFrom("audit").select("change").execute();
    expect(Object(JSON.parse(lines.at(-1)?.change ?? ""))["journals"]).toEqual([
      { deployment_site_id: site, from_seq: 3, to_seq: 621 },
    ]);
    expect(
      lines.map(({ change }) => Object(JSON.parse(change ?? ""))["commits_missing_at_least"]),
    ).toEqual([1, 2]);
    await twice.close();
    await again.close();
  }, 180_000);

  test("of several that come at once to a server that lost something one gives the epoch, and the account is of all", async () => {
    const one = await scene(stack);
    const scenes = [one, ...[1, 2].map(() => ({ ...one, dir: stack.use(tempDir()).path }))];
    const live = await Promise.all(scenes.map(open));
    const standby = stack.use(await one.primary.standby("async"));
    await standby.cutOff();
    for (const [no, { store }] of live.entries()) await order(store, `lost ${no}`);
    await one.primary.end("kill");
    await standby.promote();
    one.address.switchTo(standby.port);
    for (const { close } of live) await close();

    const again = await Promise.all(scenes.map(open));
    expect(await standby.run("central", "SELECT count(*)::int FROM restores")).toEqual([
      { count: 1 },
    ]);
    expect(again.filter(({ loss, told }) => loss !== undefined && told !== undefined)).toHaveLength(
      1,
    );
    const [{ store }] = again as [Opened];
    const detail = (await lastRestore(store))?.detail ?? "";
    expect(detail.match(/at least 1 of them/g)).toHaveLength(1);
    expect(detail.match(/Another central had acknowledged at least 1 more/g)).toHaveLength(2);
    const epoch = await storeEpoch(store);
    for (const { dir } of scenes)
      expect(JSON.parse(readFileSync(join(dir, evidenceName), "utf8"))).toMatchObject({ epoch });
    for (const { close } of again) await close();
  }, 180_000);

  test("an epoch that another gives is noticed, and is no loss at the next opening", async () => {
    const here = await scene(stack);
    const first = await open(here);
    await order(first.store, "kept");
    {
      await using _ = first.witness.watch(first.store, {
        intervalMs: 20,
        onAsked: () => undefined,
      });
      const restore = {
        when_backed_up: "2030-01-01T00:00:00Z",
        when_restored: "2030-01-02T00:00:00Z",
      };
      await noteRestore(first.store, { ...restore, clear_now: false });
      await until("it is noticed", () => first.lessTold.length === 1);
    }
    const epoch = await storeEpoch(first.store);
    await first.close();
    const second = await open(here);
    expect([second.loss, await storeEpoch(second.store)]).toEqual([undefined, epoch]);
    await second.close();
  }, 60_000);

  test("a file that central did not write is named, with what helps", async () => {
    const here = await scene(stack);
    writeFileSync(join(here.dir, evidenceName), "{}");
    await expect(open(here)).rejects.toMatchObject({
      code: "FILE_UNUSABLE",
      message: expect.stringContaining(evidenceName),
      hint: expect.stringContaining("take it away"),
    });
  }, 60_000);
});
