// Purges on this host: joined into few clears, in force before the answer, and queued for central.

import { expect, test } from "vitest";
import type { ClearOrder } from "../../../src/agent/cache/clearing/clear-orders.ts";
import type { ClearApplied, ClearGone } from "../../../src/agent/cache/clearing/clears.ts";
import { Purges } from "../../../src/agent/steering/purges.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { AccelError } from "../../../src/core/faults.ts";
import type { PurgeItems, PurgeScope } from "../../../src/core/purge/purge-items.ts";
import { stateOf } from "../accelerator/edge.ts";

const scope: PurgeScope = { domain: "www.example.com", host: null };
const gone: ClearGone = { removed: 0, blockedInFlight: 0, goneMs: 0, verified: true, left: 0 };

type Asked = ClearOrder & { readonly applied: PromiseWithResolvers<ClearApplied> };

class Rig {
  readonly asked: Asked[] = [];
  readonly queued: PurgeItems[] = [];
  readonly logged: unknown[] = [];
  queueFails = false;
  readonly purges = new Purges({
    index: {
      clear: (order) => {
        const applied = Promise.withResolvers<ClearApplied>();
        this.asked.push({ ...order, applied });
        return {
          applied: applied.promise,
          gone: applied.promise.then(() => gone),
          onLate: () => {},
        };
      },
    },
    serving: () => {
      const state = stateOf(1, {});
      return { state, giveClear: async (give) => give(state) };
    },
    queue: {
      add: (_scope, items) => {
        if (this.queueFails) throw new AccelError("DISK_FAILED", "the disk is full");
        this.queued.push(items);
      },
    },
    registry: new Registry(),
    log: Object.assign(silentLog(), { info: (facts: unknown) => void this.logged.push(facts) }),
  });

  apply(at: number): void {
    const applied = { clearNo: at + 1, matched: 2, widened: false, invisibleMs: 1 };
    this.asked[at]?.applied.resolve(applied);
  }
}

const settled = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("what comes while a clear is under way is the next one", async () => {
  const rig = new Rig();
  const purge = async (path: string) => rig.purges.clear([{ scope, items: { urls: [path] } }]);
  const first = purge("/a");
  const more = [purge("/b"), purge("/c"), purge("/b")];
  await settled();
  expect(rig.asked).toHaveLength(1);
  expect(rig.queued).toEqual([]);
  rig.apply(0);
  expect(await first).toMatchObject({ kind: "cleared", matched: 2 });
  expect(rig.queued).toEqual([{ urls: ["/a"] }]);
  expect(rig.asked).toHaveLength(2);
  rig.apply(1);
  const ids = (await Promise.all(more)).map((one) => (one.kind === "cleared" ? one.ids[0] : one));
  expect(new Set(ids)).toEqual(new Set([rig.asked[1]?.clearId]));
  expect(rig.queued[1]).toEqual({ urls: ["/b", "/c"] });
  expect(rig.asked[1]).toMatchObject({
    domain: scope.domain,
    host: null,
    seq: 0,
    groups: [{ host: null, patterns: ["url:z2fb", "url:z2fc"] }],
  });
});

test("the log names the host that was cleared", async () => {
  const rig = new Rig();
  const host = "www.example.com";
  const one = rig.purges.clear([{ scope, items: { urls: [`https://${host}/a`] } }]);
  await settled();
  rig.apply(0);
  await one;
  expect(rig.asked[0]).toMatchObject({ host });
  expect(rig.logged).toMatchObject([{ host, requests: 1, items: 1, matched: 2 }]);
});

test("a clear that failed, or cannot be queued, is told and not answered as done", async () => {
  const rig = new Rig();
  const failing = rig.purges.clear([{ scope, items: { urls: ["/a"] } }]);
  await settled();
  rig.asked[0]?.applied.reject(new AccelError("INDEX_BROKEN", "the index is broken"));
  expect(await failing).toEqual({ kind: "failed", message: "the index is broken" });
  expect(rig.queued).toEqual([]);
  rig.queueFails = true;
  const unqueued = rig.purges.clear([{ scope, items: { urls: ["/a"] } }]);
  await settled();
  rig.apply(1);
  expect(await unqueued).toEqual({ kind: "failed", message: "the disk is full" });
});

test("what cannot be meant is refused before anything is cleared", async () => {
  const rig = new Rig();
  const outcome = await rig.purges.clear([{ scope, items: { urls: ["/a", "/b/../c"] } }]);
  expect(outcome).toMatchObject({ kind: "refused", message: expect.stringContaining("/b/../c") });
  expect(rig.asked).toEqual([]);
});

test("everything is everything of the scope", async () => {
  const rig = new Rig();
  const all = rig.purges.clear([{ scope, items: { everything: true } }]);
  await settled();
  rig.apply(0);
  await all;
  expect(rig.asked[0]).toMatchObject({ host: null, patterns: ["kind:static OR kind:generated"] });
  expect(rig.queued).toEqual([{ everything: true }]);
});

test("a soft purge is a soft clear, and is one like the others where it is joined with them", async () => {
  const rig = new Rig();
  const purge = async (items: PurgeItems) => rig.purges.clear([{ scope, items }]);
  const first = purge({ tags: ["a"], soft: true });
  const more = [purge({ tags: ["b"], soft: true }), purge({ tags: ["c"] })];
  await settled();
  expect(rig.asked).toMatchObject([{ isSoft: true }]);
  rig.apply(0);
  await first;
  await settled();
  expect(rig.asked[1]).toMatchObject({ isSoft: false });
  rig.apply(1);
  await Promise.all(more);
  expect(rig.queued).toEqual([{ tags: ["a"], soft: true }, { tags: ["b", "c"] }]);
});
