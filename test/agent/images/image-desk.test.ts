// The desk in front of the encoder: one queue for all workers, the day's numbers, rests, pauses, and what ended the encoder.

import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { Encoded } from "../../../src/agent/images/encoder-child.ts";
import type { ImageJob } from "../../../src/agent/images/image-encoder.ts";
import { imageSourceBytesMax } from "../../../src/core/images/image-limits.ts";
import { job, killed, made, openDesk, type DeskRig } from "../../support/image-rig.ts";
import { until } from "../../support/until.ts";

const closing: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

function rig(wish: DeskRig = {}) {
  const opened = openDesk(wish);
  closing.push(opened.desk);
  return opened;
}

test("a picture is made, and counted by domain and format", async () => {
  const { encoder, desk, count } = rig();
  const asked = desk.make(job("source of some length"));
  await encoder.answer(0, made("form", 250));
  expect(await asked).toEqual({ kind: "made", body: Buffer.from("form") });
  const forms = { domain: "a.example", outcome: "made" };
  expect(await count("accel_agent_image_forms_total", forms)).toBe(1);
  expect(await count("accel_agent_image_made_total", { format: "webp" })).toBe(1);
  expect(await count("accel_agent_image_source_bytes_total", { format: "webp" })).toBe(21);
  expect(await count("accel_agent_image_form_bytes_total", { format: "webp" })).toBe(4);
  expect(await count("accel_agent_image_cpu_seconds_total")).toBe(0.25);
  expect(desk.facts()).toMatchObject({
    encoder: "running",
    versions: { sharp: "1.2.3" },
    waiting: 0,
    domains: { "a.example": { made: 1, blocked: 0 } },
  });
});

test("equal pictures are one, of whatever domain; another form or quality is another one", async () => {
  const { encoder, desk } = rig();
  const first = [
    desk.make(job("one")),
    desk.make(job("one")),
    desk.make(job("one", { domain: "b.example" })),
  ];
  const others = [desk.make(job("one", { form: "avif" })), desk.make(job("one", { quality: 60 }))];
  await encoder.answer(0, made("webp of 80"));
  await encoder.answer(1, made("avif"));
  await encoder.answer(2, made("webp of 60"));
  for (const one of await Promise.all(first))
    expect(one).toEqual({ kind: "made", body: Buffer.from("webp of 80") });
  expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(["made", "made"]);
  expect(encoder.asked.length).toBe(3);
  expect(desk.facts().domains).toEqual({ "a.example": { made: 3, blocked: 0 } });
});

test("a picture that was made a moment ago is made anew: the desk keeps none", async () => {
  const { encoder, desk } = rig();
  const [one, other] = [desk.make(job("one")), desk.make(job("two"))];
  await encoder.answer(0, made("1"));
  await encoder.answer(1, made("2"));
  await Promise.all([one, other]);
  const again = desk.make(job("one"));
  await encoder.answer(2, made("3"));
  expect(await again).toEqual({ kind: "made", body: Buffer.from("3") });
});

test("one picture is at the encoder at a time, and domains take turns", async () => {
  const { encoder, desk } = rig();
  const all = ["a1", "a2", "a3"].map(async (text) => desk.make(job(text)));
  await until("the first is asked", () => encoder.asked[0]);
  all.push(desk.make(job("b1", { domain: "b.example" })));
  await until("all wait", () => desk.facts().waiting === 3);
  expect(encoder.asked.length).toBe(1);
  const order: string[] = [];
  for (let no = 0; no < 4; no++)
    order.push(Buffer.from((await encoder.answer(no, made("x"))).source).toString());
  expect(order[0]).toMatch(/^a/);
  expect(order[1]).toBe("b1");
  await Promise.all(all);
});

test("pictures are made in the order in which they came, however long each digest takes", async () => {
  const { encoder, desk } = rig();
  const sources = [Buffer.alloc(imageSourceBytesMax, 1), Buffer.from("2"), Buffer.from("3")];
  const all = sources.map(async (source) => desk.make(job("", { source })));
  for (let no = 0; no < 3; no++)
    expect((await encoder.answer(no, made("x"))).source.length).toBe(sources[no]?.length);
  await Promise.all(all);
});

test("beyond what may wait a picture is refused at once", async () => {
  const { encoder, desk } = rig();
  const first = desk.make(job("the first"));
  await until("the first is asked", () => encoder.asked[0]);
  const all = Array.from({ length: 64 }, async (_, no) => desk.make(job(`picture ${no}`)));
  await until("all wait", () => desk.facts().waiting === 64);
  expect(await desk.make(job("one more"))).toEqual({ kind: "failed", reason: "busy" });
  expect(desk.facts().domains).toEqual({});
  // One that is asked for already has a place.
  all.push(desk.make(job("picture 63")), first);
  for (let no = 0; no < 65; no++) await encoder.answer(no, made("x"));
  expect((await Promise.all(all)).every(({ kind }) => kind === "made")).toBe(true);
  expect(desk.facts().domains["a.example"]).toEqual({ made: 65, blocked: 0 });
});

test("so many bytes wait at most", async () => {
  const { encoder, desk } = rig();
  const large = (no: number): ImageJob =>
    job("", { source: Buffer.alloc(imageSourceBytesMax, no) });
  const first = desk.make(large(1));
  await until("the first is asked", () => encoder.asked[0]);
  const all = [2, 3, 4, 5].map(async (no) => desk.make(large(no)));
  await until("four wait", () => desk.facts().waiting === 4);
  expect(await desk.make(job("a small one"))).toEqual({ kind: "failed", reason: "busy" });
  for (let no = 0; no < 5; no++) await encoder.answer(no, made("x"));
  await Promise.all([first, ...all]);
});

test("a picture that waited too long for its turn is not made", async () => {
  const { encoder, desk } = rig({ times: { turnWaitMs: 0 } });
  expect(await desk.make(job("one"))).toEqual({ kind: "failed", reason: "busy" });
  expect(encoder.asked).toEqual([]);
  expect(desk.facts().domains).toEqual({});
});

test("the encoder rests for as long as it computed", async () => {
  const { encoder, desk } = rig();
  const [one, other] = [desk.make(job("one")), desk.make(job("two"))];
  await encoder.answer(0, made("1", 3_600_000));
  await one;
  for (let turns = 0; turns < 50; turns++) await turn();
  expect(encoder.asked.length).toBe(1);
  expect(desk.facts().waiting).toBe(1);
  await desk[Symbol.asyncDispose]();
  expect(await other).toEqual({ kind: "failed", reason: "the agent is stopping" });
});

test("behind a picture that cost next to nothing it rests, too", async () => {
  const resting = rig({ times: { restLeastMs: 3_600_000 } });
  const restless = rig({ times: { restLeastMs: 20 } });
  const [other] = [resting, restless].map(({ desk }) => {
    void desk.make(job("one"));
    return desk.make(job("two"));
  });
  await resting.encoder.answer(0, made("1", 1));
  await restless.encoder.answer(0, made("1", 1));
  await until("the other encoder has rested", () => restless.encoder.asked.length === 2);
  expect(resting.encoder.asked.length).toBe(1);
  await resting.desk[Symbol.asyncDispose]();
  expect(await other).toEqual({ kind: "failed", reason: "the agent is stopping" });
});

test("without a picture it ends after a while, and starts with the next one", async () => {
  const { encoder, desk } = rig({ times: { idleMs: 1 } });
  for (const no of [0, 1]) {
    const one = desk.make(job(`picture ${no}`));
    await encoder.answer(no, made("x"));
    await one;
    await until("it ends", () => encoder.stops === no + 1);
    expect(desk.facts().encoder).toBe("at rest");
  }
});

test("what the day's number holds back is counted once for each picture, and is told at once", async () => {
  const { encoder, desk, clock, count } = rig();
  const within = desk.make(job("one", { perDayMax: 1 }));
  await encoder.answer(0, made("x"));
  await within;
  for (const text of ["two", "three"])
    expect(await desk.make(job(text, { perDayMax: 1 }))).toEqual({ kind: "blocked" });
  expect(desk.facts().domains).toEqual({ "a.example": { made: 1, blocked: 2 } });
  const forms = { domain: "a.example", outcome: "blocked" };
  expect(await count("accel_agent_image_forms_total", forms)).toBe(2);
  clock.now = new Date("2026-11-30T00:00:00Z");
  const tomorrow = desk.make(job("two", { perDayMax: 1 }));
  await encoder.answer(1, made("x"));
  expect((await tomorrow).kind).toBe("made");
});

test("pictures that wait are held back when those before them have used the day up", async () => {
  const { encoder, desk } = rig();
  const all = ["one", "two", "three"].map(async (text) => desk.make(job(text, { perDayMax: 1 })));
  // Two workers ask for the same.
  all.push(desk.make(job("three", { perDayMax: 1 })));
  await encoder.answer(0, made("x"));
  expect((await Promise.all(all)).map(({ kind }) => kind).toSorted()).toEqual([
    "blocked",
    "blocked",
    "blocked",
    "made",
  ]);
  expect(desk.facts().domains).toEqual({ "a.example": { made: 1, blocked: 2 } });
});

test("a picture of two domains is taken of the day of one that has some left", async () => {
  const { encoder, desk } = rig();
  const holding = desk.make(job("one", { perDayMax: 1 }));
  await until("it is asked", () => encoder.asked[0]);
  const shared = [
    desk.make(job("two", { perDayMax: 2 })),
    desk.make(job("three", { perDayMax: 2 })),
    desk.make(job("three", { domain: "b.example" })),
  ];
  for (let no = 0; no < 3; no++) await encoder.answer(no, made("x"));
  expect((await Promise.all([holding, ...shared])).map(({ kind }) => kind)).toEqual([
    "made",
    "made",
    "made",
    "made",
  ]);
  expect(desk.facts().domains).toEqual({
    "a.example": { made: 2, blocked: 0 },
    "b.example": { made: 1, blocked: 0 },
  });
});

test("what comes of nothing is taken of the day as what is made is, and is not told as made", async () => {
  const { encoder, desk } = rig();
  const outcomes: Encoded[] = [
    { outcome: { kind: "worthless" }, cpuMs: 0 },
    { outcome: { kind: "unreadable", reason: "is broken" }, cpuMs: 0 },
    { outcome: { kind: "failed", reason: "no memory" }, cpuMs: 0 },
  ];
  for (const [no, encoded] of outcomes.entries()) {
    const one = desk.make(job(`picture ${no}`, { perDayMax: 4 }));
    await encoder.answer(no, encoded);
    expect(await one).toEqual(encoded.outcome);
  }
  const last = desk.make(job("the fourth", { perDayMax: 4 }));
  await encoder.answer(3, made("x"));
  await last;
  expect(await desk.make(job("the fifth", { perDayMax: 4 }))).toEqual({ kind: "blocked" });
  expect(desk.facts().domains).toEqual({ "a.example": { made: 1, blocked: 1 } });
  expect(desk.reported().get("a.example")?.today).toMatchObject({ made: 1, blocked: 1 });
});

test("what is no picture that is taken is known by its bytes, and costs the day one, whatever is asked of it", async () => {
  const { encoder, desk, count } = rig();
  const broken = { kind: "unreadable", reason: "is broken" } as const;
  // Some wait already when the first is found to be broken.
  const all = [
    desk.make(job("broken", { perDayMax: 2 })),
    desk.make(job("broken", { perDayMax: 2, form: "avif" })),
    desk.make(job("broken", { perDayMax: 2, form: "avif-640" })),
  ];
  await encoder.answer(0, { outcome: broken, cpuMs: 0 });
  for (const outcome of await Promise.all(all)) expect(outcome).toEqual(broken);
  for (const more of [{ form: "same-320" }, { quality: 60 }, { domain: "b.example" }] as const)
    expect(await desk.make(job("broken", more))).toEqual(broken);
  expect(encoder.asked.length).toBe(1);
  const good = desk.make(job("good", { perDayMax: 2 }));
  await encoder.answer(1, made("x"));
  expect((await good).kind).toBe("made");
  // Also where the day is used up: nothing is taken of it.
  expect(await desk.make(job("broken", { perDayMax: 2 }))).toEqual(broken);
  expect(desk.facts().domains).toEqual({ "a.example": { made: 1, blocked: 0 } });
  const forms = { domain: "a.example", outcome: "unreadable" };
  expect(await count("accel_agent_image_forms_total", forms)).toBe(6);
});

test("a form that is not worth it is known by the bytes, the form and the quality", async () => {
  const { encoder, desk } = rig();
  const one = desk.make(job("small"));
  await encoder.answer(0, { outcome: { kind: "worthless" }, cpuMs: 0 });
  await one;
  expect(await desk.make(job("small", { domain: "b.example" }))).toEqual({ kind: "worthless" });
  expect(encoder.asked.length).toBe(1);
  const others = [
    desk.make(job("small", { form: "avif" })),
    desk.make(job("small", { quality: 40 })),
  ];
  await encoder.answer(1, made("x"));
  await encoder.answer(2, made("x"));
  expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(["made", "made"]);
});

test("a picture that ended the encoder is named in the log, and the second time is the last", async () => {
  const { encoder, desk, lines, count } = rig();
  for (const no of [0, 1]) {
    const one = desk.make(job("a bomb", { form: no === 0 ? "webp" : "avif" }));
    await encoder.answer(no, killed("the encoder took 900 MiB"));
    expect(await one).toEqual({ kind: "failed", reason: "the encoder took 900 MiB" });
  }
  expect(await desk.make(job("a bomb"))).toEqual({
    kind: "unreadable",
    reason: "has ended the encoder twice",
  });
  expect(encoder.asked.length).toBe(2);
  expect(await count("accel_agent_image_encoder_ends_total")).toBe(2);
  expect(lines.filter(({ domain }) => domain === "a.example")).toEqual([
    expect.objectContaining({
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      form: "webp",
      bytes: 6,
      reason: "the encoder took 900 MiB",
    }),
    expect.objectContaining({ form: "avif" }),
  ]);
});

test("a picture that a busy host had no time for is tried as often as it is asked for", async () => {
  const { encoder, desk } = rig();
  for (const no of [0, 1, 2]) {
    const one = desk.make(job("innocent"));
    await encoder.answer(no, killed("the encoder did not answer within 60 s", false));
    expect((await one).kind).toBe("failed");
  }
  const last = desk.make(job("innocent"));
  await encoder.answer(3, made("x"));
  expect((await last).kind).toBe("made");
});

test("an encoder that dies again and again is warned of, until it is well", async () => {
  const { encoder, desk, health } = rig();
  for (const no of [0, 1, 2]) {
    expect(health.list()).toEqual([]);
    const one = desk.make(job(`picture ${no}`));
    await encoder.answer(no, killed("the encoder ended: SIGSEGV"));
    await one;
  }
  expect(health.list()).toMatchObject([
    { code: "images_encoder_failing", text: expect.stringMatching(/3 times in a row: .*SIGSEGV/) },
  ]);
  expect(desk.facts()).toMatchObject({ encoder: "failing", reason: "the encoder ended: SIGSEGV" });
  const good = desk.make(job("good"));
  await encoder.answer(3, made("x"));
  await good;
  expect(health.list()).toEqual([]);
});

test("behind a death the next picture waits", async () => {
  const { encoder, desk } = rig({ times: { pauseFirstMs: 3_600_000 } });
  const [one, other] = [desk.make(job("one")), desk.make(job("two"))];
  await encoder.answer(0, killed("the encoder ended: SIGSEGV"));
  await one;
  for (let turns = 0; turns < 50; turns++) await turn();
  expect(encoder.asked.length).toBe(1);
  await desk[Symbol.asyncDispose]();
  expect(await other).toEqual({ kind: "failed", reason: "the agent is stopping" });
});

test("an encoder that cannot start fails the picture, and takes none of the day", async () => {
  const { encoder, desk } = rig();
  encoder.opened = { kind: "failed", reason: "the encoder ended: 1" };
  expect(await desk.make(job("one"))).toEqual({ kind: "failed", reason: "the encoder ended: 1" });
  expect(desk.facts().domains).toEqual({});
});

test("without sharp it is said once, warned of, and nobody is held up", async () => {
  const { encoder, desk, health, lines } = rig();
  encoder.opened = { kind: "absent", reason: "sharp is not installed" };
  const absent = { kind: "absent", reason: "sharp is not installed" };
  for (const text of ["one", "two", "three"]) expect(await desk.make(job(text))).toEqual(absent);
  expect(lines.length).toBe(1);
  expect(health.list()).toMatchObject([
    { code: "images_no_encoder", hint: expect.stringMatching(/npm install sharp/) },
  ]);
  expect(desk.facts()).toMatchObject({ encoder: "absent", reason: "sharp is not installed" });
});

test("where the settings say so, there is none", async () => {
  const { encoder, desk, health } = rig({ off: "images.encoder is false" });
  expect(await desk.make(job("one"))).toEqual({
    kind: "absent",
    reason: "images.encoder is false",
  });
  expect(desk.facts()).toMatchObject({ encoder: "off", reason: "images.encoder is false" });
  expect(encoder.asked).toEqual([]);
  expect(health.list()).toEqual([]);
});

test("a stop answers what waits, ends the encoder, and keeps the day", async () => {
  const { encoder, desk, kept } = rig();
  const all = ["one", "two"].map(async (text) => desk.make(job(text)));
  await until("the first is asked", () => encoder.asked[0]);
  await desk[Symbol.asyncDispose]();
  for (const one of await Promise.all(all))
    expect(one).toEqual({ kind: "failed", reason: "the agent is stopping" });
  expect(encoder.stops).toBe(1);
  expect(kept()).toEqual({ day: "2026-11-29", spent: { "a.example": 1 } });
  expect(await desk.make(job("three"))).toEqual({
    kind: "failed",
    reason: "the agent is stopping",
  });
});
