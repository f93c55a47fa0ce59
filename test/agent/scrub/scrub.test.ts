// The scrub as main runs it: one at a time, gone on with after a restart, told to operators, with every finding given to whoever repairs it.

import { afterEach, expect, test, vi } from "vitest";
import type { WalkPosition, WalkMessage } from "../../../src/agent/scrub/messages.ts";
import { Scrub, type Repaired, type ScrubPorts } from "../../../src/agent/scrub/scrub.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import type { Json } from "../../../src/core/journal/canonical-json.ts";
import { parseSha256 } from "../../../src/core/ids.ts";
import { until } from "../../support/until.ts";

const parsed = parseSha256("a".repeat(64));
if (parsed === undefined) throw new TypeError("not a digest");
const sha256 = parsed;

/** agent.db outlives a scene, as it does a process. */
class Scene implements AsyncDisposable {
  readonly documents = new Map<string, Json | null>();
  readonly health = new Health(() => new Date(0));
  readonly registry = new Registry();
  readonly scrub: Scrub;
  /** Where walks began. */
  readonly walks: WalkPosition[] = [];
  readonly asked: unknown[] = [];
  repaired: Repaired = "repaired";
  verdict: Awaited<ReturnType<ScrubPorts["checkIndex"]>> = { kind: "whole" };
  tell: (message: WalkMessage) => void = () => undefined;
  #end: () => void = () => undefined;
  #rested: () => void = () => undefined;

  constructor(
    documents = new Map<string, Json | null>(),
    schedule = "17 2 * * *",
    now = (): Date => new Date(1_700_000_000_000),
  ) {
    this.documents = documents;
    this.scrub = new Scrub({
      documents: {
        get: (key) => documents.get(key),
        put: (changes) => {
          for (const [key, value] of Object.entries(changes)) documents.set(key, value);
        },
      },
      walk: async (from, onMessage, stop) => {
        this.walks.push(from);
        this.tell = onMessage;
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#end = resolve;
        stop.addEventListener("abort", () => resolve());
        await promise;
      },
      checkIndex: async () => this.verdict,
      dropBody: async (id) => void this.asked.push(id),
      mendBlob: async (...damage) => {
        this.asked.push(damage);
        return this.repaired;
      },
      schedule,
      now,
      registry: this.registry,
      health: this.health,
      log: silentLog(),
      stop: new AbortController().signal,
      wait: async (_, stop) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#rested = resolve;
        stop.addEventListener("abort", () => resolve());
        await promise;
        return !stop.aborted;
      },
    });
  }

  async begun(): Promise<void> {
    const before = this.walks.length;
    this.scrub.begin();
    await until("it walks", () => this.walks.length > before);
  }

  checked(what: "bodies" | "blobs", count: number, after: string): void {
    const position = { stage: what, after } as const;
    this.tell({ kind: "checked", what, count, bytes: 100 * count, position });
  }

  async done(): Promise<void> {
    this.tell({ kind: "done" });
    this.#end();
    await until("it is over", () => this.scrub.facts().state !== "running");
  }

  rested(): void {
    this.#rested();
  }

  async metric(name: string): Promise<unknown> {
    const metric = await this.registry.getSingleMetric(`accel_agent_scrub_${name}`)?.get();
    return Object.fromEntries(
      (metric?.values ?? []).map(({ labels, value }) => [String(labels["what"] ?? ""), value]),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scrub[Symbol.asyncDispose]();
  }
}

test("a pass that finds nothing is told with its sums, and no warning stands", async () => {
  await using scene = new Scene();
  expect(scene.scrub.facts()).toMatchObject({ state: "resting", pass: null, last: null });
  expect(await scene.metric("running")).toEqual({ "": 0 });
  await scene.begun();
  expect(await scene.metric("running")).toEqual({ "": 1 });
  scene.checked("bodies", 3, "9");
  scene.checked("blobs", 4, "f");
  expect(scene.scrub.facts()).toMatchObject({ state: "running", pass: { bytes: 700 } });
  await scene.done();
  const at = "2023-11-14T22:13:20.000Z";
  expect(scene.scrub.facts()).toMatchObject({
    state: "resting",
    pass: null,
    last: { started_at: at, finished_at: at, checked: { index: 1, bodies: 3, blobs: 4 } },
  });
  expect(scene.health.list()).toEqual([]);
  expect(await scene.metric("running")).toEqual({ "": 0 });
  expect(await scene.metric("checked_total")).toEqual({ index: 1, bodies: 3, blobs: 4 });
  expect(await scene.metric("finished_timestamp_seconds")).toEqual({ "": 1_700_000_000 });
});

test("what is damaged goes to whoever repairs it, and the warning stands until a whole pass finds nothing", async () => {
  await using scene = new Scene();
  scene.verdict = { kind: "damaged", reason: "malformed" };
  await scene.begun();
  scene.tell({ kind: "damaged body", id: 7, reason: "it is missing" });
  scene.tell({ kind: "damaged blob", sha256, reason: "other bytes" });
  await until("both are asked for", () => scene.asked.length === 2);
  expect(scene.asked).toEqual([7, [sha256, "other bytes"]]);
  const text = expect.stringContaining("1 files of versions, 1 cached bodies, the cache index");
  await until("they are repaired", () =>
    scene.health.list().some((one) => one.text.includes("3 of 3 are repaired")),
  );
  expect(scene.health.list()).toMatchObject([{ code: "scrub_damage", severity: "warning", text }]);
  await scene.done();
  expect(scene.health.list().length).toBe(1);
  expect(await scene.metric("damaged_total")).toEqual({ index: 1, bodies: 1, blobs: 1 });
  expect(await scene.metric("repaired_total")).toEqual({ index: 1, bodies: 1, blobs: 1 });
  // So does a process that starts meanwhile.
  await using next = new Scene(scene.documents);
  expect(next.health.list()).toMatchObject([{ code: "scrub_damage" }]);
  await next.begun();
  await next.done();
  expect(next.health.list()).toEqual([]);
});

test("what could not be repaired is not counted as repaired", async () => {
  await using scene = new Scene();
  scene.repaired = "left";
  await scene.begun();
  scene.tell({ kind: "damaged blob", sha256, reason: "other bytes" });
  await scene.done();
  expect(scene.scrub.facts().last).toMatchObject({ damaged: { blobs: 1 }, repaired: { blobs: 0 } });
});

test("there is one at a time", async () => {
  await using scene = new Scene();
  await scene.begun();
  scene.scrub.begin();
  scene.scrub.begin();
  await scene.done();
  expect(scene.walks.length).toBe(1);
});

test("a stop ends it at once, and a restart goes on with it after a while, sums and all", async () => {
  const first = new Scene();
  await first.begun();
  first.checked("blobs", 5, "abc");
  first.tell({ kind: "damaged blob", sha256, reason: "other bytes" });
  await first[Symbol.asyncDispose]();
  await using next = new Scene(first.documents);
  expect(next.walks).toEqual([]);
  expect(next.scrub.facts()).toMatchObject({ state: "resting", pass: { checked: { blobs: 5 } } });
  next.rested();
  await until("it goes on", () => next.walks.length === 1);
  expect(next.walks).toEqual([{ stage: "blobs", after: "abc" }]);
  next.checked("blobs", 2, "fff");
  await next.done();
  expect(next.scrub.facts().last).toMatchObject({ checked: { blobs: 7 }, damaged: { blobs: 1 } });
});

test("an index that could not be checked is said, and what is behind it is looked at", async () => {
  await using scene = new Scene();
  scene.verdict = { kind: "unchecked", reason: "over the budget" };
  await scene.begun();
  scene.tell({ kind: "skipped", what: "bodies", reason: "no index" });
  await scene.done();
  expect(scene.scrub.facts().last).toMatchObject({
    checked: { index: 0 },
    unchecked: { index: "over the budget", bodies: "no index" },
  });
  expect(scene.health.list()).toEqual([]);
});

test("switched off, it runs when an operator asks, and goes on with nothing by itself", async () => {
  const first = new Scene(new Map(), "off");
  expect(first.scrub.facts().state).toBe("off");
  await first.begun();
  first.checked("blobs", 1, "a");
  await first[Symbol.asyncDispose]();
  await using next = new Scene(first.documents, "off");
  next.rested();
  expect(next.scrub.facts().state).toBe("off");
  await next.begun();
  expect(next.walks).toEqual([{ stage: "blobs", after: "a" }]);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("where it stands is written each half minute: a crash has at most so much looked at again", async () => {
  await using scene = new Scene();
  await scene.begun();
  const position = (): unknown => scene.documents.get("scrub");
  const atIndex = { pass: { position: { stage: "bodies", after: "" } } };
  expect(position()).toMatchObject(atIndex);
  const clock = vi.spyOn(performance, "now");
  // Whole, so that differences are exact.
  const nowMs = Math.ceil(performance.now());
  clock.mockReturnValue(nowMs + 10_000);
  scene.checked("bodies", 1, "1");
  expect(position()).toMatchObject(atIndex);
  clock.mockReturnValue(nowMs + 30_000);
  scene.checked("bodies", 1, "2");
  expect(position()).toMatchObject({ pass: { position: { stage: "bodies", after: "2" } } });
  clock.mockReturnValue(nowMs + 59_999);
  scene.checked("bodies", 1, "3");
  expect(position()).toMatchObject({ pass: { position: { stage: "bodies", after: "2" } } });
  clock.mockReturnValue(nowMs + 60_000);
  scene.checked("bodies", 1, "4");
  expect(position()).toMatchObject({ pass: { position: { stage: "bodies", after: "4" } } });
  clock.mockRestore();
});

test("a time for it that passed while the host slept is left out, and nothing is printed beside the log", async () => {
  vi.useFakeTimers({
    now: new Date("2031-01-01T02:00:00"),
    toFake: ["setTimeout", "clearTimeout", "Date"],
  });
  const printed = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  await using scene = new Scene(new Map(), "17 * * * *", () => new Date());
  vi.setSystemTime(new Date("2031-01-01T09:00:00"));
  await vi.advanceTimersByTimeAsync(30 * 60_000);
  expect(printed).not.toHaveBeenCalled();
  expect(scene.walks).toHaveLength(1);
});
