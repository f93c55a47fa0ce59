// Having forms of pictures made: each once, in the first form that is worth it; what the encoder says is remembered, and what failed or is spent rests.

import { expect, it } from "vitest";
import {
  ImageMaker,
  type ImageMakerOptions,
  type ImageOffer,
} from "../../../../src/agent/accelerator/cached/image-maker.ts";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";
import { PoolWords } from "../../../../src/agent/accelerator/pool/shared-words.ts";
import { ProblemLog } from "../../../../src/agent/accelerator/records/problem-log.ts";
import { createWorkerMetrics } from "../../../../src/agent/accelerator/records/worker-metrics.ts";
import type { Entry } from "../../../../src/agent/cache/entry.ts";
import type { ImageMade } from "../../../../src/agent/images/image-encoder.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { until } from "../../../support/until.ts";
import { begin, keyOf, metaOf } from "../../cache/rig.ts";
import { FakeEncoder, made, pictureBytes } from "../fake-encoder.ts";
import { MemoryCache } from "../memory-cache.ts";

const jpeg = pictureBytes("image/jpeg");
const settings = { quality: 80, variants_per_day_max: 10 };
const dayMs = 86_400_000;

class Rig implements AsyncDisposable {
  readonly cache = new MemoryCache();
  readonly encoder = new FakeEncoder();
  readonly registry = new Registry();
  readonly passed = { steadyMs: 0, wallMs: Date.UTC(2031, 0, 1, 23, 59) };
  readonly words = new PoolWords();
  readonly maker: ImageMaker;

  constructor(changes: Partial<ImageMakerOptions> = {}) {
    const clock = {
      ...createClock(),
      steadyMs: () => this.passed.steadyMs,
      wallMs: () => this.passed.wallMs,
    };
    this.maker = new ImageMaker({
      cache: this.cache,
      encoder: this.encoder,
      words: this.words,
      no: 1,
      clock,
      metrics: createWorkerMetrics(this.registry),
      problems: new ProblemLog(silentLog(), clock.steadyMs),
      ...changes,
    });
  }

  async base(path: string, body: Uint8Array = jpeg, mime = "image/jpeg"): Promise<Entry> {
    const key = keyOf({ path });
    const writer = begin(this.cache, key);
    await writer.write(body);
    await writer.commit({ ...metaOf({ sourceNo: this.cache.sourceNo() }), mime });
    const [entry] = this.cache.find(key);
    if (entry === undefined) throw new Error("not stored");
    return entry;
  }

  offer(base: Entry, changes: Partial<ImageOffer> = {}): void {
    const body = this.cache.rows.get(base.id)?.body;
    this.maker.offer({
      base,
      forms: ["avif", "webp"],
      settings,
      read: async () => body,
      ...changes,
    });
  }

  async outcomes(): Promise<Readonly<Record<string, number>>> {
    const metric = this.registry.getSingleMetric("accel_agent_image_variants_total");
    const counts: Record<string, number> = {};
    for (const { labels, value } of (await metric?.get())?.values ?? []) {
      const word = `${labels["format"]} ${labels["outcome"]}`;
      counts[word] = (counts[word] ?? 0) + value;
    }
    return counts;
  }

  /** Resolves when there were so many jobs and their outcomes are counted. */
  async came(word: string, count = 1): Promise<void> {
    await until(word, async () => (await this.outcomes())[word] === count);
  }

  get forms(): readonly (string | null)[] {
    return this.cache.entries.map(({ form }) => form).filter((form) => form !== null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.maker[Symbol.asyncDispose]();
  }
}

it("makes what is offered often once, with the devlove's words, and counts its bytes", async () => {
  await using rig = new Rig();
  const base = await rig.base("/a.jpg");
  for (let n = 0; n < 5; n++) rig.offer(base);
  await rig.came("avif made");
  expect(rig.encoder.jobs).toEqual([
    { domain: base.domain, perDayMax: 10, source: jpeg, form: "avif", quality: 80 },
  ]);
  expect(rig.forms).toEqual(["avif"]);
  expect(await rig.registry.metrics()).toContain(
    `accel_agent_image_variant_bytes_made_total{format="avif"} ${"avif q80 of 5000".length}`,
  );
  // What is there is not made again, though another worker may not have seen it.
  rig.offer(base);
  await rig.came("avif gone");
  expect(rig.encoder.jobs).toHaveLength(1);
});

it("what is no smaller is not made again, and the next form is", async () => {
  await using rig = new Rig();
  const base = await rig.base("/a.jpg");
  rig.encoder.answer = (job) => (job.form === "avif" ? { kind: "worthless" } : made(job));
  rig.offer(base);
  await rig.came("avif worthless");
  rig.offer(base);
  await rig.came("webp made");
  rig.offer({ ...base }, { forms: ["avif"] });
  rig.offer(base, { forms: ["avif"] });
  expect(rig.encoder.forms).toEqual(["avif", "webp"]);
  // Other bytes are another matter.
  rig.offer(await rig.base("/b.jpg"));
  await rig.came("avif worthless", 2);
});

it("an encoder that saves little is not believed", async () => {
  await using rig = new Rig();
  rig.encoder.answer = () => ({ kind: "made", body: Buffer.alloc(jpeg.length - 499) });
  rig.offer(await rig.base("/a.jpg"));
  await rig.came("avif worthless");
  expect(rig.forms).toEqual([]);
});

it.each([
  ["a page that says it is a picture", Buffer.alloc(5_000, "<html>"), "image/jpeg"],
  ["another type than it says", pictureBytes("image/png"), "image/jpeg"],
  ["another type than it says, the other way", jpeg, "image/png"],
])("%s never comes to the encoder", async (_name, body, mime) => {
  await using rig = new Rig();
  const base = await rig.base("/a.jpg", body, mime);
  rig.offer(base);
  await rig.came("avif unreadable");
  rig.offer(base);
  rig.offer({ ...base }, { forms: ["webp"] });
  expect(await rig.outcomes()).toEqual({ "avif unreadable": 1 });
  expect(rig.encoder.jobs).toEqual([]);
});

it("what the encoder cannot read is not offered in any form", async () => {
  await using rig = new Rig();
  const base = await rig.base("/a.jpg");
  rig.encoder.answer = () => ({ kind: "unreadable", reason: "a bomb" });
  rig.offer(base);
  await rig.came("avif unreadable");
  rig.offer(base, { forms: ["same-640"] });
  expect(rig.encoder.jobs).toHaveLength(1);
});

it("a domain whose number is spent rests until midnight UTC, and no other domain does", async () => {
  await using rig = new Rig();
  const base = await rig.base("/a.jpg");
  const other = { ...(await rig.base("/b.jpg")), domain: "other.example" };
  rig.encoder.answer = (job) => (job.domain === base.domain ? { kind: "blocked" } : made(job));
  rig.offer(base);
  await rig.came("avif blocked");
  for (let n = 0; n < 3; n++) rig.offer(base, { forms: ["webp"] });
  rig.offer(other);
  await rig.came("avif made");
  expect(rig.encoder.forms).toEqual(["avif", "avif"]);
  expect(await rig.outcomes()).toMatchObject({ "webp blocked": 3 });
  // More may be made by now.
  rig.offer(base, { settings: { ...settings, variants_per_day_max: 11 } });
  await rig.came("avif blocked", 2);
  rig.encoder.answer = (job) => made(job);
  rig.passed.wallMs += 59_999;
  rig.offer(base, { settings: { ...settings, variants_per_day_max: 11 } });
  expect(rig.encoder.jobs).toHaveLength(3);
  rig.passed.wallMs += 1;
  rig.offer(base);
  await rig.came("avif made", 2);
  expect(rig.passed.wallMs % dayMs).toBe(0);
});

it("where the day's number is 0 nobody is asked", async () => {
  await using rig = new Rig();
  rig.offer(await rig.base("/a.jpg"), { settings: { ...settings, variants_per_day_max: 0 } });
  expect(await rig.outcomes()).toEqual({ "avif blocked": 1 });
  expect(rig.encoder.jobs).toEqual([]);
});

it.each([
  ["failed", () => ({ kind: "failed", reason: "killed" }) as const],
  ["broke its promise", () => Promise.reject(new Error("EPIPE"))],
])("after an encoder that %s everything rests, and that picture longer", async (_name, answer) => {
  await using rig = new Rig();
  const [base, other] = [await rig.base("/a.jpg"), await rig.base("/b.jpg")];
  rig.encoder.answer = answer;
  rig.offer(base);
  await rig.came("avif failed");
  rig.offer(other);
  expect(await rig.outcomes()).toMatchObject({ "avif dropped": 1 });
  rig.encoder.answer = (job) => made(job);
  rig.passed.steadyMs += 10_000;
  rig.offer(base);
  rig.offer(other);
  await rig.came("avif made");
  expect(await rig.outcomes()).toMatchObject({ "avif dropped": 2 });
  rig.passed.steadyMs += 590_000;
  rig.offer(base);
  await rig.came("avif made", 2);
});

it("a host without an encoder asks again after ten minutes", async () => {
  await using rig = new Rig();
  const base = await rig.base("/a.jpg");
  rig.encoder.answer = () => ({ kind: "absent", reason: "sharp is not installed" });
  rig.offer(base);
  await rig.came("avif absent");
  rig.passed.steadyMs += 599_999;
  rig.offer(base);
  expect(rig.encoder.jobs).toHaveLength(1);
  rig.passed.steadyMs += 1;
  rig.offer(base);
  await rig.came("avif absent", 2);
});

it("a worker that has none says so", async () => {
  await using rig = new Rig({ encoder: undefined });
  rig.offer(await rig.base("/a.jpg"));
  expect(await rig.outcomes()).toEqual({ "avif absent": 1 });
});

it("is one at a time in the process, and gives up its turn", async () => {
  await using rig = new Rig();
  const { words } = rig;
  const base = await rig.base("/a.jpg");
  expect(new PoolWords(words.buffer).imageTurn.start(2)).toBe(true);
  // Codings have a turn of their own.
  expect(words.codingTurn.start(1)).toBe(true);
  rig.offer(base);
  words.imageTurn.end(3); // Not its turn: without effect.
  expect(rig.encoder.jobs).toEqual([]);
  words.imageTurn.end(2);
  await rig.came("avif made");
  await until("the turn", () => words.imageTurn.start(1));
});

it("at most 64 wait, and those that stop waiting read nothing", async () => {
  const rig = new Rig();
  rig.words.imageTurn.start(9);
  let reads = 0;
  const read = async (): Promise<Uint8Array> => (reads++, jpeg);
  for (let n = 0; n < 70; n++) rig.offer(await rig.base(`/${n}.jpg`), { read });
  // One is in hand.
  expect(await rig.outcomes()).toEqual({ "avif dropped": 5 });
  await rig.maker[Symbol.asyncDispose]();
  rig.offer(await rig.base("/late.jpg"), { read });
  expect([reads, rig.encoder.jobs]).toEqual([0, []]);
});

it("who stops does not wait for an encoder that takes its time", async () => {
  const rig = new Rig();
  const { promise, resolve } = Promise.withResolvers<ImageMade>();
  rig.encoder.answer = () => promise;
  rig.offer(await rig.base("/a.jpg"));
  await until("the job", () => rig.encoder.jobs.length === 1);
  await rig.maker[Symbol.asyncDispose]();
  expect(rig.words.imageTurn.start(2)).toBe(true);
  resolve({ kind: "made", body: Buffer.from("late") });
  await promise;
  expect(rig.forms).toEqual([]);
});

it("a picture that was cleared, or is not what it was, has no forms", async () => {
  await using rig = new Rig();
  const base = await rig.base("/a.jpg");
  rig.offer(base, { read: async () => jpeg.subarray(1) });
  await rig.came("avif gone");
  rig.offer(base, { read: async () => undefined });
  await rig.came("avif gone", 2);
  rig.encoder.answer = (job) => {
    rig.cache.clear(() => true);
    return made(job);
  };
  rig.offer(base);
  await rig.came("avif cleared");
  rig.offer(base);
  await rig.came("avif gone", 3);
  expect(rig.cache.entries).toEqual([]);
});
