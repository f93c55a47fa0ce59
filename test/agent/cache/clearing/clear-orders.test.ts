// Clears as main gives them: what is told of them, and what agent.db knows before that.

import { expect, test } from "vitest";
import { CacheMetrics } from "../../../../src/agent/cache/cache-metrics.ts";
import { ClearOrders, type ClearOrder } from "../../../../src/agent/cache/clearing/clear-orders.ts";
import type { CallName } from "../../../../src/agent/cache/messages.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { AccelError } from "../../../../src/core/faults.ts";

const order: ClearOrder = {
  clearId: "c",
  seq: 0,
  domain: "a.test",
  host: null,
  patterns: ["path:x"],
};
const applied = { clearNo: 7, matched: 3, widened: false, invisibleMs: 12.3456 };
const gone = { removed: 3, blockedInFlight: 0, goneMs: 1_234.5678, verified: true, left: 0 };

/** Orders to an index thread that answers at once; what agent.db was told, and whether it can be written. */
function ordersOf({ isFull = false, fault }: { isFull?: boolean; fault?: AccelError } = {}) {
  const noted: unknown[] = [];
  const answers: Partial<Record<CallName, object>> = { clear: applied, gone };
  const call = async (name: CallName): Promise<never> => {
    if (fault !== undefined) throw fault;
    return answers[name] as never; // Nothing else is asked for.
  };
  const orders = new ClearOrders({
    call,
    memory: {
      read: () => ({ epoch: null, clearSeq: 0, clearNo: 5, opening: null }),
      note: (changes) => {
        if (isFull) throw new Error("the disk is full");
        noted.push(changes);
      },
    },
    metrics: new CacheMetrics(new Registry()),
    log: silentLog(),
  });
  return { orders, noted };
}

test("a clear and its deletion are told, their times to a tenth of a millisecond", async () => {
  const { orders, noted } = ordersOf();
  const proof = orders.clear(order);
  expect(await proof.applied).toEqual({ ...applied, invisibleMs: 12.3 });
  expect(noted).toEqual([{ clearNo: 7 }]);
  expect(await proof.gone).toEqual({ ...gone, goneMs: 1_234.6 });
});

test("what agent.db knows already it is not told again", async () => {
  const { orders, noted } = ordersOf();
  orders.noteLater(5);
  expect(noted).toEqual([]);
  await orders.clear(order).gone;
  await orders.drop({ domain: "a.test", host: null }, "unlinked");
  orders.noteLater(8);
  orders.noteLater(8);
  expect(noted).toEqual([{ clearNo: 7 }, { clearNo: 8 }]);
});

test("where agent.db cannot be written a clear of this host is none that counts; one of the journal does", async () => {
  const { orders } = ordersOf({ isFull: true });
  const own = orders.clear(order);
  const told = { code: "DISK_FAILED", message: expect.stringContaining("the disk is full") };
  await expect(own.applied).rejects.toMatchObject(told);
  await expect(own.gone).rejects.toMatchObject(told);
  const journaled = orders.clear({ ...order, clearId: "j", seq: 9 });
  expect(await journaled.applied).toMatchObject({ clearNo: 7 });
  await expect(orders.drop({ domain: null, host: null }, "dropped")).rejects.toThrow(
    "disk is full",
  );
});

test("what was refused after a clear was gone is told to whoever listens, each number once and rising", async () => {
  const { orders } = ordersOf();
  const proof = orders.clear(order);
  const late: number[] = [];
  proof.onLate(({ blockedInFlight }) => late.push(blockedInFlight));
  await proof.gone;
  for (const blocked of [0, 2, 2, 1, 3]) orders.refused({ clearId: "c", blocked });
  orders.refused({ clearId: "another", blocked: 9 });
  await proof.gone;
  await Promise.resolve();
  expect(late).toEqual([2, 3]);
});

test("of a clear that was not applied nothing is told later", async () => {
  const { orders, noted } = ordersOf({ fault: new AccelError("PATTERN_INVALID", "no pattern") });
  const proof = orders.clear(order);
  const late: unknown[] = [];
  proof.onLate((told) => late.push(told));
  await expect(proof.applied).rejects.toThrow("no pattern");
  await expect(proof.gone).rejects.toThrow("no pattern");
  orders.refused({ clearId: "c", blocked: 2 });
  await Promise.resolve();
  expect([late, noted]).toEqual([[], []]);
});
