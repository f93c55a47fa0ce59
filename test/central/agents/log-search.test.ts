// The search of request logs against a plain filter over all records: any sites, days, late batches, hostile texts and
// conditions; each record once, in the walk and for who follows; bounded steps between which others are served.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { LogArchive } from "../../../src/central/agents/log-archive.ts";
import { LogThread } from "../../../src/central/agents/log-client.ts";
import {
  findRequest,
  findRequests,
  type FindQuery,
} from "../../../src/central/agents/log-finder.ts";
import type { RecordFilter } from "../../../src/central/agents/record-filter.ts";
import { verdictKinds, verdictReasons } from "../../../src/core/serving/verdict.ts";
import { parseRange } from "../../../src/core/addresses/ip.ts";
import { requestDetailShape, requestsShape } from "../../../src/wire/customer/requests.ts";
import type { RequestRecord } from "../../../src/wire/request-log.ts";
import {
  openTestDays,
  openTestWriter,
  testLogDatabase,
  testOfFiles,
} from "../../support/any-logs.ts";
import { requestRecord } from "../../support/request-records.ts";
import { tempDir } from "../../support/temp-dir.ts";

const noon = Date.parse("2030-01-15T12:00:00Z");
const dayMs = 86_400_000;
const domains = ["a.example.test", "b.example.test"] as const;
const never = new AbortController().signal;

type Made = { readonly siteId: number; readonly record: RequestRecord };

/** Writer and reader of one directory, and all that was written. */
class Rig implements Disposable {
  readonly #dir = tempDir();
  readonly store = openTestWriter(this.#dir.path, () => {});
  readonly archive = new LogArchive(openTestDays(this.#dir.path));
  readonly made: Made[] = [];
  #lanes = 0;

  /** As findRequests asks it, without a thread. */
  readonly thread = {
    search: async (request: Parameters<LogArchive["search"]>[0]) => {
      const step = this.archive.search(request);
      if (step.kind === "broken") throw new Error(step.message);
      return step;
    },
  };

  get path(): string {
    return this.#dir.path;
  }

  add(siteId: number, records: readonly Partial<RequestRecord>[], nowMs: number): void {
    const whole = records.map((one, at) => requestRecord(this.made.length + at, one));
    for (const record of whole) this.made.push({ siteId, record });
    const [outcome] = this.store.append([
      {
        siteId,
        lane: { epoch: "00000000000000e1", no: ++this.#lanes },
        firstSeq: 1,
        lastSeq: whole.length,
        encoding: "identity",
        body: Buffer.from(whole.map((one) => JSON.stringify(one)).join("\n")),
        nowMs,
      },
    ]);
    expect(outcome?.kind).toBe("committed");
  }

  async find(query: Partial<FindQuery>, rowsMax = 200_000) {
    const asked: FindQuery = { ...everything, ...query };
    const found = await findRequests(this.thread, asked, never, { rowsMax, ms: 1e6 });
    const text = `{"requests":[${found.entries.join(",")}],"scanned_until":0,"follow":""}`;
    const decoded = requestsShape.decode(JSON.parse(text));
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    const ids = decoded.value.requests.map(({ connection }) => connection);
    return { ...found, ids, requests: decoded.value.requests };
  }

  /** All that the pages of one question hold. */
  async walk(query: Partial<FindQuery>, rowsMax?: number): Promise<readonly number[]> {
    const ids: number[] = [];
    for (let cursors: Partial<FindQuery> = {}; ;) {
      const page = await this.find({ ...query, ...cursors }, rowsMax);
      ids.push(...page.ids);
      if (page.next === undefined) return ids;
      cursors = { [page.next.name]: page.next.cursor };
    }
  }

  [Symbol.dispose](): void {
    this.archive[Symbol.dispose]();
    this.store[Symbol.dispose]();
    this.#dir[Symbol.dispose]();
  }
}

const everything: FindQuery = {
  siteIds: [1, 2, 3],
  domain: domains[0],
  filter: {},
  since: undefined,
  until: undefined,
  limit: 500,
  after: undefined,
  follow: undefined,
  only: undefined,
  nowMs: noon,
};

// Few values, so that conditions meet records; some in other years, as clocks that are off say.
const hostile = [
  "/a b?x=\u202e",
  '/"}],"\\u0000',
  "/<script>",
  "/caf\u00e9/\ud83d\ude00",
  "/A?a=/a",
  "",
];
const aTime = fc.oneof(
  fc.integer({ min: -6, max: 6 }).map((hours) => noon / 1_000 + hours * 7_200 + 0.000_001),
  fc.integer({ min: 0, max: 3 }).map((n) => n * 1_000_000_000.5),
);
const aBot = fc.constantFrom("Examplebot", "O'Bot \u202e", "other");
const anAddress = fc.constantFrom(
  "192.0.2.1",
  "192.0.2.130",
  "2001:db8::1",
  "::ffff:192.0.2.1",
  "",
);
const aVerdict = fc.constantFrom(
  "none",
  "allow not-a-bot",
  "block bad-set",
  "would-block deny-pair",
);
const aRecord = fc.record({
  domain: fc.constantFrom(...domains, null),
  when: aTime,
  response_status: fc.constantFrom(200, 304, 404, 499, 503),
  request_method: fc.constantFrom("GET", "POST", "get"),
  uri_path: fc.constantFrom(...hostile),
  cache: fc.constantFrom<RequestRecord["cache"]>("hit", "miss", "blocked"),
  verdict: aVerdict,
  bot: fc.option(aBot),
  client_ip: anAddress,
  user_agent: fc.option(fc.constantFrom(...hostile)),
});
const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined, freq: 1 });
const aFilter: fc.Arbitrary<RecordFilter> = fc.record({
  status: maybe(fc.constantFrom({ least: 404, most: 404 }, { least: 400, most: 499 })),
  method: maybe(fc.constantFrom("GET", "get")),
  cache: maybe(fc.constantFrom("hit", "blocked")),
  verdict: maybe(fc.constantFrom("none", ...verdictKinds)),
  reason: maybe(fc.constantFrom(...verdictReasons)),
  bot: maybe(aBot),
  path: maybe(fc.constantFrom("a", "A", "?", "\u202e", '"}')),
  path_is: maybe(fc.constantFrom("/A", "/caf\u00e9/\ud83d\ude00", "/A?a=/a")),
  address: maybe(
    fc.constantFrom("192.0.2.1", "192.0.2.0/25", "2001:db8::/32").map((text) => {
      const parsed = parseRange(text);
      if (!parsed.ok) throw new Error(parsed.reason);
      return parsed.range;
    }),
  ),
});

/** What a reader of the documents would say, in other words than the search. */
function isWanted({ siteId, record }: Made, { siteIds, domain, filter, since, until }: FindQuery) {
  const { client_ip: ip, verdict, response_status: status } = record;
  const range = filter.address;
  const inRange =
    range === undefined ||
    (range.family === 6
      ? ip.startsWith("2001:db8:")
      : /(?:^|:)192\.0\.2\.1$/.test(ip) || (range.last > range.first && ip === "192.0.2.100"));
  const [told, reason = ""] = verdict.split(" ");
  return (
    siteIds.includes(siteId) &&
    record.domain === domain &&
    record.when >= (since ?? -1) &&
    record.when <= (until ?? Infinity) &&
    (filter.status === undefined ||
      (status >= filter.status.least && status <= filter.status.most)) &&
    [undefined, record.request_method].includes(filter.method) &&
    [undefined, record.cache].includes(filter.cache as RequestRecord["cache"]) &&
    [undefined, told].includes(filter.verdict) &&
    [undefined, reason].includes(filter.reason) &&
    [undefined, record.bot].includes(filter.bot) &&
    [undefined, record.uri_path.replace(/\?.*/s, "")].includes(filter.path_is) &&
    (filter.path === undefined || record.uri_path.split(filter.path).length > 1) &&
    inRange
  );
}

const aBatch = fc.record({
  siteId: fc.integer({ min: 1, max: 4 }),
  day: fc.integer({ min: 0, max: 3 }),
  records: fc.array(aRecord, { minLength: 1, maxLength: 12 }),
});
const sorted = (ids: readonly number[]) => ids.toSorted((a, b) => a - b);

test("it finds what a plain filter finds, newest first and each once, however few are looked at at a time", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(aBatch, { maxLength: 8 }),
      aFilter,
      maybe(aTime),
      maybe(aTime),
      fc.constantFrom(1, 3, 500),
      fc.constantFrom(1, 7, 200_000),
      async (batches, filter, since, until, limit, rowsMax) => {
        using rig = new Rig();
        for (const { siteId, records, day } of batches)
          rig.add(siteId, records, noon + day * dayMs);
        const query = { ...everything, siteIds: [1, 3, 4, 9], filter, since, until, limit };
        const wanted = rig.made.filter((one) => isWanted(one, query));
        const walked = await rig.walk(query, rowsMax);
        expect(sorted(walked)).toEqual(wanted.map(({ record }) => record.connection));
        const times = walked.map((id) => rig.made[id]?.record.when ?? 0);
        expect(times).toEqual(times.toSorted((a, b) => b - a));
        const followed = await rig.walk({ ...query, follow: "0000-00-00.0" }, rowsMax);
        expect(sorted(followed)).toEqual(sorted(walked));
      },
    ),
    { numRuns: 40 },
  );
});

test("what arrives during a walk, however late, is in no page of it; who follows gets each of it once, in order of arrival", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(aBatch, { minLength: 1, maxLength: 10 }),
      fc.array(fc.nat({ max: 3 }), { minLength: 10, maxLength: 10 }),
      fc.constantFrom(1, 4),
      async (batches, turns, limit) => {
        using rig = new Rig();
        let day = 0;
        const arrive = (one: (typeof batches)[number] | undefined): void => {
          if (one === undefined) return;
          day += one.day > 1 ? 1 : 0;
          rig.add(one.siteId, one.records, noon + day * dayMs);
        };
        const rest = [...batches];
        for (let first = turns[0] ?? 0; first > 0; first--) arrive(rest.shift());
        const isOwn = (one: Made): boolean => isWanted(one, everything);
        const before = rig.made.filter(isOwn).map(({ record }) => record.connection);
        let page = await rig.find({ limit });
        let { follow } = page;
        const [walked, followed] = [[...page.ids], new Array<number>()];
        for (const turn of turns) {
          if (turn > 0) arrive(rest.shift());
          if (turn !== 1 && page.next !== undefined) {
            page = await rig.find({ limit, after: page.next.cursor });
            walked.push(...page.ids);
          }
          if (turn === 2) {
            const came = await rig.find({ limit, follow });
            followed.push(...came.ids);
            follow = came.follow;
          }
        }
        while (page.next !== undefined) {
          page = await rig.find({ limit, after: page.next.cursor });
          walked.push(...page.ids);
        }
        followed.push(...(await rig.walk({ limit, follow })));
        expect(sorted(walked)).toEqual(before);
        const later = rig.made.filter(isOwn).map(({ record }) => record.connection);
        expect(followed).toEqual(later.slice(before.length));
      },
    ),
    { numRuns: 25 },
  );
});

test("all that a record holds is shown; one is read by its request_id, for its own domain and sites alone", async () => {
  using rig = new Rig();
  const record = { domain: domains[0], uri_path: "/p?q=?", bot: "B", verdict: "block bad-set" };
  rig.add(2, [{ ...record, cache: "blocked", response_status: 403 }, { domain: domains[1] }], noon);
  const [shown] = (await rig.find({})).requests;
  expect(shown).toEqual({
    request_id: expect.any(String),
    when: 1_700_000_000,
    deployment_site_id: 2,
    connection: 0,
    client_address: "192.0.2.1",
    method: "GET",
    authority: "www.example.com",
    path: "/p",
    query: "q=?",
    status: 403,
    user_agent: "Mozilla/5.0 (X11; Linux x86_64)",
    bytes: 1_234,
    cache: "blocked",
    verdict: "block",
    reason: "bad-set",
    bot: "B",
    backend_seconds: 0,
    total_seconds: 0.004,
  });
  await using thread = threadOf(rig.path);
  const read = async (requestId: string, domain: string, siteIds: readonly number[]) =>
    findRequest(thread, { domain, siteIds, requestId });
  const id = shown?.request_id ?? "";
  const text = (await read(id, domains[0], [1, 2])) ?? "null";
  expect(JSON.parse(text)).toEqual({
    ...shown,
    why: "blocked with 403: 192.0.2.1 is B's in a bad set of the domain. The cache was not asked.",
  });
  expect(requestDetailShape.decode(JSON.parse(text)).ok).toBe(true);
  expect(await read(id, domains[1], [1, 2])).toBeUndefined();
  expect(await read(id, domains[0], [1])).toBeUndefined();
  for (const none of [`${id}0`, id.replace(/^\d/, "9"), id.replace("2030", "2031"), "", "../x"])
    expect(await read(none, domains[0], [1, 2])).toBeUndefined();
  expect((await rig.find({ only: id })).ids).toEqual([0]);
  expect((await rig.find({ only: id, filter: { method: "POST" } })).ids).toEqual([]);
  expect((await rig.find({ only: id, until: 1_699_999_999 })).ids).toEqual([]);
  expect((await rig.find({ only: id, siteIds: [1] })).ids).toEqual([]);
  for (const cursor of ["x", "1.2030-01-15.1", "1.2030-01-15.1.2030-01-15", id])
    await expect(rig.find({ after: cursor })).rejects.toMatchObject({ code: "NOT_FOUND" });
});

test("a question looks at a bounded number of records, says how far it came, and another goes on there", async () => {
  using rig = new Rig();
  for (let batch = 0; batch < 5; batch++)
    rig.add(
      1,
      Array.from({ length: 100 }, (_, at) => ({
        domain: domains[0],
        when: noon / 1e3 + batch * 100 + at,
        uri_path: batch + at === 0 ? "/needle" : "/hay",
      })),
      noon,
    );
  const filter = { path: "needle" };
  const first = await rig.find({ filter }, 150);
  expect([first.ids, first.scannedUntil, first.next?.name]).toEqual([
    [],
    noon / 1e3 + 350,
    "after",
  ]);
  expect(await rig.walk({ filter }, 150)).toEqual([0]);
  const last = await rig.find({ filter, since: 5 });
  expect([last.ids, last.scannedUntil, last.next]).toEqual([[0], 5, undefined]);
  const followed = await rig.find({ filter, follow: "2030-01-15.499" });
  expect([followed.follow, followed.next]).toEqual(["2030-01-15.500", undefined]);
});

testOfFiles(
  "who follows a file that was set aside, or a day that is gone, gets what came since",
  async () => {
    using rig = new Rig();
    const one = { domain: domains[0] };
    rig.add(1, [one, one, one], noon);
    const { follow } = await rig.find({});
    rig.store.setAside("2030-01-15", new Error("for the test"));
    rig.archive.forget(["2030-01-15"]);
    rig.add(1, [one, one], noon);
    const came = await rig.find({ follow });
    expect(came.ids).toEqual([3, 4]);
    rig.store.setAside("2030-01-15", new Error("for the test"));
    rig.archive.forget(["2030-01-15"]);
    rig.add(1, [one], noon + dayMs);
    expect((await rig.find({ follow: came.follow })).ids).toEqual([5]);
  },
);

test("beside searches that find nothing in many records, a read waits for one step at most", async () => {
  using rig = new Rig();
  const records = Array.from({ length: 2_000 }, () => ({ domain: domains[0] }));
  for (let batch = 0; batch < 40; batch++) rig.add(1, records, noon);
  await using thread = threadOf(rig.path);
  await thread.stats(10_000);
  const gone = new AbortController();
  let steps = 0;
  const counted = {
    search: async (request: Parameters<LogThread["search"]>[0]) => {
      steps++;
      return thread.search(request);
    },
  };
  const searches = Array.from({ length: 8 }, async () => {
    while (!gone.signal.aborted)
      await findRequests(counted, { ...everything, filter: { path: "needle" } }, gone.signal);
  });
  const stepsMeanwhile: number[] = [];
  const page = { siteId: 1, domain: domains[0], limit: 10, after: undefined };
  for (let read = 0; read < 20; read++) {
    const before = steps;
    await thread.read({ ...page, since: undefined, until: undefined });
    stepsMeanwhile.push(steps - before);
  }
  gone.abort();
  await Promise.all(searches);
  expect(steps).toBeGreaterThan(10);
  expect(Math.max(...stepsMeanwhile)).toBeLessThanOrEqual(3);
  const waiting = Array.from({ length: 40 }, async () =>
    findRequests(thread, { ...everything, filter: { path: "needle" } }, never),
  );
  const outcomes = await Promise.allSettled(waiting);
  expect(outcomes.some(({ status }) => status === "rejected")).toBe(true);
  expect(outcomes.some(({ status }) => status === "fulfilled")).toBe(true);
});

function threadOf(directory: string): LogThread {
  const entry = new URL("../../../src/central/logger.ts", import.meta.url);
  const database = testLogDatabase(directory);
  const own = { entry, directory, log: silentLog(), broken: () => {} };
  return new LogThread({ ...own, ...(database !== undefined && { database }) });
}
