// Request logs at rest: exactly once per lane, in order, through restarts, days, damage and retention; read back newest first, each once.

import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ReadRequest } from "../../src/central/agents/log-archive.ts";
import { removeMarked } from "../../src/central/agents/log-files.ts";
import { parsePosition } from "../../src/central/agents/log-position.ts";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import { batchText, requestRecord } from "../support/fake-agent.ts";
import { openTestDays, testOfFiles } from "../support/any-logs.ts";
import { Logs } from "../support/log-rig.ts";
import { tempDir } from "../support/temp-dir.ts";

const noon = Date.parse("2030-01-15T12:00:00Z");
const dayMs = 86_400_000;
const lane = { epoch: "00000000000000e1", no: 1 };

function open(directory: string, broken: string[] = []): Logs {
  return new Logs(directory, broken);
}

type Sent = { text?: string; lane?: typeof lane; nowMs?: number; siteId?: number };

function append(store: Logs, firstSeq: number, lastSeq: number, sent: Sent = {}) {
  const body = Buffer.from(sent.text ?? batchText(firstSeq, lastSeq));
  return store.append({
    siteId: 1,
    lane,
    firstSeq,
    lastSeq,
    encoding: "identity",
    nowMs: noon,
    ...sent,
    body,
  });
}

function read(store: Logs, more: Partial<ReadRequest> = {}) {
  const { lines, next } = store.read({
    siteId: 1,
    domain: "www.example.test",
    limit: 1000,
    after: undefined,
    since: undefined,
    until: undefined,
    ...more,
  });
  return { paths: lines.map((line) => (JSON.parse(line) as RequestRecord).uri_path), next };
}

/** The whole walk, page by page. */
function walk(store: Logs, limit: number, between: () => void = () => {}): string[] {
  const all: string[] = [];
  let after: ReadRequest["after"];
  for (;;) {
    const { paths, next } = read(store, { limit, after });
    all.push(...paths);
    if (next === undefined) return all;
    after = parsePosition(next);
    between();
  }
}

test("a lane is taken in once and in order", () => {
  using dir = tempDir();
  using store = open(dir.path);
  const taken = { kind: "committed", through: 3, records: 3, lost: {}, unproven: 0 };
  expect(append(store, 1, 3)).toEqual(taken);
  expect(append(store, 1, 3)).toEqual({ kind: "repeated", through: 3 });
  expect(append(store, 2, 3)).toEqual({ kind: "repeated", through: 3 });
  expect(append(store, 3, 5)).toEqual({ kind: "conflict", mark: 3 });
  expect(append(store, 5, 6)).toEqual({ kind: "conflict", mark: 3 });
  expect(append(store, 4, 5)).toMatchObject({ kind: "committed", through: 5 });
  // Another lane, another epoch, another site: each has a mark of its own.
  expect(append(store, 2, 2, { lane: { ...lane, no: 2 } })).toEqual({ kind: "conflict", mark: 0 });
  expect(append(store, 1, 1, { lane: { ...lane, no: 2 } })).toMatchObject({ kind: "committed" });
  expect(append(store, 1, 1, { siteId: 2 })).toMatchObject({ kind: "committed" });
  expect(read(store).paths).toEqual(["/1", "/5", "/4", "/3", "/2", "/1"]);
});

test("gaps count for the numbers they cover and are no records", () => {
  using dir = tempDir();
  using store = open(dir.path);
  const gap = (from_seq: number, to_seq: number, more = {}) =>
    `${JSON.stringify({ gap: { from_seq, to_seq, reason: "behind", ...more } })}\n`;
  const text = batchText(1, 2) + gap(3, 9) + batchText(10, 10);
  expect(append(store, 1, 10, { text })).toEqual({
    kind: "committed",
    through: 10,
    records: 3,
    lost: { behind: 7 },
    unproven: 0,
  });
  expect(read(store).paths).toEqual(["/10", "/2", "/1"]);
  expect(append(store, 11, 14, { text: gap(11, 14, { at_least: 5, at_most: 4 }) })).toMatchObject({
    kind: "invalid",
    message: "line 1: the gap 11 to 14 covers 4 numbers, not at least 5 and at most 4",
  });
  expect(append(store, 11, 14, { text: gap(11, 14, { at_least: 0, at_most: 5 }) })).toMatchObject({
    kind: "invalid",
  });
  expect(append(store, 11, 12, { text: gap(12, 12) })).toMatchObject({
    kind: "invalid",
    message: "line 1: the gap 12 to 12 stands where 11 is due",
  });
  expect(append(store, 11, 11, { text: gap(11, 12) })).toMatchObject({ kind: "invalid" });
});

test("of a crash only what is proven counts as lost; an older agent proves nothing", () => {
  using dir = tempDir();
  using store = open(dir.path);
  const crash = (from_seq: number, to_seq: number, more = {}) =>
    `${JSON.stringify({ gap: { from_seq, to_seq, reason: "crash", ...more } })}\n`;
  const rows = [
    crash(1, 16, { at_least: 0, at_most: 16 }),
    crash(17, 19, { at_least: 3, at_most: 3 }),
    crash(20, 24),
  ];
  expect(append(store, 1, 24, { text: rows.join("") })).toMatchObject({
    lost: { crash: 3 },
    unproven: 21,
  });
});

test("what is wrong is told with its line, and nothing of the batch is kept", () => {
  using dir = tempDir();
  using store = open(dir.path);
  const bad = JSON.stringify({ ...requestRecord(), cache: "maybe" });
  const rows: readonly (readonly [string, RegExp])[] = [
    [`${batchText(1, 1)}{"torn`, /^line 2: no JSON/],
    [batchText(1, 1) + bad, /^line 2: \/cache: /],
    [
      batchText(1, 1) + JSON.stringify({ ...requestRecord(), more: 1 }),
      /^line 2: .*\/more: unknown/,
    ],
    [`${batchText(1, 1)}\n`, /^line 2: no JSON/],
    [batchText(1, 1), /^the lines cover 1 to 1, not to 2$/],
    [batchText(1, 3), /^the lines cover 1 to 3, not to 2$/],
    ["", /^the lines cover 1 to 0, not to 2$/],
  ];
  for (const [text, message] of rows)
    expect(append(store, 1, 2, { text })).toEqual({
      kind: "invalid",
      message: expect.stringMatching(message),
    });
  const latin1 = Buffer.from(JSON.stringify(requestRecord({ uri_path: "/é" })), "latin1");
  const raw = { siteId: 1, lane, firstSeq: 1, lastSeq: 1, nowMs: noon };
  expect(store.append({ ...raw, encoding: "identity", body: latin1 })).toMatchObject({
    kind: "invalid",
  });
  expect(store.append({ ...raw, encoding: "zstd", body: latin1 })).toMatchObject({
    kind: "invalid",
    message: expect.stringMatching(/^the body is no whole zstd data/),
  });
  expect(append(store, 1, 2001)).toMatchObject({ kind: "too_large" });
  expect(read(store).paths).toEqual([]);
  expect(append(store, 1, 2)).toMatchObject({ kind: "committed" });
});

test("records and marks survive a process that ends without closing", () => {
  using dir = tempDir();
  const killed = open(dir.path);
  append(killed, 1, 3);
  append(killed, 4, 4, { nowMs: noon + dayMs });
  // Not disposed: the next one finds the write-ahead log as a killed process leaves it.
  using store = open(dir.path);
  expect(append(store, 1, 3, { nowMs: noon + dayMs })).toEqual({ kind: "repeated", through: 4 });
  expect(append(store, 5, 5, { nowMs: noon + dayMs })).toMatchObject({ kind: "committed" });
  expect(read(store).paths).toEqual(["/5", "/4", "/3", "/2", "/1"]);
  killed[Symbol.dispose]();
});

test("each day is kept apart, marks go on from day to day, and days never go back", () => {
  using dir = tempDir();
  using store = open(dir.path);
  append(store, 1, 1);
  append(store, 2, 2, { nowMs: noon + dayMs });
  append(store, 3, 3, { nowMs: noon });
  expect(read(store, { limit: 1 }).next).toMatch(/\.2030-01-16\.2$/);
  using days = openTestDays(dir.path);
  expect(days.list()).toEqual(["2030-01-15", "2030-01-16"]);
  // Forgotten after 90 days without a batch: what still comes is refused, not counted again.
  append(store, 1, 1, { lane: { ...lane, no: 9 }, nowMs: noon + dayMs });
  append(store, 4, 4, { nowMs: noon + 50 * dayMs });
  append(store, 5, 5, { nowMs: noon + 92 * dayMs });
  expect(append(store, 2, 2, { lane: { ...lane, no: 9 }, nowMs: noon + 92 * dayMs })).toEqual({
    kind: "conflict",
    mark: 0,
  });
  expect(append(store, 6, 6, { nowMs: noon + 92 * dayMs })).toMatchObject({ kind: "committed" });
});

test("the mark of a lane is carried on for 90 days after it was last written", () => {
  using dir = tempDir();
  using store = open(dir.path);
  const other = { ...lane, no: 2 };
  append(store, 1, 3);
  append(store, 1, 3, { lane: other, nowMs: noon - 1 });
  const nowMs = noon + 90 * dayMs;
  expect(append(store, 1, 3, { nowMs })).toEqual({ kind: "repeated", through: 3 });
  expect(append(store, 4, 5, { nowMs })).toMatchObject({ kind: "committed", through: 5 });
  expect(append(store, 4, 5, { nowMs, lane: other })).toEqual({ kind: "conflict", mark: 0 });
});

test("retention unlinks the oldest days by age and by size, never the newest, and keeps the marks", async () => {
  using dir = tempDir();
  using store = open(dir.path);
  for (let day = 0; day < 5; day++) append(store, day + 1, day + 1, { nowMs: noon + day * dayMs });
  const never = Number.MAX_SAFE_INTEGER;
  const now = noon + 4 * dayMs;
  expect(store.retain({ ageMs: 3 * dayMs, bytesMax: never }, now)).toEqual(["2030-01-15"]);
  const { bytes } = store.store.stats();
  expect(store.retain({ ageMs: 30 * dayMs, bytesMax: bytes }, now)).toEqual([]);
  expect(store.retain({ ageMs: 30 * dayMs, bytesMax: bytes - 1 }, now)).toEqual(["2030-01-16"]);
  expect(store.retain({ ageMs: 0, bytesMax: 0 }, now + 99 * dayMs)).toEqual([
    "2030-01-17",
    "2030-01-18",
  ]);
  expect(read(store).paths).toEqual(["/5"]);
  await removeMarked(dir.path);
  expect(readdirSync(dir.path).filter((name) => /^2030-01-1[^9]/.test(name))).toEqual([]);
  expect(append(store, 1, 5, { nowMs: now })).toEqual({ kind: "repeated", through: 5 });
});

test("a walk meets each record once while new ones arrive, and goes on behind a day that is gone", () => {
  using dir = tempDir();
  using store = open(dir.path);
  for (let day = 0; day < 4; day++)
    append(store, day * 10 + 1, day * 10 + 10, { nowMs: noon + day * dayMs });
  const expected = Array.from({ length: 40 }, (_, i) => `/${40 - i}`);
  let last = 40;
  const more = (): void => {
    last++;
    append(store, last, last, { nowMs: noon + 3 * dayMs });
  };
  for (const limit of [1, 3, 10, 39, 40, 41]) {
    const from = last;
    const newest = Array.from({ length: from - 40 }, (_, i) => `/${from - i}`);
    expect(walk(store, limit, more)).toEqual([...newest, ...expected]);
  }
  const { next } = read(store, { limit: last - 40 + 15 });
  store.retain({ ageMs: 2 * dayMs - 1, bytesMax: 1e12 }, noon + 4 * dayMs);
  expect(read(store, { after: parsePosition(next ?? "") }).paths).toEqual([
    "/25",
    "/24",
    "/23",
    "/22",
    "/21",
  ]);
});

test("domains and times are told apart", () => {
  using dir = tempDir();
  using store = open(dir.path);
  const t = noon / 1_000;
  const rows = [
    { uri_path: "/a", when: t - 10 },
    { uri_path: "/b", when: t - 5, domain: "other.example.test" },
    { uri_path: "/c", when: t - 3, domain: null },
    { uri_path: "/d", when: t },
  ];
  const text = rows.map((row) => `${JSON.stringify(requestRecord(row))}\n`).join("");
  append(store, 1, 4, { text });
  const other = { domain: "other.example.test" };
  expect(read(store).paths).toEqual(["/d", "/a"]);
  expect(read(store, other).paths).toEqual(["/b"]);
  expect(read(store, { since: t - 10, until: t }).paths).toEqual(["/d", "/a"]);
  expect(read(store, { since: t - 9.999_999 }).paths).toEqual(["/d"]);
  expect(read(store, { until: t - 0.000_001 }).paths).toEqual(["/a"]);
  expect(read(store, { ...other, since: t - 9, until: t - 1 }).paths).toEqual(["/b"]);
  expect(read(store, { ...other, since: t - 4 }).paths).toEqual([]);
  expect(read(store, { siteId: 2 }).paths).toEqual([]);
  // Days after which nothing can have happened so late are not looked at; those before are.
  expect(read(store, { since: t + 3 * 86_400 }).paths).toEqual([]);
});

testOfFiles(
  "a broken file is set aside, told, and begun anew with the marks of the day before",
  () => {
    using dir = tempDir();
    {
      using store = open(dir.path);
      append(store, 1, 2);
      append(store, 3, 4, { nowMs: noon + dayMs });
    }
    writeFileSync(join(dir.path, "2030-01-16.db"), "this is no database, whatever its name says");
    const broken: string[] = [];
    using store = open(dir.path, broken);
    expect(read(store).paths).toEqual(["/2", "/1"]);
    expect(broken).toEqual([join(dir.path, "2030-01-16.db.broken")]);
    const aside = (): readonly string[] =>
      readdirSync(dir.path).filter((name) => name.endsWith(".broken"));
    store.retain({ ageMs: dayMs, bytesMax: 1e12 }, noon + 2 * dayMs);
    expect(aside()).toEqual(["2030-01-16.db.broken"]);
    expect(append(store, 5, 5, { nowMs: noon + dayMs })).toEqual({ kind: "conflict", mark: 2 });
    expect(append(store, 3, 5, { nowMs: noon + dayMs })).toMatchObject({ kind: "committed" });
    expect(read(store).paths).toEqual(["/5", "/4", "/3", "/2", "/1"]);
    store.retain({ ageMs: dayMs, bytesMax: 1e12 }, noon + 4 * dayMs);
    expect(aside()).toEqual([]);
  },
);

test("whatever batches come, in whatever order and however often, each record is there once", () => {
  const batches = fc.array(
    fc.record({ first: fc.integer({ min: 1, max: 12 }), count: fc.integer({ min: 1, max: 4 }) }),
    { maxLength: 20 },
  );
  fc.assert(
    fc.property(batches, fc.integer({ min: 1, max: 5 }), (sent, limit) => {
      using dir = tempDir();
      let mark = 0;
      let store = open(dir.path);
      for (const [at, { first, count }] of sent.entries()) {
        const last = first + count - 1;
        const outcome = append(store, first, last, { nowMs: noon + (at % 3) * dayMs });
        if (last <= mark) expect(outcome).toEqual({ kind: "repeated", through: mark });
        else if (first !== mark + 1) expect(outcome).toEqual({ kind: "conflict", mark });
        else {
          expect(outcome).toMatchObject({ kind: "committed", through: last });
          mark = last;
        }
        if (at % 5 === 4) {
          store[Symbol.dispose]();
          store = open(dir.path);
        }
      }
      expect(walk(store, limit)).toEqual(Array.from({ length: mark }, (_, i) => `/${mark - i}`));
      store[Symbol.dispose]();
    }),
    { numRuns: 15 },
  );
});
