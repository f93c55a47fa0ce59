// The small parts that threads share: id runs, servable bits, hot bodies.

import { Worker } from "node:worker_threads";
import { once } from "node:events";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeIdRuns, encodeIdRuns } from "../../../../src/agent/cache/clearing/id-runs.ts";
import { EntryBits } from "../../../../src/agent/cache/index/entry-bits.ts";
import { keyPlace, SharedHeader } from "../../../../src/agent/cache/index/shared-header.ts";
import { keyOf } from "../rig.ts";
import { HotBodies } from "../../../../src/agent/cache/worker/hot-memory.ts";

describe("id runs", () => {
  test("come back as they were, also beyond 2^32", () => {
    const ids = fc.uniqueArray(
      fc.oneof(fc.nat(300), fc.integer({ min: 2 ** 40, max: 2 ** 40 + 300 }), fc.maxSafeNat()),
    );
    fc.assert(
      fc.property(ids, (some) => {
        const ascending = some.toSorted((a, b) => a - b);
        expect([...decodeIdRuns(encodeIdRuns(ascending))]).toEqual(ascending);
      }),
    );
  });

  test("are small where ids are dense", () => {
    expect(encodeIdRuns(Array.from({ length: 100_000 }, (_, i) => i + 5)).length).toBe(4);
  });

  test("that nobody wrote are refused", () => {
    expect(() => [...decodeIdRuns(Uint8Array.of(1))]).toThrow(RangeError);
    expect(() => [...decodeIdRuns(Uint8Array.of(128))]).toThrow(RangeError);
    expect(() => [...decodeIdRuns(new Uint8Array(16).fill(255))]).toThrow(RangeError);
    expect(() => [...decodeIdRuns(Uint8Array.of(1, 255, 255, 255, 255, 127))]).toThrow(RangeError);
  });
});

describe("servable bits", () => {
  test("are a set of ids above the base", () => {
    const base = 1_000;
    const changes = fc.array(fc.tuple(fc.integer({ min: 900, max: 80_000 }), fc.boolean()));
    fc.assert(
      fc.property(changes, (some) => {
        const bits = EntryBits.allocate(base);
        const set = new Set<number>();
        for (const [id, on] of some) {
          if (id < base || !on) {
            bits.unset(id);
            set.delete(id);
          } else {
            bits.set([id]);
            set.add(id);
          }
        }
        for (const [id] of some) expect(bits.has(id)).toBe(set.has(id));
        expect(bits.has(base - 1)).toBe(false);
        expect(bits.has(2 ** 40)).toBe(false);
      }),
    );
  });

  test("are taken many at once: what was set is told and unset, nothing else", () => {
    const base = 1_000;
    const ids = fc.uniqueArray(fc.integer({ min: 900, max: 1_400 }));
    fc.assert(
      fc.property(ids, ids, (set, asked) => {
        const bits = EntryBits.allocate(base);
        const held = set.filter((id) => id >= base);
        bits.set([...held].toSorted((a, b) => a - b));
        const ascending = asked.toSorted((a, b) => a - b);
        const taken = ascending.filter((id) => held.includes(id));
        expect([...bits.take(Float64Array.from([...ascending, 2 ** 40]))]).toEqual(taken);
        for (const id of held) expect(bits.has(id)).toBe(!taken.includes(id));
      }),
    );
  });

  test("are seen by another thread, also those that made the memory grow after it had begun", async () => {
    const bits = EntryBits.allocate(0);
    const reader = new Worker(
      `const { parentPort, workerData } = require("node:worker_threads");
       const words = new Int32Array(workerData);
       parentPort.on("message", (word) => parentPort.postMessage(word < words.length ? Atomics.load(words, word) : null));
       parentPort.postMessage("ready");`,
      { eval: true, workerData: bits.buffer },
    );
    await once(reader, "message");
    const ask = async (word: number): Promise<unknown> => {
      const answer = once(reader, "message");
      reader.postMessage(word, []);
      return (await answer)[0];
    };
    expect(await ask(5_000)).toBe(null);
    bits.set([5_000 * 32 + 3]);
    expect(await ask(5_000)).toBe(8);
    await reader.terminate();
  });
});

test("what was written to the shared words is read through another view", () => {
  const buffer = SharedHeader.allocate();
  const [one, two] = [new SharedHeader(buffer), new SharedHeader(buffer)];
  one.clearNo = 2 ** 40;
  one.lastId = 2 ** 41;
  one.incarnation = one.nextIncarnation();
  one.confirmed = true;
  expect([two.clearNo, two.lastId, two.incarnation, two.confirmed]).toEqual([
    2 ** 40,
    2 ** 41,
    1,
    true,
  ]);
  expect(two.nextIncarnation()).toBe(2);
});

test("the shared words do not overlap: what is written to a region changes its own words and no other's", () => {
  // So many that each place of a region is met: 16,384 places need about 170,000 keys.
  const domains = Array.from({ length: 4_000 }, (_, at) => `${at}.test`);
  const keys = Array.from({ length: 300_000 }, (_, at) => keyOf({ path: `/${at}` }));
  const regions: readonly {
    readonly name: string;
    /** Of 32 bits each. */
    readonly words: number;
    readonly write: (header: SharedHeader) => void;
  }[] = [
    { name: "incarnation", words: 1, write: (header) => void (header.incarnation = -1) },
    { name: "confirmed", words: 1, write: (header) => void (header.confirmed = true) },
    { name: "openings", words: 1, write: (header) => void header.nextIncarnation() },
    { name: "asked", words: 1, write: (header) => header.noteClearAsked() },
    { name: "lookups", words: 1, write: (header) => header.noteLookup() },
    { name: "clear_no", words: 2, write: (header) => void (header.clearNo = -1) },
    { name: "last_id", words: 2, write: (header) => void (header.lastId = -1) },
    { name: "stored", words: 2, write: (header) => void (header.storedBytes = -1) },
    { name: "in_flight", words: 2, write: (header) => void header.addInFlight(-1) },
    { name: "clear marks", words: 256, write: (header) => header.moveClearMark(null) },
    {
      name: "clear marks of domains",
      words: 256,
      write: (header) => {
        for (const domain of domains) header.moveClearMark(domain);
      },
    },
    { name: "unsure", words: 256, write: (header) => header.setUnsure(domains) },
    {
      name: "key marks",
      words: 16_384,
      write: (header) => {
        for (const key of keys) header.moveKeyMark(keyPlace(key));
      },
    },
    {
      name: "invalidation marks",
      words: 16_384,
      write: (header) => {
        for (const key of keys) header.moveInvalidationMark(key);
      },
    },
  ];
  const ownerOf = new Map<number, string>();
  const sizes: unknown[] = [];
  for (const { name, write } of regions) {
    const buffer = SharedHeader.allocate();
    write(new SharedHeader(buffer));
    const changed = [...new Int32Array(buffer).entries()].filter(([, value]) => value !== 0);
    sizes.push({ name, words: changed.length });
    const region = name.replace(" of domains", "");
    const others = changed.map(([at]) => ownerOf.get(at) ?? region);
    expect({ name, shares: [...new Set(others)] }).toEqual({ name, shares: [region] });
    for (const [at] of changed) ownerOf.set(at, region);
  }
  expect(sizes).toEqual(regions.map(({ name, words }) => ({ name, words })));
});

test("hot bodies are bounded; what was asked for lately stays", () => {
  const held = (hot: HotBodies, ids: readonly number[]): number[] =>
    ids.filter((id) => hot.get(id) !== undefined);
  const hot = new HotBodies(40_000);
  for (const id of [1, 2, 3]) hot.put(id, new Uint8Array(12_000));
  hot.get(1);
  hot.put(4, new Uint8Array(12_000));
  expect(held(hot, [1, 2, 3, 4])).toEqual([1, 3, 4]);
  hot.put(5, new Uint8Array(40_001));
  expect(hot.get(5)).toBe(undefined);
  hot.put(4, new Uint8Array(39_000));
  expect(held(hot, [1, 3, 4])).toEqual([4]);
});

test("whether any id up to another is servable", () => {
  const bits = EntryBits.allocate(100);
  bits.set([240]);
  expect([99, 100, 239, 240, 241, 10 ** 9].map((id) => bits.hasAnyUpTo(id))).toEqual([
    false,
    false,
    false,
    true,
    true,
    true,
  ]);
  bits.unset(240);
  expect(bits.hasAnyUpTo(10 ** 9)).toBe(false);
});

test("a clear moves the mark of its domain, a clear of everything that of each; keys have marks of their own", () => {
  const header = new SharedHeader(SharedHeader.allocate());
  const [inA, inB] = [keyOf({ domain: "a.test" }), keyOf({ domain: "b.test" })];
  const before = header.clearMark(inA);
  header.moveClearMark("a.test");
  expect(header.clearMark(inA)).not.toBe(before);
  expect(header.clearMark(inB)).toBe(before);
  header.moveClearMark(null);
  expect(header.clearMark(inB)).not.toBe(before);
  const place = keyPlace(keyOf({ path: "/x" }));
  expect(keyPlace(keyOf({ path: "/y" }))).not.toBe(place);
  header.moveKeyMark(place);
  expect(header.keyMark(place)).toBe(1);
  expect([header.clearNo, header.lastId, header.incarnation]).toEqual([0, 0, 0]);
});
