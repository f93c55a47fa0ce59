// Numbers of requests: they equal what the stored records add up to, whatever comes late, twice, goes, breaks or returns.

import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { AnalyticsRig, firstDayMs, sumsOf, type Line } from "../../support/analytics-rig.ts";
import { testOfFiles } from "../../support/any-logs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const dayMs = 86_400_000;
const hourS = 3_600;

function open(directory: string): AnalyticsRig {
  mkdirSync(join(directory, "logs"));
  return new AnalyticsRig(directory);
}

/** Whether the totals, by day and by hour of the last days, are those of the stored records. */
function hold(rig: AnalyticsRig): void {
  const totals = sumsOf(rig.records());
  for (const query of [{}, { step: "hour", since: rig.nowMs / 1e3 - 50 * 86_400 }] as const) {
    const told = rig.ask({ ...query, by: "status" });
    expect(told.complete).toBe(true);
    expect(told.totals).toMatchObject(totals);
    expect(told.totals.edge.requests).toBe(totals.requests);
    const sum = told.series.reduce((requests, one) => requests + one.requests, 0);
    expect(sum).toBe(totals.requests);
  }
}

const line: fc.Arbitrary<Line> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({}) },
  {
    weight: 5,
    arbitrary: fc.record({
      response_status: fc.constantFrom(200, 304, 404, 503),
      bytes_sent: fc.nat(1e6),
      cache: fc.constantFrom("hit", "miss", "stale", "none"),
      uri_path: fc.nat(30).map((no) => `/${no}?q=${no}`),
      // Up to 40 days late.
      when: fc.nat(40 * 86_400).map((lateS) => firstDayMs / 1e3 - lateS),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ gap: { count: 3, reason: "disk_full" } }) },
);

type Step =
  | { readonly lines: readonly Line[] }
  | { readonly act: "fold" | "restart" | "day" | "again" };
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ lines: fc.array(line, { minLength: 1, maxLength: 12 }) }),
  fc.constantFrom("fold", "restart", "day", "again").map((act) => ({ act }) as const),
);

test("whatever comes in whatever order, late, twice and over restarts: numbers are those of the logs", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 14 }), (steps) => {
      using dir = tempDir();
      using rig = open(dir.path);
      let last: ReturnType<AnalyticsRig["send"]>["batch"] | undefined;
      for (const one of steps) {
        if ("lines" in one) ({ batch: last } = rig.send(one.lines));
        else if (one.act === "fold") rig.fold();
        else if (one.act === "restart") rig.restart();
        else if (one.act === "day") rig.nowMs += dayMs;
        else if (last !== undefined)
          expect(rig.store.append([last])).toMatchObject([{ kind: "repeated" }]);
      }
      hold(rig);
      rig.fold();
      hold(rig);
    }),
    { numRuns: 25 },
  );
});

let seed = 0;
beforeEach(() => {
  seed = 0;
});
/** Some records, each of another size. */
function some(count: number, more: Line = {}): readonly Line[] {
  return Array.from({ length: count }, () => ({
    bytes_sent: ++seed,
    uri_path: `/p${seed % 7}?v=${seed}`,
    response_status: seed % 5 === 0 ? 404 : 200,
    ...more,
  }));
}

/** Three days with some records, the second also with late ones of the first; the third is written. */
function threeDays(rig: AnalyticsRig): void {
  rig.send(some(10));
  rig.nowMs += dayMs;
  rig.send([...some(5), ...some(4, { when: firstDayMs / 1e3 + 60 })]);
  rig.nowMs += dayMs;
  rig.send(some(3));
}

test("a day that retention removes leaves its numbers, and no address; one that is not folded stays", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  threeDays(rig);
  const before = rig.ask({ by: "status" });
  expect(before.totals.requests).toBe(22);
  expect(rig.analytics.done(rig.nowMs)).toEqual([]); // The most frequent keys are not folded yet.
  const keep = { ageMs: 0, bytesMax: 1e12 };
  expect(rig.store.retain(keep, rig.nowMs + 3 * dayMs, [])).toEqual([]);
  const done = rig.fold();
  expect(done).toEqual(["2030-01-15", "2030-01-16"]);
  rig.restart();
  expect(rig.analytics.done(rig.nowMs)).toEqual(done);
  expect(rig.ask({ by: "top_addresses" }).tops?.[0]?.requests).toBe(22);
  expect(rig.store.retain(keep, rig.nowMs + 3 * dayMs, done)).toEqual(done);
  rig.fold();
  expect(rig.ask({ by: "status" })).toEqual(before);
  expect(rig.ask({ by: "top_addresses" }).tops?.[0]?.requests).toBe(3);
  expect(
    rig.ask({ by: "top_status_paths" }).tops?.reduce((sum, one) => sum + one.requests, 0),
  ).toBe(22);
});

testOfFiles(
  "a day file that is taken away in the middle leaves its numbers, and comes back without counting twice",
  () => {
    using dir = tempDir();
    using rig = open(dir.path);
    threeDays(rig);
    rig.fold();
    const [before, tops] = [rig.ask({ by: "status" }), rig.ask({ by: "top_paths" })];
    rig.restart();
    const path = join(rig.logs, "2030-01-16.db");
    copyFileSync(path, `${path}.kept`);
    rmSync(path);
    rig.fold();
    expect(rig.ask({ by: "status" })).toEqual(before);
    rig.restart();
    copyFileSync(`${path}.kept`, path);
    rig.fold();
    expect(rig.ask({ by: "status" })).toEqual(before);
    expect(rig.ask({ by: "top_paths" })).toEqual(tops);
    hold(rig);
  },
);

testOfFiles("an older copy that is restored, and written on, counts as it is", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  rig.send(some(10));
  rig.restart();
  const path = join(rig.logs, "2030-01-15.db");
  const copy = readFileSync(path);
  rig.send(some(20));
  rig.fold();
  rig.restart();
  // In its place, so that the inode tells nothing.
  writeFileSync(path, copy);
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  hold(rig);
  const other = { epoch: "00000000000000e2", no: 1 };
  const { batch } = rig.send([]);
  const body = Buffer.from(
    Array.from({ length: 25 }, (_, no) => `${JSON.stringify(recordOf(no))}\n`).join(""),
  );
  rig.store.append([{ ...batch, lane: other, firstSeq: 1, lastSeq: 25, body }]);
  rig.fold();
  hold(rig);
  const paths = rig.ask({ by: "top_paths" }).tops ?? [];
  expect(paths.reduce((sum, one) => sum + one.requests, 0)).toBe(35);
});

function recordOf(no: number): object {
  return {
    connection: no,
    response_status: 201,
    request_method: "GET",
    uri_path: `/other${no}`,
    backend_time: 0.5,
    when: firstDayMs / 1e3 + no,
    authority: "www.example.test",
    domain: "www.example.test",
    client_ip: "192.0.2.1",
    bytes_sent: 7,
    duration: 1.5,
    cache: "miss",
    verdict: "allow not-a-bot",
    bot: null,
    user_agent: null,
  };
}

testOfFiles("a file that is broken is set aside and its numbers go, as its records do", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  threeDays(rig);
  rig.fold();
  rig.restart();
  const path = join(rig.logs, "2030-01-16.db");
  const bytes = readFileSync(path);
  bytes.fill(0x5a, 100);
  writeFileSync(path, bytes);
  rig.fold();
  expect(rig.broken).toHaveLength(1);
  expect(rig.records()).toHaveLength(13);
  hold(rig);
});

test("a fold that is killed between its steps is done again and gives the same", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  for (let no = 0; no < 4; no++)
    rig.send(
      some(1_900).map((one, at) => ({ ...one, when: firstDayMs / 1e3 - 60 * at - 20 * no })),
    );
  for (let left = 200; left > 0; left--) {
    const folded = rig.analytics.fold(rig.nowMs);
    rig.restart();
    if (folded.kind === "step" && !folded.isMore) break;
  }
  hold(rig);
  const tops = rig.ask({ by: "top_paths" }).tops ?? [];
  expect(tops.reduce((sum, one) => sum + one.requests, 0)).toBe(7_600);
  expect(tops.map(({ error }) => error)).toEqual(Array(7).fill(0));
  rmSync(rig.path);
  rig.restart();
  rig.fold();
  expect(rig.ask({ by: "top_paths" }).tops).toEqual(tops);
});

test("numbers that are broken are set aside, and made again of the logs", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  threeDays(rig);
  rig.fold();
  rig.restart();
  writeFileSync(rig.path, "this is no database, and long enough for a header of one".repeat(100));
  rig.fold();
  expect(rig.broken).toEqual([`${rig.path}.broken`]);
  expect(readdirSync(dir.path)).toContain("analytics.db.broken");
  hold(rig);
});

test("what is missing is told by the span in which its neighbours happened, for each domain of the site", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  const at = firstDayMs / 1e3 - 5 * hourS;
  rig.send([{ when: at }, { gap: { count: 4, reason: "disk_full" } }, { when: at + 1 }]);
  rig.send([{ gap: { count: 100, reason: "crash" } }]);
  rig.send([{ domain: "other.example.test" }, { gap: { count: 2, reason: "behind" } }], 2);
  const told = rig.ask({ step: "hour" });
  expect(told.totals).toMatchObject({ requests: 2, missing: { at_least: 4, at_most: 104 } });
  expect(told.series.filter(({ missing }) => missing.at_most > 0)).toMatchObject([
    { at, requests: 2, missing: { at_least: 4, at_most: 4 } },
    { at: firstDayMs / 1e3, requests: 0, missing: { at_least: 0, at_most: 100 } },
  ]);
  expect(rig.ask({ domain: "other.example.test", linkedSiteIds: [] }).totals).toMatchObject({
    requests: 1,
    missing: { at_least: 2, at_most: 2 },
  });
});

test("each fineness goes at its time, and what is no longer kept is refused", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  rig.send(some(10));
  rig.fold();
  const [at, by] = [firstDayMs / 1e3, undefined];
  const requests = (step: "minute" | "hour" | "day"): number | string => {
    const ask = { siteIds: [1], linkedSiteIds: [1], domain: "www.example.test", by };
    const answer = rig.analytics.answer({
      ...ask,
      since: at,
      until: at + 60,
      step,
      nowMs: rig.nowMs,
    });
    if (answer.kind !== "numbers") return answer.kind;
    return Number(Object(JSON.parse(answer.text)).totals.requests);
  };
  const after = (days: number): readonly (number | string)[] => {
    rig.nowMs = firstDayMs + days * dayMs;
    rig.fold();
    return [requests("minute"), requests("hour"), requests("day")];
  };
  expect(after(0)).toEqual([10, 10, 10]);
  expect(after(2)).toEqual([10, 10, 10]);
  expect(after(3)).toEqual(["not_kept", 10, 10]);
  expect(after(60)).toEqual(["not_kept", 10, 10]);
  expect(after(62)).toEqual(["not_kept", "not_kept", 10]);
  // A day of which no hour is kept any more is summed from the file.
  rig.send(some(5, { when: at }));
  expect(after(62)).toEqual(["not_kept", "not_kept", 15]);
  expect(after(800)).toEqual(["not_kept", "not_kept", 15]);
  expect(after(803)).toEqual(["not_kept", "not_kept", "not_kept"]);
});

test("beyond the size the finest and oldest go first, and days last", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  const lines = (hour: number): readonly Line[] =>
    Array.from({ length: 60 }, (_, minute) => ({
      when: firstDayMs / 1e3 - hour * hourS - minute * 60,
      verdict: `allow ${"r".repeat(50)}${minute}`,
    }));
  for (let hour = 0; hour < 40; hour++) rig.send(lines(hour));
  rig.fold();
  const before = rig.analytics.bytes();
  const total = rig.ask().totals.requests;
  rig.restart();
  rig.bytesMax = Math.round(before * 0.8);
  rig.fold();
  expect(rig.analytics.bytes()).toBeLessThanOrEqual(rig.bytesMax);
  const oldest = { step: "minute", since: rig.nowMs / 1e3 - 39 * hourS } as const;
  expect(() => rig.ask(oldest)).toThrow("not_kept");
  const newest = rig.ask({ step: "minute", since: rig.nowMs / 1e3 - 600, until: rig.nowMs / 1e3 });
  expect(newest.totals.requests).toBeGreaterThan(0);
  expect(rig.ask({ step: "hour" }).totals.requests).toBeGreaterThan(0);
  hold(rig);
  rig.restart();
  rig.bytesMax = 250_000;
  for (let turn = 0; turn < 5; turn++) rig.fold();
  expect(rig.analytics.bytes()).toBeLessThanOrEqual(rig.bytesMax);
  expect(rig.ask().totals.requests).toBe(total);
});

test("percentiles of a day are at most 2 % off, and tops tell how much they may be off", () => {
  using dir = tempDir();
  using rig = open(dir.path);
  for (let no = 0; no < 6; no++)
    rig.send(
      Array.from({ length: 500 }, (_, at) => ({
        duration: ((at * 37) % 500) / 50,
        backend_time: 0,
        uri_path: at % 4 === 0 ? "/often" : `/seldom/${no}/${at}`,
        when: firstDayMs / 1e3 - 600 * no,
      })),
    );
  rig.fold();
  const sorted = rig
    .records()
    .map(({ duration }) => duration)
    .toSorted((a, b) => a - b);
  const { edge } = rig.ask().totals;
  for (const [share, told] of [
    [0.5, edge.p50],
    [0.95, edge.p95],
    [0.99, edge.p99],
  ] as const) {
    const exact = sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
    expect(Math.abs((told ?? NaN) - exact)).toBeLessThanOrEqual(0.02 * exact);
  }
  const tops = rig.ask({ by: "top_paths" }).tops ?? [];
  expect(tops).toHaveLength(200);
  expect(tops[0]).toMatchObject({ key: "/often" });
  const { requests = 0, error = 0 } = tops[0] ?? {};
  expect([requests >= 750, requests - error <= 750]).toEqual([true, true]);
});
