// Streams of events with readers of the test's own: slow ones, silent ones, very many; and which operations are told.

import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { createChangeBus } from "../../../src/central/agents/changes.ts";
import { createLocalWakeBus } from "../../../src/central/agents/wake.ts";
import { topicsOf } from "../../../src/central/api/change-topics.ts";
import { changedOf, GatheredHints, type Hint } from "../../../src/central/api/event-hints.ts";
import {
  EventStreams,
  streamsMax,
  streamsPerToken,
  type EventStreamsDeps,
} from "../../../src/central/api/event-streams.ts";
import type { EventSink } from "../../../src/central/api/http/answer.ts";
import { describedSubjects } from "../../../src/central/api/http/described.ts";
import type { Actor } from "../../../src/central/store/people/tokens.ts";
import { changeTopics } from "../../../src/wire/customer/events.ts";
import { until } from "../../support/until.ts";

class Reader implements EventSink {
  waitingBytes = 0;
  text = "";
  end_: "ended" | "cut" | undefined;

  write(text: string): void {
    this.text += text;
  }

  end(): void {
    this.end_ = "ended";
  }

  cut(): void {
    this.end_ = "cut";
  }
}

const actorOf = (tokenId: number, customerId = 1): Actor => ({
  customerId,
  domains: null,
  userId: 1,
  username: "ada",
  mayReadLogs: true,
  role: "read",
  tokenId,
  isSession: false,
  isUseTold: true,
  whenExpires: null,
});

function openStreams(times: EventStreamsDeps["times"], transact: () => Promise<unknown>) {
  const changes = createChangeBus();
  const clock = { ms: 1_000 };
  const streams = new EventStreams({
    store: { transact: async <T>() => (await transact()) as T },
    changes,
    wakes: createLocalWakeBus(),
    log: silentLog(),
    now: () => new Date(clock.ms),
    monotonicMs: () => clock.ms,
    random: () => 0.5,
    stop: new AbortController().signal,
    times: { gatherMs: 5, betweenMs: 5, sweepMs: 5, checkMs: 5, ...times },
  });
  const change = (customerId = 1): void =>
    changes.publish({ kind: "customer", customerId, topics: ["clears"], domains: [] });
  return {
    streams,
    change,
    changes,
    clock,
    [Symbol.asyncDispose]: async () => streams[Symbol.asyncDispose](),
  };
}

const everyToken = async (): Promise<unknown> =>
  new Set(Array.from({ length: 10_000 }, (_, id) => id));

test("between two events of a stream is some time, however often something changes", async () => {
  await using rig = openStreams({ betweenMs: 60_000 }, everyToken);
  const reader = new Reader();
  rig.streams.begin(actorOf(1), reader);
  const told = (): number => reader.text.split("event: changed").length - 1;
  rig.change();
  await until("the first change is told at once", () => told() === 1);
  rig.clock.ms += 60_000;
  rig.change();
  await until("so is one that comes later", () => told() === 2);
  rig.change();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(told()).toBe(2);
});

test("a reader with more than 64 KiB waiting is cut, and the others are not", async () => {
  await using rig = openStreams({}, everyToken);
  const [slow, quick] = [new Reader(), new Reader()];
  rig.streams.begin(actorOf(1), slow);
  rig.streams.begin(actorOf(2), quick);
  slow.waitingBytes = 65_536;
  rig.change();
  await until(
    "both are told",
    () => slow.text.includes("changed") && quick.text.includes("changed"),
  );
  expect([slow.end_, quick.end_]).toEqual([undefined, undefined]);
  slow.waitingBytes = 65_537;
  rig.change();
  await until("the slow one is cut", () => slow.end_ === "cut");
  expect(quick.end_).toBeUndefined();
  const told = slow.text;
  rig.change();
  await until("the quick one is told", () => quick.text.split("changed").length === 4);
  expect(slow.text).toBe(told);
});

test("a reader that takes nothing for a minute is cut; one that gets nothing is kept alive by beats", async () => {
  await using rig = openStreams({}, everyToken);
  const [stuck, quiet] = [new Reader(), new Reader()];
  rig.streams.begin(actorOf(1), stuck);
  rig.streams.begin(actorOf(2), quiet);
  stuck.waitingBytes = 1;
  for (let at = 0; at < 3; at++) {
    rig.clock.ms += 15_000;
    await until("a beat", () => quiet.text.split("event: beat\ndata: {}\n\n").length === at + 2);
    expect(stuck.end_).toBeUndefined();
  }
  rig.clock.ms += 31_000;
  await until("the stuck one is cut", () => stuck.end_ === "cut");
  expect(quiet.end_).toBeUndefined();
});

test("however many streams there are, one look-up of tokens at a time asks for all of them; beyond the limit none begins", async () => {
  const looked: Promise<unknown>[] = [];
  const gone = new Set([7]);
  await using rig = openStreams({ checkMs: 50 }, async () => {
    const looking = everyToken().then((all) => (all as Set<number>).difference(gone));
    looked.push(looking);
    return looking;
  });
  const readers = Array.from({ length: streamsMax }, () => new Reader());
  for (const [at, reader] of readers.entries()) {
    const begun = rig.streams.begin(actorOf(Math.floor(at / streamsPerToken)), reader);
    expect(begun.ok).toBe(true);
  }
  expect(rig.streams.begin(actorOf(9_000), new Reader())).toEqual({ ok: false, why: "all" });
  await until("the streams of one token end", () => readers.some(({ end_ }) => end_ === "ended"));
  expect(looked).toHaveLength(1);
  const ended = readers.flatMap(({ end_ }, at) => (end_ === undefined ? [] : [at]));
  expect(ended).toEqual(
    Array.from({ length: streamsPerToken }, (_, at) => 7 * streamsPerToken + at),
  );
  expect(readers[ended[0] ?? 0]?.text).toMatch(/event: bye\ndata: \{"reason":"revoked"\}\n\n$/);
  const reader = new Reader();
  const begun = rig.streams.begin(actorOf(9_000), reader);
  expect(begun.ok).toBe(true);
  if (begun.ok) begun.left();
  rig.change();
  await until("the others are told", () => readers[0]?.text.includes("changed") === true);
  expect(reader.text).not.toContain("changed");
});

test("a store that fails ends nothing and stops nothing", async () => {
  const state = { fails: true };
  await using rig = openStreams({}, async () => {
    if (state.fails) throw new Error("the disk is full");
    return new Set();
  });
  const reader = new Reader();
  rig.streams.begin(actorOf(1), reader);
  rig.changes.publish({ kind: "site", siteId: 1, topics: ["fleet"] });
  rig.change();
  await until("it is told of the rest", () => reader.text.includes("clears"));
  expect(reader.end_).toBeUndefined();
  state.fails = false;
  await until("its token is looked up", () => reader.end_ === "ended");
});

test("every operation that changes something of a customer is told by a topic; others are by none", () => {
  const endpoints = describedSubjects().flatMap((subject) => subject.endpoints);
  const silent = endpoints.filter((one) => one.method !== "GET" && topicsOf(one).length === 0);
  expect(silent.map(({ id }) => id).toSorted()).toEqual([
    "startTokenRecovery",
    "startTrial",
    "uploadPackage",
  ]);
  expect(endpoints.filter((one) => one.method === "GET" && topicsOf(one).length > 0)).toEqual([]);
  for (const one of endpoints)
    for (const topic of topicsOf(one)) expect(changeTopics).toContain(topic);
});

const hint = (
  topics: Hint["topics"],
  domains: readonly string[],
  forDomains?: readonly string[],
): Hint => ({
  topics,
  domains,
  forDomains,
});

test.each<readonly [string, readonly Hint[], readonly string[] | null, object | undefined]>([
  [
    "one domain is named",
    [hint(["clears"], ["a.org"], ["a.org"])],
    null,
    { topics: ["clears"], domain: "a.org" },
  ],
  [
    "two are not",
    [hint(["clears"], ["a.org"], ["a.org"]), hint(["bots"], ["b.org"], ["b.org"])],
    null,
    { topics: ["clears", "bots"] },
  ],
  [
    "nor is one beside what has none",
    [hint(["clears"], ["a.org"], ["a.org"]), hint(["tokens"], [])],
    null,
    { topics: ["clears", "tokens"] },
  ],
  [
    "the reach of a token hides the other",
    [hint(["clears"], ["a.org"], ["a.org"]), hint(["bots"], ["b.org"], ["b.org"])],
    ["a.org"],
    { topics: ["clears"], domain: "a.org" },
  ],
  [
    "one change of both names the one in reach",
    [hint(["bots"], ["a.org", "b.org"], ["a.org", "b.org"])],
    ["b.org"],
    { topics: ["bots"], domain: "b.org" },
  ],
  ["a site that serves none in reach", [hint(["fleet"], [], ["a.org"])], ["b.org"], undefined],
  ["a site that serves nothing", [hint(["fleet"], [], [])], ["b.org"], undefined],
  ["a site that serves nothing, for all", [hint(["fleet"], [], [])], null, { topics: ["fleet"] }],
  [
    "a change of hosts beside it hides no domain",
    [hint(["clears"], ["a.org"], ["a.org"]), hint(["fleet"], [], ["a.org", "b.org"])],
    null,
    { topics: ["clears", "fleet"], domain: "a.org" },
  ],
  ["what it cannot look at", [hint(["tokens"], [])], ["a.org"], undefined],
  ["what is of no domain", [hint(["bots", "channels"], [])], ["a.org"], { topics: ["bots"] }],
])("%s", (_, hints, reach, expected) => {
  expect(changedOf(hints, reach)).toEqual(expected);
});

test("hints of very many domains become one without a domain", () => {
  const gathered = new GatheredHints();
  for (let no = 0; no < 1_000; no++) {
    gathered.add(hint(["clears"], [`d${no}.org`], [`d${no}.org`]));
    gathered.add(hint(["clears"], ["d1.org"], ["d1.org"]));
  }
  expect(gathered.list()).toHaveLength(65);
  expect(changedOf(gathered.list(), ["d999.org"])).toEqual({ topics: ["clears"] });
});
