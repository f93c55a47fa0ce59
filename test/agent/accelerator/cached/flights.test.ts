// URLs whose answers gave nothing to share are remembered for a while, and only so many of them. The origin is played here, and the clock is the test's.

import { Readable } from "node:stream";
import { expect, test } from "vitest";
import type { FlightPlan } from "../../../../src/agent/accelerator/cached/flight.ts";
import { Flights } from "../../../../src/agent/accelerator/cached/flights.ts";
import { discard } from "../../../../src/agent/accelerator/origin/origin-answer.ts";
import { bodyOfStream } from "../../../../src/agent/accelerator/origin/origin-body.ts";
import {
  OriginPools,
  type OriginOutcome,
  type OriginRequest,
} from "../../../../src/agent/accelerator/origin/origin-pools.ts";
import { ProblemLog } from "../../../../src/agent/accelerator/records/problem-log.ts";
import { createWorkerMetrics } from "../../../../src/agent/accelerator/records/worker-metrics.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import type { BackendSettings } from "../../../../src/core/serving/effective-devlove.ts";
import { plainRequest } from "../../../../src/core/http/http-cache.ts";
import { MemoryCache } from "../memory-cache.ts";
import type { EntryKey } from "../../../../src/agent/cache/entry.ts";
import { CACHE_DEFAULTS } from "../../../../src/core/serving/cache-defaults.ts";

/** All it says is for one visitor alone. */
class PrivateOrigins extends OriginPools {
  override ask(
    _domain: string,
    _backend: BackendSettings,
    _request: OriginRequest,
    told: (outcome: OriginOutcome) => void,
  ): void {
    const fields = [
      ["Cache-Control", "private"],
      ["Content-Length", "0"],
    ] as const;
    const times = { requestedAtMs: 0, receivedAtMs: 0 };
    const body = bodyOfStream(Readable.from([]));
    told({ ok: true, answer: { status: 200, fields, body, ...times } });
  }
}

const keyOf = (no: number): EntryKey => ({
  domain: "www.example.com",
  host: "www.example.com",
  kind: "generated",
  path: `/${no}`,
  query: "",
});

function setUp() {
  const stack = new AsyncDisposableStack();
  const time = { ms: 0 };
  const clock = { wallMs: () => time.ms, ageMs: () => time.ms, steadyMs: () => time.ms };
  const flights = stack.use(
    new Flights({
      cache: new MemoryCache(),
      origins: stack.use(new PrivateOrigins(clock, () => 0, { ownListeners: [] })),
      clock,
      metrics: createWorkerMetrics(new Registry()),
      problems: new ProblemLog(silentLog(), clock.steadyMs),
      shares: { enter: () => () => {} },
    }),
  );
  const backend = {
    urls: ["http://127.0.0.1:9"],
    host: "preserve",
    connect_timeout_s: 1,
    response_timeout_s: 1,
    idle_timeout_s: 1,
    retries: 0,
    stream_request_body: false,
    health: null,
  };
  const settings = CACHE_DEFAULTS;
  /** A fetch whose answer is taken by the visitor who began it. */
  const fetchOne = async (no: number): Promise<void> => {
    const plan: FlightPlan = {
      key: keyOf(no),
      backend,
      path: `/${no}`,
      fields: [],
      conditions: [],
      base: undefined,
      standsIn: false,
      request: plainRequest,
      settings,
      settingsOf: () => settings,
      selecting: () => "",
      sourceNo: 0,
      mark: 0,
      invalidationMark: 0,
      isBackground: false,
      onInterim: undefined,
    };
    const flight = flights.start(plan, true);
    using _ = flight.join();
    const landing = await flight.landed;
    expect(landing.kind).toBe("own");
    if (landing.kind === "own") discard(landing.answer);
  };
  const isShared = (no: number): boolean => flights.isShared(keyOf(no));
  return { time, fetchOne, isShared, [Symbol.asyncDispose]: async () => stack.disposeAsync() };
}

test("a URL that gave nothing to share is asked for by each alone for ten seconds", async () => {
  await using rig = setUp();
  expect(rig.isShared(1)).toBe(true);
  await rig.fetchOne(1);
  expect([rig.isShared(1), rig.isShared(2)]).toEqual([false, true]);
  rig.time.ms = 10_000;
  expect(rig.isShared(1)).toBe(false);
  rig.time.ms = 10_001;
  expect(rig.isShared(1)).toBe(true);
});

test("4,096 such URLs are remembered at most, and the 2,048 that were asked for last", async () => {
  await using rig = setUp();
  for (let no = 0; no < 4_096; no++) await rig.fetchOne(no);
  expect(rig.isShared(0)).toBe(false);
  await rig.fetchOne(0);
  await rig.fetchOne(4_096);
  expect([0, 1, 2_047].map(rig.isShared)).toEqual([false, true, true]);
  expect([2_048, 4_095, 4_096].map(rig.isShared)).toEqual([false, false, false]);
});
