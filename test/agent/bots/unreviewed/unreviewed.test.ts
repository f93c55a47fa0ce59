// Unreviewed bots are counted once each: over workers and their ends, whatever names are made up, however often a batch is sent, and over ends of the agent.

import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { expect, test } from "vitest";
import { KeptCounts, keptCountsKey } from "../../../../src/agent/bots/unreviewed/kept-counts.ts";
import { UnreviewedBots } from "../../../../src/agent/bots/unreviewed/unreviewed-bots.ts";
import { UnreviewedCounts } from "../../../../src/agent/bots/unreviewed/unreviewed-counts.ts";
import { UnreviewedTeller } from "../../../../src/agent/bots/unreviewed/unreviewed-teller.ts";
import { openAgentDb, type AgentDb } from "../../../../src/agent/link/agent-db.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { fakeDescription } from "../../../../src/wire/other-bots.ts";
import { until } from "../../../support/until.ts";
import type { Telling } from "../telling-worker.ts";

const curl = { name: "curl", description: "A tool", isFake: false };
const own = (name: string, isFake = false) => ({ name, description: null, isFake });
const sum = (counts: readonly { readonly requests: number }[]): number =>
  counts.reduce((total, { requests }) => total + requests, 0);

type Opened = { readonly db?: AgentDb; readonly free?: () => number; readonly registry?: Registry };

/** Counts of one start of an agent. */
function open(
  bootId: string,
  { db, free = () => Infinity, registry }: Opened = {},
): UnreviewedBots {
  const kept = new KeptCounts(db ?? openAgentDb(":memory:", "/nowhere"), "instance", free);
  const log = silentLog();
  return new UnreviewedBots({ bootId, kept, registry: registry ?? new Registry(), log });
}

const told = (requests: number, name = "curl") => [
  { domain: "a.example", ...curl, name, requests },
];

test("whatever is counted, no request is left out and names stay within their limits", () => {
  const limits = { ownNames: 6, names: 10 };
  const bot = fc.oneof(
    fc.integer({ min: 0, max: 40 }).map((no) => own(`own ${no}`, no % 3 === 0)),
    fc.integer({ min: 0, max: 8 }).map((no) => ({ ...curl, name: `known ${no}` })),
    fc.constant(own("other")),
  );
  const visit = fc.tuple(fc.constantFrom("a", "b", "c"), bot, fc.integer({ min: 1, max: 9 }));
  fc.assert(
    fc.property(fc.array(visit, { maxLength: 200 }), (visits) => {
      const counts = new UnreviewedCounts(limits);
      for (const [domain, name, requests] of visits) counts.add(domain, name, requests);
      const taken = counts.take();
      for (const domain of ["a", "b", "c"]) {
        const rows = taken.filter((row) => row.domain === domain);
        const visited = visits.filter((one) => one[0] === domain);
        expect(sum(rows)).toBe(visited.reduce((total, [, , requests]) => total + requests, 0));
        expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
        expect(rows.filter(({ description }) => description === null).length).toBeLessThan(7);
      }
      expect(taken.filter(({ name }) => name !== "other").length).toBeLessThanOrEqual(10);
      expect(counts.isEmpty).toBe(true);
      expect(counts.take()).toEqual([]);
    }),
  );
});

test("a flood of made-up names pushes out neither what comes often nor known crawlers", () => {
  const counts = new UnreviewedCounts();
  for (let no = 0; no < 20_000; no++) {
    counts.add("a.example", own(`made-up-${no}`));
    if (no % 50 === 0) counts.add("a.example", own("frequent"));
    if (no > 19_990) counts.add("a.example", curl);
  }
  const taken = counts.take();
  const of = (name: string) => taken.find((row) => row.name === name)?.requests;
  expect([of("frequent"), of("curl")]).toEqual([400, 9]);
  expect(sum(taken)).toBe(20_409);
  expect(taken.length).toBeLessThanOrEqual(202);
});

test("fakes are described in what is told, and made-up names of fakes take no more room than others", async () => {
  using bots = open("boot");
  using teller = new UnreviewedTeller(bots.openWorker());
  for (let no = 0; no < 1_000; no++) {
    teller.count("a.example", own(`Googlebot-${no}`, true));
    if (no % 50 === 0) teller.count("a.example", own("MyGooglebot", true));
    if (no % 50 === 0) teller.count("a.example", own("frequent"));
  }
  for (const isFake of [true, false]) teller.count("a.example", { ...curl, isFake });
  const { counts } = await until("the counts", () => bots.batch());
  expect(sum(counts)).toBe(1_042);
  // 200 of them, curl, and the rest in one row.
  expect(counts.length).toBeLessThanOrEqual(202);
  const said = new Map(counts.map(({ name, description }) => [name, description]));
  expect([said.get("curl"), said.get("MyGooglebot")]).toEqual([fakeDescription, fakeDescription]);
  expect(said.get("frequent")).toBeNull();
});

test("batches: the same one until it is acknowledged, what comes meanwhile in the next", async () => {
  using bots = open("boot-1");
  using teller = new UnreviewedTeller(bots.openWorker());
  expect(bots.batch()).toBeUndefined();
  teller.count("a.example", curl);
  const first = await until("the first count", () => bots.batch());
  expect(first).toEqual({
    id: { boot_id: "boot-1", seq: 1 },
    counts: [{ domain: "a.example", ...curl, requests: 1 }],
  });
  teller.count("a.example", curl);
  teller.count("b.example", own("x"));
  bots.acknowledged({ boot_id: "boot-0", seq: 1 });
  bots.acknowledged({ boot_id: "boot-1", seq: 2 });
  expect(bots.batch()).toBe(first);
  bots.acknowledged(first.id);
  const second = await until("the second batch", () => bots.batch());
  expect([second.id.seq, sum(second.counts)]).toEqual([2, 2]);
  bots.acknowledged(first.id);
  expect(bots.batch()).toBe(second);
  bots.acknowledged(second.id);
  expect(bots.batch()).toBeUndefined();
});

test("workers are summed, those that are replaced included, and the metric knows domains only", async () => {
  const registry = new Registry();
  using bots = open("boot", { registry });
  const entry = new URL("../telling-worker.ts", import.meta.url);
  const start = (requests: number, end: Telling["end"]): Worker => {
    const port = bots.openWorker();
    const workerData: Telling = { port, requests, end };
    return new Worker(entry, { workerData, transferList: [port], execArgv: [] });
  };
  const ended = [start(3, "exit"), start(50, "throw")].map(async (worker) => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    worker.on("error", () => {}); // Thrown on purpose.
    worker.once("exit", resolve);
    await promise;
  });
  const hanging = start(700, "hang");
  await Promise.all(ended);
  const metric = async (): Promise<string> => registry.metrics();
  await until("all counts", async () =>
    (await metric()).includes('accel_agent_unreviewed_bots_total{domain="a.example"} 753'),
  );
  await hanging.terminate();
  expect(bots.batch()?.counts).toEqual([{ domain: "a.example", ...curl, requests: 753 }]);
  expect(await metric()).not.toContain("curl");
});

test("the last counts of all workers outlive the agent: those that have ended, and those that are cut off", async () => {
  using db = openAgentDb(":memory:", "/nowhere");
  {
    using bots = open("boot-1", { db });
    const entry = new URL("../telling-worker.ts", import.meta.url);
    const ended = (["exit", "throw"] as const).map(async (end) => {
      const port = bots.openWorker();
      const workerData: Telling = { port, requests: 25, end };
      const worker = new Worker(entry, { workerData, transferList: [port], execArgv: [] });
      const { promise, resolve } = Promise.withResolvers<unknown>();
      worker.on("error", () => {}); // Thrown on purpose.
      worker.once("exit", resolve);
      await promise;
    });
    await Promise.all(ended);
  }
  using next = open("boot-2", { db });
  expect(next.batch()).toEqual({ id: { boot_id: "boot-2", seq: 1 }, counts: told(50) });
});

test("a batch that may be at central is sent again under its number by the next start, and what was in none under another", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  const first = open("boot-1", { db });
  first.add(told(3));
  const sent = first.batch();
  first.add(told(4));
  first.keep();
  first.add(told(5)); // Lost: the process is killed here.

  const second = open("boot-2", { db });
  expect(second.batch()).toEqual(sent);
  second.acknowledged({ boot_id: "boot-1", seq: 1 });
  expect(second.batch()).toEqual({ id: { boot_id: "boot-2", seq: 1 }, counts: told(4) });
  second.acknowledged({ boot_id: "boot-2", seq: 1 });
  second.keep();
  expect(db.get(keptCountsKey)).toBeUndefined();
  expect(open("boot-3", { db }).batch()).toBeUndefined();
});

/** Central as it adds batches: a number of a start once. */
class Central {
  added = 0;
  readonly #last = new Map<string, number>();

  store({ id, counts }: NonNullable<ReturnType<UnreviewedBots["batch"]>>): void {
    if ((this.#last.get(id.boot_id) ?? 0) >= id.seq) return;
    this.#last.set(id.boot_id, id.seq);
    this.added += sum(counts);
  }
}

test("whatever is killed, stopped, refused by the disk, sent and lost on the way: nothing is added twice, and only a kill loses what was not kept", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("count" as const), requests: fc.integer({ min: 1, max: 9 }) }),
    fc.constantFrom(
      { kind: "keep" as const },
      { kind: "send" as const, arrives: true, answered: true },
      { kind: "send" as const, arrives: true, answered: false },
      { kind: "send" as const, arrives: false, answered: false },
      { kind: "stop" as const },
      { kind: "kill" as const },
      { kind: "disk" as const, free: 0, fails: false },
      { kind: "disk" as const, free: Infinity, fails: true },
      { kind: "disk" as const, free: Infinity, fails: false },
    ),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      using db = openAgentDb(":memory:", "/nowhere");
      const central = new Central();
      const disk = { free: Infinity, fails: false };
      const documents: Pick<AgentDb, "get" | "put"> = {
        get: (key) => db.get(key),
        put: (changes) => {
          if (disk.fails) throw new Error("the disk refuses");
          db.put(changes);
        },
      };
      let boots = 0;
      const start = (): UnreviewedBots => {
        const kept = new KeptCounts(documents, "instance", () => disk.free);
        const [bootId, registry, log] = [`boot-${++boots}`, new Registry(), silentLog()];
        return new UnreviewedBots({ bootId, kept, registry, log });
      };
      let bots = start();
      let counted = 0;
      let unkept = 0;
      let lostMost = 0;
      const sent = new Set<string>();
      const isWell = (): boolean => disk.free > 0 && !disk.fails;
      const send = (arrives: boolean, answered: boolean): void => {
        const batch = bots.batch();
        if (batch !== undefined && arrives) central.store(batch);
        if (batch !== undefined && answered) bots.acknowledged(batch.id);
        // A batch that is sent again is written no more.
        const name = JSON.stringify(batch?.id);
        if (isWell() && batch !== undefined && !sent.has(name)) unkept = 0;
        sent.add(name);
      };
      for (const one of steps) {
        if (one.kind === "count") {
          bots.add(told(one.requests));
          counted += one.requests;
          unkept += one.requests;
        } else if (one.kind === "keep") {
          bots.keep();
          if (isWell()) unkept = 0;
        } else if (one.kind === "send") send(one.arrives, one.answered);
        else if (one.kind === "disk") {
          Object.assign(disk, one);
          // What a full disk has lost, or one that refuses, is not known here.
          if (!isWell()) unkept = Infinity;
        } else {
          if (one.kind === "stop") bots[Symbol.dispose]();
          if (one.kind === "kill" || !isWell()) lostMost += unkept;
          unkept = isWell() ? 0 : Infinity;
          bots = start();
        }
      }
      Object.assign(disk, { free: Infinity, fails: false });
      for (let no = 0; no < 4; no++) send(true, true);
      expect(central.added).toBeLessThanOrEqual(counted);
      expect(counted - central.added).toBeLessThanOrEqual(lostMost);
    }),
    { numRuns: 300 },
  );
});

test("while the disk refuses, what a start would find in no batch is not sent, and what it would not find is", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  let fails = false;
  const documents: Pick<AgentDb, "get" | "put"> = {
    get: (key) => db.get(key),
    put: (changes) => {
      if (fails) throw new Error("the disk refuses");
      db.put(changes);
    },
  };
  const kept = new KeptCounts(documents, "instance", () => Infinity);
  const bots = new UnreviewedBots({
    bootId: "boot-1",
    kept,
    registry: new Registry(),
    log: silentLog(),
  });
  bots.add(told(3));
  bots.keep();
  fails = true;
  expect(bots.batch()).toBeUndefined();
  fails = false;
  const first = bots.batch();
  expect(first).toEqual({ id: { boot_id: "boot-1", seq: 1 }, counts: told(3) });
  bots.acknowledged({ boot_id: "boot-1", seq: 1 });
  fails = true;
  bots.add(told(4));
  expect(bots.batch()).toEqual({ id: { boot_id: "boot-1", seq: 2 }, counts: told(4) });
});

test("counts of another instance are not told: it tells them itself", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  const bots = open("boot-1", { db });
  bots.add(told(3));
  bots.keep();
  const kept = new KeptCounts(db, "the clone", () => Infinity);
  expect(kept.read()).toEqual({ sent: undefined, counts: [] });
  expect(kept.hasCounts).toBe(false);
});

test("on a disk without room nothing is kept, counts are told all the same, and are kept when there is room", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  let free = Infinity;
  const bots = open("boot-1", { db, free: () => free });
  bots.add(told(3));
  bots.keep();
  expect(db.get(keptCountsKey)).toMatchObject({ counts: told(3) });
  free = 0;
  bots.add(told(4));
  bots.keep();
  expect(db.get(keptCountsKey)).toBeUndefined();
  const batch = bots.batch();
  expect(batch?.counts).toEqual(told(7));
  free = Infinity;
  bots.keep();
  expect(db.get(keptCountsKey)).toMatchObject({ sent: batch, counts: [] });
});

test("behind a hand-over: what is told then goes to the successor, what was kept is in the state directory", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  const bots = open("boot-1", { db });
  bots.add(told(3));
  bots[Symbol.dispose]();
  bots.add(told(1));
  const late: unknown[] = [];
  using next = open("boot-2", { db });
  bots.follow((counts) => {
    late.push(counts);
    next.add(counts);
  });
  bots.add(told(2, "Wget"));
  bots.keep();
  expect(late).toEqual([told(1), told(2, "Wget")]);
  expect(next.batch()?.counts).toEqual([...told(4), ...told(2, "Wget")]);
});

test("behind a hand-over on a disk without room all that is not sent goes to the successor", () => {
  using db = openAgentDb(":memory:", "/nowhere");
  const bots = open("boot-1", { db, free: () => 0 });
  bots.add(told(3));
  bots[Symbol.dispose]();
  const late: unknown[] = [];
  bots.follow((counts) => late.push(counts));
  expect(late).toEqual([told(3)]);
});

test("a worker that ends behind a hand-over is waited for", async () => {
  const bots = open("boot-1");
  const port = bots.openWorker();
  bots[Symbol.dispose]();
  const teller = new UnreviewedTeller(port);
  teller.count("a.example", curl);
  const late: unknown[] = [];
  bots.follow((counts) => late.push(counts));
  teller[Symbol.dispose]();
  await bots.complete();
  expect(late).toEqual([told(1)]);
});
