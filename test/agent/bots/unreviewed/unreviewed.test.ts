// Unreviewed bots are counted once each: over workers and their ends, whatever names are made up, and however often a batch is sent.

import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { expect, test } from "vitest";
import { UnreviewedBots } from "../../../../src/agent/bots/unreviewed/unreviewed-bots.ts";
import { UnreviewedCounts } from "../../../../src/agent/bots/unreviewed/unreviewed-counts.ts";
import { UnreviewedTeller } from "../../../../src/agent/bots/unreviewed/unreviewed-teller.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { fakeDescription } from "../../../../src/wire/other-bots.ts";
import { until } from "../../../support/until.ts";
import type { Telling } from "../telling-worker.ts";

const curl = { name: "curl", description: "A tool", isFake: false };
const own = (name: string, isFake = false) => ({ name, description: null, isFake });
const sum = (counts: readonly { readonly requests: number }[]): number =>
  counts.reduce((total, { requests }) => total + requests, 0);

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
  using bots = new UnreviewedBots("boot", new Registry());
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
  using bots = new UnreviewedBots("boot-1", new Registry());
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
  using bots = new UnreviewedBots("boot", registry);
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
