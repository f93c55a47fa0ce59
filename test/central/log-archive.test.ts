// The walk through request logs: whatever arrived when and in whatever order, it is newest first, each record once, within the time asked for.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/base/sqlite.ts";
import { LogArchive, type ReadRequest } from "../../src/central/agents/log-archive.ts";
import { parsePosition } from "../../src/central/agents/log-position.ts";
import type { LogWriter } from "../../src/central/agents/log-engine.ts";
import { dayMigrations } from "../../src/central/agents/log-tables.ts";
import { openTestDays, openTestWriter, testOfFiles } from "../support/any-logs.ts";
import { requestRecord } from "../support/fake-agent.ts";
import { tempDir } from "../support/temp-dir.ts";

const noon = Date.parse("2030-01-15T12:00:00Z");
const dayMs = 86_400_000;
const domains = ["a.example.test", "b.example.test"];

type Made = { readonly domain: string; readonly when: number; readonly no: number };

function add(store: LogWriter, made: readonly Made[], laneNo: number, nowMs: number): void {
  const rows = made.map(({ domain, when, no }) =>
    JSON.stringify(requestRecord({ domain, when, uri_path: `/${no}` })),
  );
  const [outcome] = store.append([
    {
      siteId: 1,
      lane: { epoch: "00000000000000e1", no: laneNo },
      firstSeq: 1,
      lastSeq: made.length,
      encoding: "identity",
      body: Buffer.from(rows.join("\n")),
      nowMs,
    },
  ]);
  expect(outcome?.kind).toBe("committed");
}

function pageOf(archive: LogArchive, request: Partial<ReadRequest>) {
  const none = { after: undefined, since: undefined, until: undefined };
  const page = archive.read({ siteId: 1, domain: "", limit: 1_000, ...none, ...request });
  if (page.kind === "broken") throw new Error(page.message);
  const found = page.lines.map((line) => {
    const { when, uri_path: path } = Object(JSON.parse(line));
    return { when: Number(when), no: Number(String(path).slice(1)) };
  });
  return { found, next: page.next };
}

function walk(archive: LogArchive, request: Partial<ReadRequest>) {
  const all: { when: number; no: number }[] = [];
  let after: ReadRequest["after"];
  for (;;) {
    const { found, next } = pageOf(archive, { ...request, after });
    all.push(...found);
    if (next === undefined) return all;
    after = parsePosition(next);
    expect(after).toBeDefined();
  }
}

// Few times, so that they meet; some in other years, as clocks that are off say.
const aTime = fc.oneof(
  fc.integer({ min: -6, max: 6 }).map((hours) => noon / 1_000 + hours * 7_200 + 0.000_001),
  fc.integer({ min: 0, max: 4 }).map((n) => n * 1_000_000_000.5),
);

test("it is the order of when requests happened, whichever day and lane they came by", () => {
  const batch = fc.record({
    day: fc.integer({ min: 0, max: 4 }),
    rows: fc.array(fc.record({ domain: fc.constantFrom(...domains), when: aTime }), {
      minLength: 1,
      maxLength: 12,
    }),
  });
  const bounds = fc.option(aTime, { nil: undefined });
  fc.assert(
    fc.property(
      fc.array(batch, { maxLength: 8 }),
      bounds,
      bounds,
      fc.integer({ min: 1, max: 9 }),
      (batches, since, until, limit) => {
        using dir = tempDir();
        using store = openTestWriter(dir.path, () => {});
        using archive = new LogArchive(openTestDays(dir.path));
        const made: Made[] = [];
        for (const [at, { day, rows }] of batches.entries()) {
          const numbered = rows.map((row, i) => ({ ...row, no: made.length + i }));
          made.push(...numbered);
          add(store, numbered, at + 1, noon + day * dayMs);
        }
        for (const domain of domains) {
          const within = made.filter(
            ({ when, domain: of }) =>
              of === domain && when >= (since ?? when) && when <= (until ?? when),
          );
          const walked = walk(archive, { domain, since, until, limit });
          const numbers = (list: readonly { readonly no: number }[]): readonly number[] =>
            list.map(({ no }) => no).toSorted((a, b) => a - b);
          expect(numbers(walked)).toEqual(numbers(within));
          const times = walked.map(({ when }) => when);
          expect(times).toEqual(times.toSorted((a, b) => b - a));
        }
      },
    ),
    { numRuns: 40 },
  );
});

test("a backlog that arrives during a walk disturbs nothing: what was there comes once", () => {
  using dir = tempDir();
  using store = openTestWriter(dir.path, () => {});
  using archive = new LogArchive(openTestDays(dir.path));
  const [domain = ""] = domains;
  const rows = (from: number, count: number, whenOf: (at: number) => number): readonly Made[] =>
    Array.from({ length: count }, (_, at) => ({ domain, when: whenOf(at), no: from + at }));
  const start = noon / 1_000;
  add(
    store,
    rows(0, 500, (at) => start + at),
    1,
    noon,
  );
  const first = pageOf(archive, { domain, limit: 200 });
  // Half of it above the place of the walk, half below.
  add(
    store,
    rows(1_000, 500, (at) => start + at + 0.5),
    2,
    noon + dayMs,
  );
  const rest: number[] = [];
  for (let { next } = first; next !== undefined;) {
    const page = pageOf(archive, { domain, limit: 77, after: parsePosition(next) });
    rest.push(...page.found.map(({ no }) => no));
    next = page.next;
  }
  const met = [...first.found.map(({ no }) => no), ...rest];
  expect(new Set(met).size).toBe(met.length);
  expect(met.filter((no) => no < 1_000)).toEqual(Array.from({ length: 500 }, (_, i) => 499 - i));
});

test("more days than are kept open are walked, though clocks that are off make them overlap", () => {
  using dir = tempDir();
  using store = openTestWriter(dir.path, () => {});
  using archive = new LogArchive(openTestDays(dir.path));
  const [domain = "", other = ""] = domains;
  const days = 72;
  for (let day = 0; day < days; day++) {
    const when = noon / 1_000 + day * 86_400;
    const made = [
      { domain: day === 3 || day === 6 ? other : domain, when, no: day },
      { domain, when: 4_000_000_000 - day, no: 1_000 + day },
    ];
    add(store, made, day + 1, noon + day * dayMs);
  }
  const numbers = (found: readonly { no: number }[]) => found.map(({ no }) => no);
  expect(numbers(walk(archive, { domain: other }))).toEqual([6, 3]);
  const ahead = Array.from({ length: days }, (_, day) => 1_000 + day);
  const rest = Array.from({ length: days }, (_, at) => days - 1 - at);
  expect(numbers(walk(archive, { domain, limit: 10 }))).toEqual([
    ...ahead,
    ...rest.filter((day) => day !== 3 && day !== 6),
  ]);
  const since = noon / 1_000 + 9 * 86_400;
  expect(numbers(pageOf(archive, { domain, since, until: since + 86_400 }).found)).toEqual([10, 9]);
});

testOfFiles("files of the first schema are brought up to date with all that is in them", () => {
  using dir = tempDir();
  const db = openSqlite(`${dir.path}/2030-01-15.db`, { sync: "full" });
  dayMigrations[0]?.(db);
  db.exec("INSERT INTO lane VALUES (1, 1, '00000000000000e1', 1, 3, 1894708800000)");
  const insert = db.prepare("INSERT INTO record VALUES (?, 1, ?, 1, ?, ?, ?)");
  const rows = [
    [1, "a.example.test", 1_894_708_800.25],
    [2, null, 1_894_708_801],
    [3, "a.example.test", 1_894_708_799.000_001],
  ] as const;
  for (const [id, domain, when] of rows)
    insert.run(id, domain, id, when, JSON.stringify({ when, uri_path: `/${id}` }));
  db.pragma("user_version = 1");
  db.close();
  using archive = new LogArchive(openTestDays(dir.path));
  expect(pageOf(archive, { domain: "a.example.test" }).found).toEqual([]); // Not before it is brought up to date.
  using store = openTestWriter(dir.path, () => {});
  const found = pageOf(archive, { domain: "a.example.test", since: 1_894_708_799.000_001 }).found;
  expect(found.map(({ no }) => no)).toEqual([1, 3]);
  const request = {
    siteId: 1,
    lane: { epoch: "00000000000000e1", no: 1 },
    firstSeq: 5,
    lastSeq: 5,
    encoding: "identity" as const,
    body: Buffer.from(JSON.stringify(requestRecord())),
    nowMs: noon,
  };
  expect(store.append([request])).toEqual([{ kind: "conflict", mark: 3 }]);
});
