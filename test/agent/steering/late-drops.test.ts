// Dropping domain after domain: each is unsure until its turn, none is forgotten, whatever ends in between.

import { expect, test } from "vitest";
import { LateDrops, type LateDropsDeps } from "../../../src/agent/steering/late-drops.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { Json } from "../../../src/core/journal/canonical-json.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { until } from "../../support/until.ts";

const key = "late_drops";
const hourMs = 3_600_000;

/** `documents` outlives a start. */
function setUp(documents: Map<string, unknown>, spreadMs: number) {
  const dropped: string[] = [];
  let unsure: readonly string[] = [];
  let nowMs = 0;
  const faults: unknown[] = [];
  const health = new Health(() => new Date(nowMs));
  const warnings = () => health.list().map(({ code, text }) => ({ code, text }));
  const deps: LateDropsDeps = {
    documents: {
      get: (name) => documents.get(name),
      put: (changes: Readonly<Record<string, Json | null>>) => {
        for (const [name, value] of Object.entries(changes))
          if (value === null) documents.delete(name);
          else documents.set(name, value);
      },
    },
    index: {
      dropDomain: async (domain) => {
        const fault = faults.shift();
        if (fault === "never") return new Promise(() => undefined);
        if (fault !== undefined) throw fault;
        dropped.push(domain);
        return { removed: 0 };
      },
      setUnsure: (domains) => (unsure = domains),
    },
    random: Math.random,
    now: () => new Date(nowMs),
    spreadMs,
    log: silentLog(),
    health,
  };
  const advance = (ms: number): void => void (nowMs += ms);
  return { deps, dropped, faults, advance, warnings, unsure: () => [...unsure].sort() };
}

test("each has its turn, and is sure from then on", async () => {
  const documents = new Map<string, unknown>();
  const { deps, dropped, unsure, warnings } = setUp(documents, 40);
  await using drops = new LateDrops(deps);
  expect([drops.until, warnings()]).toEqual([null, []]);
  drops.plan(["a.test", "b.test", "c.test"]);
  expect(drops.until).toBe("1970-01-01T00:00:00.040Z");
  expect(warnings()).toEqual([
    {
      code: "cache_to_be_dropped",
      text: expect.stringMatching(
        /a\.test, b\.test, c\.test is dropped by 1970-01-01T00:00:00\.040Z;/,
      ),
    },
  ]);
  expect(unsure()).toEqual(["a.test", "b.test", "c.test"]);
  expect(documents.get(key)).toMatchObject({ domains: ["a.test", "b.test", "c.test"] });
  await until("all are dropped", () => drops.left.length === 0);
  expect([...dropped].sort()).toEqual(["a.test", "b.test", "c.test"]);
  expect(unsure()).toEqual([]);
  expect(documents.has(key)).toBe(false);
  expect([drops.until, warnings()]).toEqual([null, []]);
});

test("the warning names ten domains and counts the others, also after a start", async () => {
  const documents = new Map<string, unknown>();
  const domains = Array.from({ length: 12 }, (_, at) => `d${at}.test`);
  {
    await using drops = new LateDrops(setUp(documents, hourMs).deps);
    drops.plan(domains);
  }
  const { deps, warnings } = setUp(documents, hourMs);
  await using _ = new LateDrops(deps);
  expect(warnings().map(({ text }) => text)).toEqual([
    expect.stringContaining("d8.test, d9.test and 2 more is dropped by 1970-01-01T01:00:00.000Z"),
  ]);
});

test("an end before their turn: the next start goes on, within the time that is left", async () => {
  const documents = new Map<string, unknown>();
  const first = setUp(documents, hourMs);
  {
    await using drops = new LateDrops(first.deps);
    drops.plan(["a.test", "b.test"]);
  }
  expect(first.dropped).toEqual([]);
  const second = setUp(documents, hourMs);
  second.advance(hourMs); // Their time is over.
  await using drops = new LateDrops(second.deps);
  expect(second.unsure()).toEqual(["a.test", "b.test"]);
  await until("all are dropped", () => drops.left.length === 0);
  expect([...second.dropped].sort()).toEqual(["a.test", "b.test"]);
});

test("another plan takes in what is left of the one before", async () => {
  const documents = new Map<string, unknown>();
  const { deps, unsure } = setUp(documents, hourMs);
  await using drops = new LateDrops(deps);
  drops.plan(["a.test", "b.test"]);
  drops.plan(["b.test", "c.test"]);
  expect(unsure()).toEqual(["a.test", "b.test", "c.test"]);
  expect(documents.get(key)).toMatchObject({ domains: ["a.test", "b.test", "c.test"] });
});

test("a drop that fails is tried again, its domain unsure until then", async () => {
  const { deps, dropped, faults, unsure } = setUp(new Map(), 0);
  faults.push(new AccelError("INDEX_BROKEN", "gone"));
  await using drops = new LateDrops({ ...deps, random: () => 0 });
  drops.plan(["a.test"]);
  expect(unsure()).toEqual(["a.test"]);
  await until("it is dropped", () => drops.left.length === 0);
  expect(dropped).toEqual(["a.test"]);
});

test("an index that does not answer holds up no end", async () => {
  const documents = new Map<string, unknown>();
  const { deps, faults } = setUp(documents, 0);
  faults.push("never");
  const drops = new LateDrops(deps);
  drops.plan(["a.test"]);
  await until("it is asked", () => faults.length === 0);
  await drops[Symbol.asyncDispose]();
  expect(documents.has(key)).toBe(true);
});

test("where the plan cannot be written, hits are confirmed by the origin all the same", async () => {
  const { deps, dropped, unsure } = setUp(new Map(), hourMs);
  const full = new Error("database or disk is full");
  const put = (): never => {
    throw full;
  };
  await using drops = new LateDrops({ ...deps, documents: { ...deps.documents, put } });
  expect(() => drops.plan(["a.test"])).toThrow(full);
  expect(unsure()).toEqual(["a.test"]);
  expect({ dropped, left: drops.left }).toEqual({ dropped: [], left: [] });
});

test("unless it is said otherwise, their turns are spread over ten minutes", async () => {
  const { spreadMs: _, ...deps } = setUp(new Map(), 0).deps;
  await using drops = new LateDrops(deps);
  expect(drops.spreadS).toBe(600);
});
