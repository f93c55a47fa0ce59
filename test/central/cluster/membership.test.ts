// Who of several centrals is there, on a real PostgreSQL: by beats that the test makes, and with a clock that it moves.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createSealer } from "../../../src/base/seal.ts";
import { silentLog } from "../../../src/base/log.ts";
import { CentralBus } from "../../../src/central/cluster/bus.ts";
import {
  aheadMs,
  centralJobs,
  centralRows,
  Membership,
  type DifferingCentral,
} from "../../../src/central/cluster/membership.ts";
import type { AlikeSettings } from "../../../src/central/settings/alike.ts";
import { addChannels } from "../../../src/central/store/centrals/channels.ts";
import { byKeys } from "../../../src/central/store/centrals/centrals.ts";
import type { Store } from "../../../src/central/store/engine/database.ts";
import { FakeNotices } from "../../support/fake-notices.ts";
import { startPostgres, type Postgres } from "../../support/postgres.ts";
import { postgresBin } from "../../support/postgres-server.ts";
import { until } from "../../support/until.ts";

const bin = postgresBin();
const now = (): Date => new Date("2030-01-15T12:00:00.000Z");
/** The test beats by hand. */
const neverMs = 10 ** 9;
/** The time between two looks of a central that waits for another one's beat: on a busy machine a beat of 5 ms comes late. */
const patientMs = 100;
/** A beat that was seen once, and stood still at five looks more. */
const looksToDeath = 6;
const alike = (digests: Record<string, string> = {}, mayDiffer: string[] = []): AlikeSettings => ({
  digests: { base_url: "1", "limits.marks_burst": "1", ...digests },
  mayDiffer,
});
const ids = { a: "00000000000000aa", b: "00000000000000bb" } as const;

test.each([
  [10, 10, 10, 0],
  [10, 15, 30, 0],
  [10, 5, 30, 5],
  [10, 31, 30, -1],
])("a clock that showed %i, and %i at the store, and then %i, is %i ahead", (...given) => {
  const [before, store, after, ahead] = given;
  expect(aheadMs(before, store, after)).toBe(ahead);
});

test("a central that stands still, or at whose address another one was started since, beats no more", () => {
  const row = (address: string, whenStarted: string, still: number) => ({
    still,
    seen: {
      id: `${address} ${whenStarted}`,
      address,
      whenStarted,
      version: "1.0.0",
      keyProof: "",
      settings: null,
      beat: 1,
    },
  });
  const rows = [
    row("one", "2030-01-15T12:00:00.000Z", 0), // This one's former life.
    row("two", "2030-01-15T12:00:00.000Z", 0),
    row("two", "2030-01-15T12:10:00.000Z", 1),
    row("three", "2030-01-15T12:10:00.000Z", 2),
  ];
  const own = { address: "one", whenStarted: "2030-01-15T12:20:00.000Z" };
  expect(centralRows(rows, own).map(({ id, beats }) => [id, beats])).toEqual([
    ["one 2030-01-15T12:00:00.000Z", false],
    ["two 2030-01-15T12:00:00.000Z", false],
    ["two 2030-01-15T12:10:00.000Z", true],
    ["three 2030-01-15T12:10:00.000Z", false],
  ]);
});

describe.skipIf(bin === undefined)("membership", { timeout: 120_000 }, () => {
  let postgres: Postgres;
  let store: Store & AsyncDisposable;
  let notices: FakeNotices;
  let clockMs = 0;
  /** By how much the clock of centrals is ahead of this host's. */
  let offMs = 0;
  let no = 0;
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    postgres = opened.use(await startPostgres(bin ?? ""));
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);
  beforeEach(async () => {
    store = opened.use(await postgres.store(`centrals_${++no}`, now));
    notices = new FakeNotices();
    clockMs = 1_000;
    offMs = 0;
  });

  async function join(id: string, key = 1, beatMs = neverMs, settings = alike()) {
    await using stack = new AsyncDisposableStack();
    const log = silentLog();
    let aheadSeenMs = 0;
    let differing: readonly DifferingCentral[] = [];
    const bus = stack.use(await CentralBus.open({ id, openWay: notices.openWay, log }));
    const member = stack.use(
      await Membership.join({
        store,
        bus,
        central: { address: id, version: "1.0.0", whenStarted: now().toISOString() },
        sealer: createSealer(Buffer.alloc(32, key)),
        monotonicMs: () => clockMs,
        now: () => new Date(Date.now() + offMs),
        onClock: (ahead) => (aheadSeenMs = ahead),
        settings,
        log,
        beatMs,
        onDiffering: (others) => (differing = others),
      }),
    );
    const told: string[] = [];
    member.onGone((central) => told.push(`gone ${central}`));
    member.onRejoined(() => told.push("rejoined"));
    member.onTaken((job) => told.push(`took ${job}`));
    const owned = stack.move();
    return {
      member,
      told,
      differing: () => differing,
      aheadMs: () => aheadSeenMs,
      [Symbol.asyncDispose]: async () => owned.disposeAsync(),
    };
  }

  const channelsOf = async (central: string): Promise<number> => {
    const rows = await store
      .selectFrom("channels")
      .select("id")
      .where("central", "=", central)
      .execute();
    return rows.length;
  };
  const addChannel = async (central: string): Promise<unknown> =>
    byKeys(store, async (tx) =>
      addChannels(tx, central, [{ siteId: 1, instanceId: "instance-1", bootId: "b" }]),
    );
  const does = ({ member }: { readonly member: Membership }): readonly string[] =>
    centralJobs.filter((job) => member.does(job));

  test("the first does all that one does for all; when it leaves the other does, at once", async () => {
    await using a = await join(ids.a);
    await using b = await join(ids.b);
    await a.member.look();
    expect([a.member.count, b.member.count]).toEqual([2, 2]);
    expect([does(a), does(b)]).toEqual([centralJobs, []]);
    await addChannel(ids.a);
    await a[Symbol.asyncDispose]();
    await until("the other does all", () => does(b).length === centralJobs.length);
    expect(b.told).toEqual([`gone ${ids.a}`, ...centralJobs.map((job) => `took ${job}`)]);
    expect([b.member.count, await channelsOf(ids.a)]).toEqual([1, 0]);
  });

  test("one that beats stays, however often it is looked at", async () => {
    await using a = await join(ids.a);
    await using b = await join(ids.b);
    for (let look = 0; look < 2 * looksToDeath; look++) {
      await b.member.look();
      await a.member.look();
    }
    expect([a.told, b.told]).toEqual([[], []]);
    expect(a.member.isThere(ids.b)).toBe(true);
  });

  test("one that beats no more is gone with its channels, and joins anew if it was only frozen", async () => {
    await using a = await join(ids.a);
    await using b = await join(ids.b);
    await addChannel(ids.a);
    for (let look = 2; look < looksToDeath; look++) await b.member.look();
    expect([b.told, await channelsOf(ids.a)]).toEqual([[], 1]);
    expect(b.member.rows.map(({ id, beats }) => [id, beats])).toEqual([[ids.a, false]]);
    await b.member.look();
    expect(b.told).toEqual([`gone ${ids.a}`, ...centralJobs.map((job) => `took ${job}`)]);
    expect(await channelsOf(ids.a)).toBe(0);
    await a.member.look();
    expect(a.told).toEqual(["rejoined"]);
    expect([does(a), does(b)]).toEqual([[], centralJobs]);
    await b.member.look();
    expect(b.member.count).toBe(2);
    expect(b.member.rows.map(({ id, beats }) => [id, beats])).toEqual([[ids.a, true]]);
  });

  test("one that ended without a word is told for an hour, or until one with its address is back; one that was stopped leaves at once", async () => {
    const beatsOf = ({ member }: { readonly member: Membership }) =>
      member.rows.map(({ id, beats }) => [id, beats]);
    await using a = await join(ids.a);
    await using b = await join(ids.b);
    await using c = await join("00000000000000cc");
    // Whoever removes it, and whoever finds it removed.
    for (let look = 1; look <= looksToDeath; look++) {
      await c.member.look();
      await b.member.look();
    }
    await c.member.look();
    expect([b.member.count, c.member.count]).toEqual([2, 2]);
    expect(beatsOf(b)).toEqual([
      ["00000000000000cc", true],
      [ids.a, false],
    ]);
    expect(beatsOf(c)).toEqual([
      [ids.b, true],
      [ids.a, false],
    ]);
    await a.member.look();
    await b.member.look();
    expect(beatsOf(b)).toEqual([
      [ids.a, true],
      ["00000000000000cc", true],
    ]);
    await a[Symbol.asyncDispose]();
    await b.member.look();
    expect(beatsOf(b)).toEqual([["00000000000000cc", true]]);
    clockMs += 3_600_000;
    await c.member.look();
    expect(beatsOf(c)).toEqual([[ids.b, true]]);
  });

  test("who cannot read the beats of others does not say that they beat", async () => {
    await using _a = await join(ids.a);
    await using b = await join(ids.b);
    clockMs += 8_000;
    expect(b.member.rows.map(({ id, beats }) => [id, beats])).toEqual([[ids.a, null]]);
    await b.member.look();
    expect(b.member.rows.map(({ id, beats }) => [id, beats])).toEqual([[ids.a, true]]);
  });

  test("who cannot beat lets go of its jobs before anybody can take them", async () => {
    await using a = await join(ids.a);
    clockMs += 7_999;
    expect(does(a)).toEqual(centralJobs);
    clockMs += 1;
    expect(does(a)).toEqual([]);
    await a.member.look();
    expect(does(a)).toEqual(centralJobs);
  });

  test("two that take the same jobs up at once do not both get one", async () => {
    await using a = await join(ids.a);
    await using b = await join(ids.b);
    await store.updateTable("central_jobs").set({ central: "of nobody" }).execute();
    await Promise.all([a.member.look(), b.member.look()]);
    const all = [...does(a), ...does(b)];
    expect(all.toSorted()).toEqual(centralJobs.toSorted());
  });

  test("a central with another key is refused while the other beats, and not by what one left that is dead", async () => {
    await using a = await join(ids.a, 1, 5);
    await expect(join(ids.b, 2, patientMs)).rejects.toMatchObject({ code: "STORE_KEY_WRONG" });
    expect(a.member.count).toBe(1);
    await store
      .insertInto("centrals")
      .values({
        id: "00000000000000cc",
        address: "gone",
        version: "1.0.0",
        when_started: now().toISOString(),
        key_proof: createSealer(Buffer.alloc(32, 3)).seal("x", "central at a store"),
        beat: 7,
        settings: null,
      })
      .execute();
    await using b = await join(ids.b, 1, 5);
    await until("only the two are there", () => b.member.count === 2 && b.member.isThere(ids.a));
    expect(await store.selectFrom("centrals").select("id").orderBy("id").execute()).toEqual([
      { id: ids.a },
      { id: ids.b },
    ]);
  });

  test("a central with other settings is refused by their names while the other beats, and not by one that is gone", async () => {
    {
      await using a = await join(ids.a, 1, 5);
      await expect(join(ids.b, 1, patientMs, alike({ base_url: "2" }))).rejects.toMatchObject({
        code: "SETTINGS_DIFFER",
        message: `the central at ${ids.a}, which works on the same store, has another \`base_url\` than this one`,
      });
      expect(a.member.count).toBe(1);
      await store
        .updateTable("centrals")
        .set({ id: "00000000000000cc" })
        .where("id", "=", ids.a)
        .execute();
    }
    await using b = await join(ids.b, 1, 5, alike({ base_url: "2" }));
    expect(b.member.count).toBe(1);
  });

  test("a setting is changed on one after the other where either of two lets it differ; both tell it until it is alike", async () => {
    const coming = alike({ base_url: "2" }, ["base_url"]);
    await using c = await join("00000000000000cc", 1, neverMs, coming);
    {
      await using a = await join(ids.a);
      await c.member.look();
      const told = { refused: [], told: ["base_url"] };
      expect(a.differing()).toEqual([{ address: "00000000000000cc", ...told }]);
      expect(c.differing()).toEqual([{ address: ids.a, ...told }]);
    }
    await using b = await join(ids.b, 1, neverMs, coming);
    await c.member.look();
    expect([b.differing(), c.differing()]).toEqual([[], []]);
  });

  test("other limits are told and refused to nobody; a central of a release that tells nothing is let in", async () => {
    await using a = await join(ids.a);
    await using b = await join(ids.b, 1, neverMs, alike({ "limits.marks_burst": "2" }));
    await a.member.look();
    expect([a.differing(), b.differing()]).toEqual([
      [{ address: ids.b, refused: [], told: ["limits.marks_burst"] }],
      [{ address: ids.a, refused: [], told: ["limits.marks_burst"] }],
    ]);
    await store.updateTable("centrals").set({ settings: null }).execute();
    await a.member.look();
    expect(a.differing()).toEqual([]);
    await using c = await join("00000000000000cc", 1, neverMs, alike({ base_url: "2" }));
    expect(c.member.count).toBe(3);
  });

  test("a clock that is wrong is compared with the store's at each look", async () => {
    await using a = await join(ids.a);
    expect(Math.abs(a.aheadMs())).toBeLessThan(1_000);
    offMs = 1_200_000;
    await a.member.look();
    expect(a.aheadMs()).toBeGreaterThan(1_190_000);
    offMs = -1_200_000;
    await a.member.look();
    expect(a.aheadMs()).toBeLessThan(-1_190_000);
  });
});
