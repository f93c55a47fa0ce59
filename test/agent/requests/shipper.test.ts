// The shipper over a real spool (without its thread) and a strict central that misbehaves: prompt, bounded, in order, and it never gives up.

import { setImmediate as nextTurn, setTimeout as sleepFor } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import type { Posted } from "../../../src/agent/requests/ship-plan.ts";
import {
  startShipper,
  type ShippedBatch,
  type Shipper,
} from "../../../src/agent/requests/shipper.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { posted, refused } from "../../support/log-central.ts";
import { SpoolRig } from "../../support/spool-rig.ts";
import { until } from "../../support/until.ts";

type Post = (batch: ShippedBatch, take: () => Posted) => Posted | Promise<Posted>;

class Rig extends SpoolRig implements AsyncDisposable {
  readonly health = new Health(() => new Date(0));
  readonly sent: ShippedBatch[] = [];
  post: Post = (_, take) => take();
  monotonicMs = (): number => performance.now();
  shipper: Shipper | undefined;
  #told = Promise.withResolvers<void>();

  start(): void {
    this.shipper = startShipper({
      spool: {
        facts: () => this.spool.facts(),
        balance: async () => undefined,
        next: async (signal) => {
          if (signal.aborted) return;
          const stopped = Promise.withResolvers<void>();
          signal.addEventListener("abort", () => stopped.resolve(), { once: true });
          await Promise.race([this.#told.promise, stopped.promise]);
        },
        read: async (lane, limits) => this.spool.read(lane, limits),
        confirm: async (lane, mark) => {
          this.spool.confirm(lane, mark);
          this.tell();
        },
        poison: async (lane, seq, why) => this.spool.poison(lane, seq, why),
      },
      post: async (batch) => {
        this.sent.push(batch);
        return this.post(batch, () => this.central.post(batch));
      },
      random: () => 0.1,
      monotonicMs: () => this.monotonicMs(),
      registry: new Registry(),
      health: this.health,
      log: silentLog(),
    });
  }

  tell(): void {
    this.#told.resolve();
    this.#told = Promise.withResolvers();
  }

  async delivered(): Promise<void> {
    await until("everything delivered", () =>
      this.lanes().every(({ mark, durable }) => mark === durable),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shipper?.[Symbol.asyncDispose]();
  }
}

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) {
    rig.post = (_, take) => take();
    await rig[Symbol.asyncDispose]();
  }
});
function newRig(): Rig {
  const rig = new Rig();
  rigs.push(rig);
  return rig;
}

test("a fresh record leaves within a second, and what comes in that time with it", async () => {
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
  expect(performance.now() - began).toBeLessThan(1_500);
  expect(rig.sent).toHaveLength(1);
  rig.judge();
});

test("a full batch does not wait", async () => {
  const rig = newRig();
  const worker = rig.worker();
  for (let i = 0; i < 5; i++) rig.write(worker, 1_000);
  rig.start();
  const began = performance.now();
  await rig.delivered();
  expect(performance.now() - began).toBeLessThan(450);
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

test("old lanes drain one after the other, live ones beside; four batches at most, one a lane", async () => {
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

test("one old lane that central refuses does not hold up the others", async () => {
  const rig = newRig();
  for (let i = 0; i < 3; i++) {
    rig.write(rig.worker(), 3);
    rig.restart();
  }
  rig.post = ({ lane }, take) => (lane === "0000000000000001/1" ? posted(500, undefined) : take());
  rig.start();
  await until("the two others", () => rig.central.records().length === 6);
});

test("the last flush sends what is there, and is bounded when central is away", async () => {
  const rig = newRig();
  rig.write(rig.worker(), 3);
  rig.start();
  expect(await rig.shipper?.flush(1_000)).toBe(true);
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
