// Purges of several agents become few clears, and none is forgotten.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  changedMs,
  clearsASecondMax,
  joinMs,
  PurgeOrders,
} from "../../../src/central/agents/purge-orders.ts";
import { itemKeys, type PurgeItems } from "../../../src/core/purge/purge-items.ts";

type Written = { readonly atMs: number; readonly items: PurgeItems };

/** Orders with a clock that the test moves. */
class Rig {
  readonly written: Written[] = [];
  nowMs = 0;
  fails = false;
  #timers: { readonly atMs: number; readonly call: () => void }[] = [];
  readonly orders = new PurgeOrders<string>({
    write: async (_target, items) => {
      if (this.fails) throw new Error("the disk is full");
      this.written.push({ atMs: this.nowMs, items });
    },
    monotonicMs: () => this.nowMs,
    after: (ms, call) => {
      const timer = { atMs: this.nowMs + ms, call };
      this.#timers.push(timer);
      const left = (): void => {
        this.#timers = this.#timers.filter((one) => one !== timer);
      };
      return { [Symbol.dispose]: left };
    },
    count: () => {},
  });

  #agents = 0;

  /** Without `agent` each order is of an agent of its own. */
  async order(
    items: PurgeItems,
    { key = "www.example.com", agent = `agent ${this.#agents++}` } = {},
  ): Promise<void> {
    return this.orders.order(key, key, items, agent);
  }

  async moveTo(ms: number): Promise<void> {
    for (;;) {
      const [next] = this.#timers.toSorted((one, other) => one.atMs - other.atMs);
      if (next === undefined || next.atMs > ms) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.call();
      await settled();
    }
    this.nowMs = ms;
  }
}

const settled = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("the first is written at once; the same of four other agents is one more, two seconds later", async () => {
  const rig = new Rig();
  const items = { urls: ["/a"] };
  await rig.order(items);
  const joined = [100, 300, 700, 900].map(async (ms) => {
    await rig.moveTo(ms);
    await rig.order(items);
  });
  await rig.moveTo(joinMs - 1);
  expect(rig.written).toEqual([{ atMs: 0, items }]);
  await rig.moveTo(joinMs);
  await Promise.all(joined);
  expect(rig.written).toEqual([
    { atMs: 0, items },
    { atMs: joinMs, items },
  ]);
  await rig.moveTo(3 * joinMs);
  expect(rig.written).toHaveLength(2);
});

test.each([
  ["half a second after the order before", 250, changedMs],
  ["at once where that is over", 550, 550],
  ["at once where that is over", 1_900, 1_900],
])("what one agent tells again is ordered %s: after %i ms at %i ms", async (_when, ms, atMs) => {
  const rig = new Rig();
  const items = { urls: ["/a"] };
  await rig.order(items, { agent: "first" });
  await rig.moveTo(ms);
  const again = rig.order(items, { agent: "first" });
  await rig.moveTo(joinMs);
  await again;
  expect(rig.written).toEqual([
    { atMs: 0, items },
    { atMs, items },
  ]);
});

test("a page that changes twice is cleared twice soon, although three agents tell of each change", async () => {
  const rig = new Rig();
  const items = { urls: ["/a"] };
  const all: Promise<void>[] = [];
  for (const pageMs of [0, 900, 2_600])
    for (const [no, agent] of ["first", "second", "third"].entries()) {
      await rig.moveTo(pageMs + 50 * no);
      all.push(rig.order(items, { agent }));
    }
  await rig.moveTo(4 * joinMs);
  await Promise.all(all);
  const times = rig.written.map(({ atMs }) => atMs);
  for (const pageMs of [0, 900, 2_600])
    expect(times.some((atMs) => atMs >= pageMs && atMs <= pageMs + changedMs)).toBe(true);
  expect(times.length).toBeLessThanOrEqual(6);
});

test("one agent that tells without end has two clears a second, and never one of everything", async () => {
  const rig = new Rig();
  const all: Promise<void>[] = [];
  for (let ms = 0; ms < 10_000; ms += 100) {
    await rig.moveTo(ms);
    all.push(rig.order({ urls: ["/a"] }, { agent: "first" }));
  }
  await rig.moveTo(20_000);
  await Promise.all(all);
  expect(rig.written.length).toBeLessThanOrEqual(21);
  expect(rig.written.every(({ items }) => items.everything === undefined)).toBe(true);
});

test("what is new in a message does not wait for what is repeated", async () => {
  const rig = new Rig();
  await rig.order({ tags: ["a"] });
  rig.nowMs = 500;
  const both = rig.order({ tags: ["a", "b"] });
  await settled();
  expect(rig.written.map(({ items }) => items)).toEqual([{ tags: ["a"] }, { tags: ["b"] }]);
  await rig.moveTo(joinMs);
  await both;
  expect(rig.written.at(-1)).toEqual({ atMs: joinMs, items: { tags: ["a"] } });
});

test("beyond twenty a second they are one of everything", async () => {
  const rig = new Rig();
  const all = Array.from({ length: 200 }, async (_, no) => rig.order({ urls: [`/${no}`] }));
  await settled();
  expect(rig.written).toHaveLength(clearsASecondMax);
  await rig.moveTo(1_000);
  await Promise.all(all);
  expect(rig.written).toHaveLength(clearsASecondMax + 1);
  expect(rig.written.at(-1)).toEqual({ atMs: 1_000, items: { everything: true } });
});

test("domains do not wait for each other", async () => {
  const rig = new Rig();
  const one = Array.from({ length: 30 }, async (_, no) => rig.order({ urls: [`/${no}`] }));
  await rig.order({ urls: ["/a"] }, { key: "www.example.org" });
  expect(rig.written.at(-1)).toMatchObject({ items: { urls: ["/a"] } });
  await rig.moveTo(1_000);
  await Promise.all(one);
});

test("what could not be written is told, and is new when it comes again", async () => {
  const rig = new Rig();
  rig.fails = true;
  await expect(rig.order({ urls: ["/a"] })).rejects.toThrow("the disk is full");
  rig.fails = false;
  await rig.order({ urls: ["/a"] });
  expect(rig.written).toHaveLength(1);
});

test("whatever comes when: each is cleared after it came, before its answer, with at most 21 clears in a second", async () => {
  const step = fc.record({
    waitMs: fc.integer({ min: 0, max: 400 }),
    urls: fc.uniqueArray(fc.constantFrom("/a", "/b", "/c", "/d"), { minLength: 1 }),
    count: fc.integer({ min: 1, max: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
      const rig = new Rig();
      const answers: Promise<void>[] = [];
      let no = 0;
      for (const { waitMs, urls, count } of steps) {
        await rig.moveTo(rig.nowMs + waitMs);
        for (let time = 0; time < count; time++) {
          const cameMs = rig.nowMs;
          const before = rig.written.length;
          const items = { urls: [...urls, ...(time % 2 === 1 ? [`/new-${no++}`] : [])] };
          const told = async (): Promise<void> => {
            await rig.order(items, time % 3 === 0 ? {} : { agent: "the same" });
            const clears = rig.written.slice(before).map((one) => one.items);
            const isAll = clears.some(({ everything }) => everything === true);
            const since = clears.flatMap(itemKeys);
            expect(isAll || itemKeys(items).every((key) => since.includes(key))).toBe(true);
            expect(rig.nowMs - cameMs).toBeLessThanOrEqual(joinMs + 1_000);
          };
          answers.push(told());
        }
        await settled();
      }
      await rig.moveTo(rig.nowMs + joinMs + 2_000);
      await Promise.all(answers);
      const { written } = rig;
      for (const { atMs } of written) {
        const near = written.filter((one) => one.atMs > atMs - 1_000 && one.atMs <= atMs);
        expect(near.length).toBeLessThanOrEqual(clearsASecondMax);
      }
    }),
    { numRuns: 100 },
  );
});
