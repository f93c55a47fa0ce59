// Workers that ask for pictures over their ports: what they get, what they ask nobody for, and every way in which a wait ends.

import { afterEach, expect, test } from "vitest";
import { DayBudget } from "../../../src/agent/images/day-budget.ts";
import { EncoderProcess } from "../../../src/agent/images/encoder-child.ts";
import { ImageDesk } from "../../../src/agent/images/image-desk.ts";
import { ImageEncoderClient } from "../../../src/agent/images/image-encoder-client.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { pictureFormat } from "../../../src/core/images/picture-head.ts";
import { job, made, openDesk } from "../../support/image-rig.ts";
import { pictureOf } from "../../support/pictures.ts";
import { until } from "../../support/until.ts";

const closing: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

function rig() {
  const opened = openDesk();
  closing.push(opened.desk);
  return opened;
}

test("workers ask over their ports, and two of them that want the same get it once made", async () => {
  const { encoder, desk } = rig();
  using one = new ImageEncoderClient(desk.openWorker());
  using other = new ImageEncoderClient(desk.openWorker());
  const source = await pictureOf("jpeg");
  const copy = Buffer.from(source);
  const asked = [one, other].map(async (client) => client.make(job("", { source })));
  const { source: sent } = await encoder.answer(0, made("form"));
  expect(Buffer.from(sent).equals(copy)).toBe(true);
  for (const answer of await Promise.all(asked)) {
    if (answer.kind !== "made") throw new Error(answer.kind);
    expect(Buffer.from(answer.body).toString()).toBe("form");
  }
  expect(encoder.asked.length).toBe(1);
  // The caller's bytes were copied, not taken.
  expect(source.equals(copy)).toBe(true);
});

test("a worker asks nobody for what is never taken", async () => {
  const { desk, encoder } = rig();
  using client = new ImageEncoderClient(desk.openWorker());
  const noise = Buffer.alloc(100 * 2 ** 20, 0x5a);
  expect(await client.make(job("", { source: noise }))).toMatchObject({
    kind: "unreadable",
    reason: expect.stringMatching(/bytes/),
  });
  expect(await client.make(job("<svg/>"))).toMatchObject({ kind: "unreadable" });
  expect(encoder.asked).toEqual([]);
});

test("a worker has an end of its own waiting, and of main's", async () => {
  const { desk } = rig();
  const source = await pictureOf("jpeg");
  using client = new ImageEncoderClient(desk.openWorker(), 20);
  expect(await client.make(job("", { source }))).toEqual({
    kind: "failed",
    reason: "no answer within 0.02 s",
  });
  using other = new ImageEncoderClient(desk.openWorker());
  const waiting = other.make(job("", { source, quality: 10 }));
  await desk[Symbol.asyncDispose]();
  expect(await waiting).toEqual({ kind: "failed", reason: "the agent is stopping" });
  expect(await other.make(job("", { source }))).toEqual({
    kind: "failed",
    reason: "the agent is stopping",
  });
});

test("a worker that ends asks nothing any more, and main minds nothing", async () => {
  const { desk, encoder } = rig();
  const client = new ImageEncoderClient(desk.openWorker());
  const waiting = client.make(job("", { source: await pictureOf("jpeg") }));
  await until("it is asked", () => encoder.asked[0]);
  client[Symbol.dispose]();
  expect(await waiting).toEqual({ kind: "failed", reason: "the agent is stopping" });
  await encoder.answer(0, made("for nobody"));
});

test("from a worker's port to the real encoder and back", async () => {
  const clock = { now: new Date("2026-11-29T12:00:00Z") };
  const encoder = new EncoderProcess({
    entry: new URL("../../../src/agent/picturer.ts", import.meta.url),
    memoryMaxBytes: 2 ** 30,
    pictureMs: 60_000,
    waitMs: 60_000,
  });
  closing.push(encoder);
  const desk = new ImageDesk({
    encoder,
    budget: new DayBudget({ read: () => undefined, write: () => undefined }, () => clock.now),
    registry: new Registry(),
    health: new Health(() => clock.now),
    log: silentLog(),
  });
  closing.push(desk);
  using client = new ImageEncoderClient(desk.openWorker());
  const source = await pictureOf("jpeg");
  const forms = await Promise.all(
    (["avif", "webp", "same-160"] as const).map(async (form) =>
      client.make(job("", { source, form })),
    ),
  );
  expect(forms.map((one) => (one.kind === "made" ? pictureFormat(one.body) : one.kind))).toEqual([
    "avif",
    "webp",
    "jpeg",
  ]);
  expect(await client.make(job("", { source: source.subarray(0, 900) }))).toMatchObject({
    kind: "unreadable",
  });
});
