// The shipper over a real spool (without its thread) and a strict central that misbehaves: prompt, bounded, in order, and it never gives up.

import { setImmediate as nextTurn, setTimeout as sleepFor } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { AccelError } from "../../../../src/core/faults.ts";
import { posted, refused } from "../../../support/log-central.ts";
import { ShipRig, type Post } from "../../../support/ship-rig.ts";
import { until } from "../../../support/until.ts";

const rigs: ShipRig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) {
    rig.post = (_, take) => take();
    await rig[Symbol.asyncDispose]();
  }
});
function newRig(): ShipRig {
  const rig = new ShipRig();
  rigs.push(rig);
  return rig;
}

test("a fresh record leaves soon, and what comes in that time with it", async () => {
  const rig = newRig();
  const worker = rig.worker();
  rig.start();
  rig.write(worker, 1);
  rig.tell();
  const began = performance.now();
  await nextTurn();
  for (let i = 0; i < 5; i++) rig.write(worker, 1);
  rig.tell();
  await rig.delivered();
  expect(performance.now() - began).toBeLessThan(10_000);
  expect(rig.sent).toHaveLength(1);
  rig.judge();
});

// Time is real here, and others may take it all: once in a few tries there is enough.
test("a full batch does not wait, as a part of one does", { retry: 4 }, async () => {
  const [rig, other] = [newRig(), newRig()];
  const worker = rig.worker();
  for (let i = 0; i < 5; i++) rig.write(worker, 1_000);
  other.write(other.worker(), 1);
  other.start();
  rig.start();
  await until("the first batch", () => rig.sent.length > 0);
  expect(other.sent).toEqual([]);
  await rig.delivered();
  expect(rig.sent.map(({ firstSeq, lastSeq }) => [firstSeq, lastSeq])).toEqual([
    [1, 2_000],
    [2_001, 4_000],
    [4_001, 5_000],
  ]);
});

describe("central in trouble", () => {
  const network = (): never => {
    throw new AccelError("CENTRAL_UNREACHABLE", "made by a test");
  };

  test("whatever it answers, in the end everything is there once", async () => {
    const rig = newRig();
    const [one, two] = [rig.worker(), rig.worker()];
    for (let i = 0; i < 3; i++) {
      rig.write(one, 1_000);
      rig.write(two, 700);
    }
    const troubles: Post[] = [
      network,
      (_, take) => (take(), network()), // Committed, and the answer lost.
      () => refused(401, "expired_token"),
      () => posted(500, undefined),
      () => posted(502, "<html>"),
      (_, take) => take(),
      (_, take) => (take(), posted(503, undefined)),
      () => refused(429, "too_many"),
    ];
    let no = 0;
    rig.post = (batch, take) => (troubles[no++] ?? ((_, ask) => ask()))(batch, take);
    rig.start();
    await rig.delivered();
    rig.judge();
    expect(rig.central.records()).toHaveLength(5_100);
    expect(rig.central.gaps()).toEqual([]);
    expect(rig.spool.facts().balance).toMatchObject({ accepted: 5_100, committed: 5_100 });
  });

  test("Retry-After is obeyed", async () => {
    const rig = newRig();
    rig.write(rig.worker(), 2_000);
    const times: number[] = [];
    rig.post = (_, take) => {
      times.push(performance.now());
      return times.length === 1 ? posted(429, undefined, 400) : take();
    };
    rig.start();
    await rig.delivered();
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(395);
  });

  test("a poison record is found among the others without delay", async () => {
    const rig = newRig();
    const worker = rig.worker();
    rig.write(worker, 1_000);
    rig.write(worker, 1_000);
    rig.central.isPoison = ({ connection }) => connection === 1_234;
    rig.start();
    await rig.delivered();
    rig.judge();
    expect(rig.central.gaps()).toEqual([{ from: 1_234, to: 1_234, reason: "poison" }]);
    expect(rig.sent.length).toBeLessThan(40);
  });

  test("a central that changes its mind about the mark is not asked in a tight loop", async () => {
    const rig = newRig();
    rig.write(rig.worker(), 2_000);
    let times = 0;
    rig.post = (_, take) => {
      times++;
      return times <= 8 ? refused(409, "conflict", 100 * (times % 2) + 7) : take();
    };
    rig.start();
    const began = performance.now();
    await until("an accepted batch", () => times > 8);
    expect(performance.now() - began).toBeGreaterThan(20);
  });

  test("for more than a minute is a warning of health, settled by the next success", async () => {
    const rig = newRig();
    rig.write(rig.worker(), 2_000);
    let isAway = true;
    rig.post = (_, take) => (isAway ? network() : take());
    rig.start();
    await until("a failure", () => rig.sent.length > 0);
    rig.monotonicMs = () => performance.now() + 61_000;
    await until("the warning", () => rig.health.list().length > 0);
    expect(rig.health.list().map(({ code }) => code)).toEqual(["logs_not_shipped"]);
    isAway = false;
    await rig.delivered();
    await until("settled", () => rig.health.list().length === 0);
  });
});

describe("an encoding that is refused", () => {
  test("another one is used until the end, and nothing is set aside for it", async () => {
    const rig = newRig();
    const [one, two] = [rig.worker(), rig.worker()];
    for (const worker of [one, two]) for (let i = 0; i < 4; i++) rig.write(worker, 1_000);
    rig.central.encodings = new Set(["gzip", "identity"]);
    rig.start();
    await rig.delivered();
    rig.judge();
    expect(rig.central.records()).toHaveLength(8_000);
    expect(rig.central.gaps()).toEqual([]);
    const used = rig.sent.map(({ encoding }) => encoding);
    expect(used.slice(used.indexOf("gzip")).filter((one) => one === "identity")).toEqual([]);
    expect(used.filter((each) => each === "zstd").length).toBeLessThanOrEqual(2);
    expect(used.filter((each) => each === "gzip")).toHaveLength(4);
  });

  test("by central altogether: sent as it is; refused even so, it is kept and told", async () => {
    const rig = newRig();
    rig.write(rig.worker(), 2_000);
    rig.central.encodings = new Set();
    rig.start();
    await until("as it is", () => rig.sent.filter((one) => one.encoding === "identity").length > 1);
    expect(rig.sent.map(({ encoding }) => encoding).slice(0, 3)).toEqual([
      "zstd",
      "gzip",
      "identity",
    ]);
    expect(rig.central.gaps()).toEqual([]);
    rig.central.encodings = new Set(["identity"]);
    await rig.delivered();
    expect(rig.central.records()).toHaveLength(2_000);
  });
});

test("a peer that takes batches and never answers is told as one that is away", async () => {
  const rig = newRig();
  rig.write(rig.worker(), 2_000);
  const hung = Promise.withResolvers<never>();
  rig.post = () => hung.promise;
  rig.start();
  await until("the backlog noticed", () => rig.shipper?.state === "moving");
  rig.monotonicMs = () => performance.now() + 61_000;
  await until("the warning", () => rig.health.list().length > 0);
  expect(rig.shipper?.state).toBe("stuck");
  expect(rig.sent).toHaveLength(1);
  rig.post = (_, take) => take();
  hung.reject(new AccelError("CENTRAL_UNREACHABLE", "made by a test"));
  await rig.delivered();
  await until("settled", () => rig.health.list().length === 0);
});

test("a committed canary is told by its time, after all that came before it", async () => {
  const rig = newRig();
  const worker = rig.worker();
  rig.write(worker, 3);
  const line = Buffer.from('{"canary":{"at":1700000000.125}}\n');
  rig.spool.receive(worker.feed, { type: "group", firstSeq: 4, count: 1, payload: line });
  rig.spool.sync();
  rig.start();
  await until("the canary", () => rig.canaries.length > 0);
  expect(rig.canaries).toEqual([1_700_000_000.125]);
  expect(rig.central.records()).toHaveLength(3);
  const [lane] = rig.central.lanes.values();
  expect([...(lane?.canaries ?? [])]).toEqual([[4, 1_700_000_000.125]]);
  const [facts] = rig.lanes();
  expect(rig.shipper?.answer(facts?.lane ?? "")).toMatchObject({ outcome: "committed" });
});

test("old lanes drain, live ones beside; four batches at most, one a lane", async () => {
  const rig = newRig();
  for (let i = 0; i < 6; i++) {
    rig.write(rig.worker(), 30);
    rig.restart();
  }
  const live = Array.from({ length: 6 }, () => rig.worker());
  for (const worker of live) {
    rig.write(worker, 1_000);
    rig.write(worker, 1_000);
  }
  const inFlight: string[] = [];
  let most = 0;
  const gate = Promise.withResolvers<void>();
  rig.post = async ({ lane }, take) => {
    expect(inFlight).not.toContain(lane);
    inFlight.push(lane);
    most = Math.max(most, inFlight.length);
    if (inFlight.length === 4) gate.resolve();
    await gate.promise;
    await nextTurn();
    inFlight.splice(inFlight.indexOf(lane), 1);
    return take();
  };
  rig.start();
  await rig.delivered();
  rig.judge();
  expect(most).toBe(4);
  expect(rig.central.records()).toHaveLength(12_180);
});

test("two old lanes drain at a time, so that one is read while the other is committed", async () => {
  const rig = newRig();
  for (let i = 0; i < 4; i++) {
    rig.write(rig.worker(), 30);
    rig.restart();
  }
  const gate = Promise.withResolvers<void>();
  rig.post = async (_, take) => {
    await gate.promise;
    return take();
  };
  rig.start();
  await until("two on their way", () => rig.sent.length === 2);
  await nextTurn();
  expect(rig.sent.map(({ lane }) => lane)).toEqual(["0000000000000001/1", "0000000000000002/1"]);
  gate.resolve();
  await rig.delivered();
  rig.judge();
  expect(rig.central.records()).toHaveLength(120);
});

test("one old lane that central refuses does not hold up the others", async () => {
  const rig = newRig();
  for (let i = 0; i < 3; i++) {
    rig.write(rig.worker(), 3);
    rig.restart();
  }
  rig.post = ({ lane }, take) => (lane === "0000000000000001/1" ? posted(500, undefined) : take());
  rig.start();
  await until("the two others", () => rig.central.records().length >= 6);
  expect(rig.central.records()).toHaveLength(6);
});

test("after its end nothing is sent, however much is left", async () => {
  const rig = newRig();
  const worker = rig.worker();
  rig.write(worker, 3);
  rig.post = async () => {
    await sleepFor(5);
    throw new AccelError("CENTRAL_UNREACHABLE", "made by a test");
  };
  rig.start();
  await rig.shipper?.[Symbol.asyncDispose]();
  const { length } = rig.sent;
  expect(length).toBeGreaterThan(0);
  rig.write(worker, 3);
  rig.tell();
  await nextTurn();
  expect(rig.sent).toHaveLength(length);
  expect(rig.central.records()).toEqual([]);
});

test("the last flush sends what is there, and is bounded when central is away", async () => {
  const rig = newRig();
  rig.write(rig.worker(), 3);
  rig.start();
  expect(await rig.shipper?.flush(60_000)).toBe(true);
  expect(rig.central.records()).toHaveLength(3);
  const away = newRig();
  away.write(away.worker(), 3);
  away.post = async () => {
    await sleepFor(5);
    throw new AccelError("CENTRAL_UNREACHABLE", "made by a test");
  };
  away.start();
  expect(await away.shipper?.flush(100)).toBe(false);
});
