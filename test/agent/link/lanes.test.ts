// Order within a lane, concurrency across lanes, nothing before an earlier `domains.changed`.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Lanes } from "../../../src/agent/link/lanes.ts";
import { domainsLane, laneOf, type KnownEntry } from "../../../src/wire/journal.ts";
import { until } from "../../support/until.ts";

/** Jobs that begin when the lanes let them and end when the test does. */
function harness() {
  const trace: string[] = [];
  const ends = new Map<number, () => void>();
  const superseded: number[] = [];
  const lanes = new Lanes(
    () => undefined,
    () => new Date(),
  );
  const add = (seq: number, lane: string, isState = false, kind = lane): void =>
    lanes.add({
      seq,
      kind,
      lane,
      endedBy: isState ? [kind] : [],
      run: async (signals) => {
        trace.push(`+${seq}`);
        signals.superseded.addEventListener("abort", () => superseded.push(seq));
        if (signals.superseded.aborted) superseded.push(seq);
        const { promise, resolve } = Promise.withResolvers<void>();
        ends.set(seq, resolve);
        signals.stop.addEventListener("abort", () => resolve());
        await promise;
        trace.push(`-${seq}`);
      },
    });
  const end = async (seq: number): Promise<void> => {
    await until(`${seq} begins`, () => ends.has(seq));
    ends.get(seq)?.();
    await until(`${seq} ends`, () => trace.includes(`-${seq}`));
  };
  return { lanes, trace, superseded, add, end };
}

test("a lane is in order while another goes on", async () => {
  const { add, end, trace } = harness();
  add(1, "viewset:a");
  add(2, "viewset:a");
  add(3, "clears");
  await end(3);
  expect(trace).toEqual(["+1", "+3", "-3"]);
  await end(1);
  await end(2);
  expect(trace.slice(3)).toEqual(["-1", "+2", "-2"]);
});

test("nothing overtakes an earlier domains.changed, whatever its lane; later ones wait for nobody else", async () => {
  const { add, end, trace } = harness();
  add(1, domainsLane);
  add(2, "clears");
  add(3, "bots:a:bad");
  add(4, domainsLane);
  await until("the first begins", () => trace.length > 0);
  expect(trace).toEqual(["+1"]);
  await end(1);
  await until("the others begin", () => trace.length === 5);
  expect(trace.slice(2).sort()).toEqual(["+2", "+3", "+4"]);
});

test("a later state of the same kind supersedes, an event does not", async () => {
  const { add, end, superseded } = harness();
  add(1, "viewset:a", true, "viewset.activated");
  add(2, "viewset:a", false, "viewset.import");
  add(3, "viewset:a", true, "viewset.activated");
  add(4, "clears", false, "cache.clear");
  add(5, "clears", false, "cache.clear");
  await end(1);
  await end(2);
  await end(3);
  expect(superseded).toEqual([1]);
});

test("an import holds back no activation of its domain, and comes behind the domains as before", async () => {
  const { lanes, add, end, trace } = harness();
  const lane = (kind: string): string =>
    laneOf({ seq: 1, at: "", kind, body: { domain: "a.example" } } as KnownEntry);
  add(1, domainsLane);
  add(2, lane("viewset.import"), false, "viewset.import");
  add(3, lane("viewset.import"), false, "viewset.import");
  add(4, lane("viewset.activated"), true, "viewset.activated");
  await until("the first begins", () => trace.length > 0);
  expect(trace).toEqual(["+1"]);
  await end(1);
  await end(4);
  expect(trace.filter((one) => one !== "+2")).toEqual(["+1", "-1", "+4", "-4"]);
  await end(2);
  await end(3);
  await until("all is done", () => lanes.size === 0);
});

test("what holds back a head: everything up to it but imports", async () => {
  const { lanes, add, end } = harness();
  add(1, "viewset:a", false, "viewset.import");
  add(5, "clears", false, "cache.clear");
  expect(lanes.holdsBack(4)).toBe(false);
  expect(lanes.holdsBack(5)).toBe(true);
  expect(lanes.holdsBack(5, new Set([5]))).toBe(false);
  await end(5);
  await until("it is done", () => !lanes.holdsBack(5));
  expect(lanes.size).toBe(1);
});

test("abandoned: what runs is told to stop, what waits never begins", async () => {
  const { lanes, add, trace } = harness();
  add(1, "clears");
  add(2, "clears");
  await until("the first begins", () => trace.includes("+1"));
  expect(await lanes.abandon(1_000)).toBe("ended");
  expect(trace).toEqual(["+1", "-1"]);
  expect(lanes.size).toBe(0);
});

test("abandoned: what does not stop is told in time", async () => {
  const lanes = new Lanes(
    () => undefined,
    () => new Date(),
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = false;
  const run = async (): Promise<void> => {
    begun = true;
    await promise;
  };
  lanes.add({ seq: 1, kind: "k", lane: "l", endedBy: [], run });
  await until("it begins", () => begun);
  expect(await lanes.abandon(20)).toBe("still-running");
  resolve();
  expect(await lanes.abandon(1_000)).toBe("ended");
});

test("any mixture: each lane in order and all done", async () => {
  const mixtures = fc.array(fc.constantFrom("a", "b", "clears", domainsLane), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(mixtures, fc.infiniteStream(fc.nat(3)), async (names, waits) => {
      const begun: number[] = [];
      const ended = new Set<number>();
      const lanes = new Lanes(
        () => undefined,
        () => new Date(),
      );
      const pauses = names.map(() => waits.next().value ?? 0);
      names.forEach((lane, seq) =>
        lanes.add({
          seq,
          kind: lane,
          lane,
          endedBy: [],
          run: async () => {
            begun.push(seq);
            for (let before = 0; before < seq; before++)
              if (names[before] === lane || names[before] === domainsLane)
                if (lane !== domainsLane || names[before] === lane)
                  expect(ended.has(before)).toBe(true);
            for (let turn = 0; turn < (pauses[seq] ?? 0); turn++) await Promise.resolve();
            ended.add(seq);
          },
        }),
      );
      while (lanes.size > 0) await new Promise((resolve) => setImmediate(resolve));
      expect(begun.length).toBe(names.length);
    }),
    { numRuns: 50 },
  );
});

test.each([
  ["viewset.activated", { domain: "a.example" }, "viewset:a.example"],
  ["viewset.import", { domain: "a.example" }, "import:a.example"],
  ["cache.clear", { domain: "a.example" }, "clears"],
  ["bots.changed", { domain: "a.example", set: "vip" }, "bots:a.example:vip"],
  ["policy.changed", {}, "policy"],
  ["domains.changed", {}, "domains"],
  ["challenges.changed", { domain: "a.example" }, "challenges:a.example"],
  ["key.changed", {}, "certificates"],
  ["certificate.changed", {}, "certificates"],
])("%s has its lane", (kind, body, lane) => {
  expect(laneOf({ seq: 1, at: "", kind, body } as KnownEntry)).toBe(lane);
});
