// Making variants: one at a time in the process, each once, never more waiting than agreed; over the real cache too.

import { randomBytes } from "node:crypto";
import { brotliDecompressSync } from "node:zlib";
import { expect, it } from "vitest";
import type { ResponseCache } from "../../../../src/agent/accelerator/cached/cache-port.ts";
import { ProblemLog } from "../../../../src/agent/accelerator/records/problem-log.ts";
import { PoolWords } from "../../../../src/agent/accelerator/pool/shared-words.ts";
import { encode } from "../../../../src/agent/accelerator/cached/variant-coder.ts";
import {
  VariantMaker,
  wholeBody,
  type VariantMakerOptions,
} from "../../../../src/agent/accelerator/cached/variant-maker.ts";
import { createWorkerMetrics } from "../../../../src/agent/accelerator/records/worker-metrics.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { codedToBytes, codings } from "../../../../src/core/http/content-coding.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { begin, keyOf, metaOf, openedRig } from "../../cache/rig.ts";
import { MemoryCache } from "../memory-cache.ts";
import type { CommitOutcome, Entry, EntryKey } from "../../../../src/agent/cache/entry.ts";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";

const text = Buffer.from("The same procedure as every year, James.\n".repeat(100));

async function setUp(changes: Partial<VariantMakerOptions> = {}): Promise<{
  readonly maker: VariantMaker;
  readonly cache: MemoryCache;
  readonly base: (path: string, body?: Buffer) => Promise<Entry>;
  /** Outcome → how often. */
  readonly outcomes: () => Promise<Readonly<Record<string, number>>>;
}> {
  const cache = new MemoryCache();
  const registry = new Registry();
  const clock = createClock();
  const maker = new VariantMaker({
    cache,
    words: new PoolWords(),
    no: 1,
    clock,
    metrics: createWorkerMetrics(registry),
    problems: new ProblemLog(silentLog(), clock.steadyMs),
    ...changes,
  });
  return {
    maker,
    cache,
    base: async (path, body = text) => {
      const key = keyOf({ path });
      await put(cache, key, body);
      const [entry] = cache.find(key);
      if (entry === undefined) throw new Error("not stored");
      return entry;
    },
    outcomes: async () => {
      const metric = registry.getSingleMetric("accel_agent_variants_total");
      const counts: Record<string, number> = {};
      for (const { labels, value } of (await metric?.get())?.values ?? [])
        counts[`${labels["outcome"]}`] = (counts[`${labels["outcome"]}`] ?? 0) + value;
      return counts;
    },
  };
}

async function put(cache: ResponseCache, key: EntryKey, body: Uint8Array): Promise<CommitOutcome> {
  const sourceNo = cache.sourceNo();
  const writer = begin(cache, key);
  await writer.write(body);
  return writer.commit(metaOf({ sourceNo }));
}

it("makes what is offered twice once, and what is there not again", async () => {
  const s = await setUp();
  await using maker = s.maker;
  const base = await s.base("/a");
  let reads = 0;
  const read = async (): Promise<Uint8Array> => {
    reads++;
    return text;
  };
  for (let n = 0; n < 3; n++) maker.offer({ base, coding: "br", read });
  await until("the variant", () => s.cache.entries.some(({ form }) => form === "br"));
  maker.offer({ base, coding: "br", read });
  await until("another look", async () => (await s.outcomes())["gone"] === 1);
  expect(reads).toBe(1);
});

it("waits for its turn among the workers, and takes it when the other has ended or is gone", async () => {
  const words = new PoolWords();
  const s = await setUp({ words, no: 2 });
  await using maker = s.maker;
  expect(words.codingTurn.start(1)).toBe(true);
  expect(new PoolWords(words.buffer).codingTurn.start(2)).toBe(false);
  maker.offer({ base: await s.base("/a"), coding: "br", read: async () => text });
  words.codingTurn.end(3); // Not its turn: without effect.
  const again = await s.base("/b");
  maker.offer({ base: again, coding: "br", read: async () => text });
  expect(await s.outcomes()).toEqual({});
  words.codingTurn.end(1);
  await until("both", async () => (await s.outcomes())["made"] === 2);
  expect(words.codingTurn.start(1)).toBe(true);
});

it("drops what is too much, and what waits when the worker drains", async () => {
  const words = new PoolWords();
  const s = await setUp({ words });
  words.codingTurn.start(9);
  for (let n = 0; n < 70; n++)
    s.maker.offer({ base: await s.base(`/${n}`), coding: "br", read: async () => text });
  // One has left the queue and waits for its turn.
  expect(await s.outcomes()).toEqual({ dropped: 5 });
  await s.maker[Symbol.asyncDispose]();
  s.maker.offer({ base: await s.base("/late"), coding: "br", read: async () => text });
  expect(await s.outcomes()).toEqual({ dropped: 5 });
  expect(s.cache.entries.every(({ form }) => form === null)).toBe(true);
});

it("remembers what is not worth it", async () => {
  const noise = randomBytes(5_000);
  const s = await setUp();
  await using maker = s.maker;
  const base = await s.base("/noise", noise);
  let reads = 0;
  const offer = (coding: "gzip" | "zstd" = "gzip"): void =>
    maker.offer({
      base,
      coding,
      read: async () => {
        reads++;
        return noise;
      },
    });
  offer();
  await until("the attempt", async () => (await s.outcomes())["worthless"] === 1);
  offer();
  offer();
  maker.offer({ base: await s.base("/a"), coding: "br", read: async () => text });
  await until("the next", async () => (await s.outcomes())["made"] === 1);
  expect(reads).toBe(1);
  // Another coding of it is another matter, and does not make the first one forgotten.
  offer("zstd");
  await until("the other coding", async () => (await s.outcomes())["worthless"] === 2);
  offer();
  offer("zstd");
  offer();
  maker.offer({ base: await s.base("/b"), coding: "br", read: async () => text });
  await until("the last", async () => (await s.outcomes())["made"] === 2);
  expect(reads).toBe(2);
});

it("makes nothing of other bytes than the entry's, and rests after a failure", async () => {
  const s = await setUp();
  await using maker = s.maker;
  const base = await s.base("/a");
  maker.offer({ base, coding: "br", read: async () => text.subarray(1) });
  maker.offer({ base, coding: "zstd", read: async () => undefined });
  await until("both", async () => (await s.outcomes())["gone"] === 2);
  maker.offer({ base, coding: "gzip", read: async () => Promise.reject(new Error("EIO")) });
  await until("the failure", async () => (await s.outcomes())["failed"] === 1);
  maker.offer({ base, coding: "gzip", read: async () => text });
  expect((await s.outcomes())["dropped"]).toBe(1);
  expect(s.cache.entries.length).toBe(1);
});

it("collects a body up to what is coded", async () => {
  const pieces = async function* (count: number): AsyncGenerator<Uint8Array> {
    for (let n = 0; n < count; n++) yield Buffer.alloc(2 ** 20, n);
  };
  const most = codedToBytes / 2 ** 20;
  expect((await wholeBody(pieces(most)))?.length).toBe(codedToBytes);
  expect(await wholeBody(pieces(most + 1))).toBeUndefined();
});

it.each(codings)("%s keeps the bytes, or says that it saves too little", async (coding) => {
  expect((await encode(text, coding))?.length).toBeLessThan(text.length / 10);
  expect(await encode(randomBytes(100_000), coding)).toBeUndefined();
});

it("stores in the index what goes with its base", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const { cache } = rig;
  const s = await setUp({ cache });
  await using maker = s.maker;
  const key = keyOf({ path: "/page" });
  expect(await put(cache, key, text)).toMatchObject({ kind: "stored" });
  const base = await until("the base", () => cache.find(key)[0]);
  const read = async (): Promise<Uint8Array | undefined> => wholeBody(await cache.open(base));
  for (const coding of codings) maker.offer({ base, coding, read });
  const found = await until("all", () => {
    const made = cache.find(key).filter(({ baseId }) => baseId === base.id);
    return made.length === codings.length ? made : undefined;
  });
  const br = found.find(({ form }) => form === "br");
  if (br === undefined) throw new Error("no brotli");
  const body = await wholeBody(await cache.open(br));
  expect(brotliDecompressSync(body ?? "").equals(text)).toBe(true);
  await cache.invalidate(key);
  expect(cache.find(key)).toEqual([]);
  expect(found.some((entry) => cache.servable(entry))).toBe(false);
  expect(await cache.storeVariant(base, "br", text)).toEqual({ kind: "blocked" });
});
