// The balance of each lane as a metric and as facts: complete, and gone with the lane.

import { expect, test } from "vitest";
import {
  describeLogs,
  LaneMetrics,
  summarizeLogs,
} from "../../../../src/agent/requests/ship/lane-metrics.ts";
import { exposeMetrics, Registry } from "../../../../src/base/metrics.ts";
import { SpoolRig } from "../../../support/spool-rig.ts";

const firstLane = "0000000000000001/1";

async function exposed(rig: SpoolRig, metrics: LaneMetrics, registry: Registry) {
  metrics.refresh(rig.spool.facts(), "moving");
  const text = await exposeMetrics([await registry.getMetricsAsJSON()]);
  const series = text.matchAll(
    /^accel_agent_log_lane_records\{lane="([^"]+)",state="([a-z_]+)"\} (\d+)$/gm,
  );
  return {
    text,
    lanes: Map.groupBy(
      [...series].map(([, lane, state, count]) => ({ lane, state, count: Number(count) })),
      ({ lane }) => lane,
    ),
  };
}

test("each lane's series are its balance, and vanish with it", async () => {
  const rig = new SpoolRig();
  const registry = new Registry();
  const metrics = new LaneMetrics(registry);
  const worker = rig.worker();
  rig.write(worker, 10);
  worker.drop(3);
  rig.ship(firstLane, { recordsMax: 4 });
  worker.accept(2);
  rig.spool.sync();
  const { lanes, text } = await exposed(rig, metrics, registry);
  expect([...lanes.keys()]).toEqual([firstLane]);
  const states = Object.fromEntries(
    (lanes.get(firstLane) ?? []).map(({ state, count }) => [state, count]),
  );
  expect(states).toEqual({
    accepted: 15,
    committed: 4,
    spooled: 6,
    in_memory: 2,
    dropped: 3,
    unproven: 0,
    unknown: 0,
  });
  expect(text).toContain("accel_agent_log_shipping_stuck 0");

  rig.restart();
  rig.worker();
  rig.drain();
  rig.spool.persist();
  const after = await exposed(rig, metrics, registry);
  expect([...after.lanes.keys()]).toEqual(["0000000000000002/1"]);
});

test("a lane is in flight from when a batch is read until central has answered", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  const inFlight = (): readonly boolean[] => rig.lanes().map((lane) => lane.inFlight);
  expect(inFlight()).toEqual([false]);
  rig.write(worker, 10);
  expect(inFlight()).toEqual([false]);
  rig.ship(firstLane, { recordsMax: 4, answered: false });
  expect(inFlight()).toEqual([true]);
  rig.ship(firstLane, { recordsMax: 4 });
  expect(inFlight()).toEqual([false]);
  rig.drain();
  expect(inFlight()).toEqual([false]);
});

test("facts name the age of the oldest record, what is in flight, and what central said", () => {
  const rig = new SpoolRig();
  const worker = rig.worker();
  rig.write(worker, 10);
  rig.nowMs += 7_000;
  rig.ship(firstLane, { recordsMax: 4, answered: false });
  const shipper = {
    state: "stuck" as const,
    answer: (lane: string) =>
      lane === firstLane
        ? { outcome: "wait", why: "503: full", at: "2031-05-06T07:08:10.000Z" }
        : undefined,
  };
  expect(describeLogs(rig.spool.facts(), shipper, { ageS: 61.6, roundTripS: 0.2 })).toMatchObject({
    accepted: 10,
    spooled: 10,
    oldest_s: 7,
    shipping: "stuck",
    canary_age_s: 62,
    canary_round_trip_ms: 200,
    lanes_total: 1,
    lanes: [
      {
        lane: firstLane,
        live: true,
        in_flight: true,
        oldest_s: 7,
        answer: "503: full",
        answered_at: "2031-05-06T07:08:10.000Z",
      },
    ],
  });
  const facts = describeLogs(rig.spool.facts(), shipper, undefined);
  expect(facts.canary_age_s).toBeNull();
  expect(facts.canary_round_trip_ms).toBeNull();
  expect(summarizeLogs(facts)).toMatchObject({
    accepted: 10,
    lanes: {
      [firstLane]: expect.stringMatching(
        /^live, in flight: 10 spooled, 0 in memory, 0 committed, 0 dropped; \d+ bytes, oldest 7 s; 503: full$/,
      ),
    },
  });
});

test("what a crash may have taken stands beside the sums, in all and of the lane", () => {
  const rig = new SpoolRig();
  rig.write(rig.worker(), 10);
  const shipper = { state: "moving" as const, answer: () => undefined };
  const before = describeLogs(rig.spool.facts(), shipper, undefined);
  expect([before.unproven, before.lanes[0]?.unproven]).toEqual([0, 0]);
  rig.crash("kill");
  const facts = describeLogs(rig.spool.facts(), shipper, undefined);
  const [lane] = facts.lanes;
  expect(facts).toMatchObject({ accepted: 10, dropped: {} });
  expect(facts.unproven).toBeGreaterThan(0);
  expect(lane).toMatchObject({ lane: firstLane, accepted: 10, unproven: facts.unproven });
  expect(Object(summarizeLogs(facts)).lanes[firstLane]).toContain(
    `, 0 dropped, at most ${facts.unproven} more lost;`,
  );
});
