// Which origin is asked first: one that failed lately comes after the others, and comes first again when it has answered or its time is over. The clock is the test's.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { askOrigin, type Asked } from "../../../../src/agent/accelerator/origin/origin-answer.ts";
import { piecesOf } from "../../../../src/agent/accelerator/origin/origin-body.ts";
import {
  OriginPools,
  type OriginRequest,
} from "../../../../src/agent/accelerator/origin/origin-pools.ts";
import { ProblemLog } from "../../../../src/agent/accelerator/records/problem-log.ts";
import { createWorkerMetrics } from "../../../../src/agent/accelerator/records/worker-metrics.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";

const request: OriginRequest = {
  method: "GET",
  path: "/",
  fields: [["Host", "www.example.com"]],
  body: undefined,
  stop: new AbortController().signal,
};

/** Two origins, asked in this order as long as both are well. */
async function setUp() {
  const stack = new AsyncDisposableStack();
  const time = { ms: 1_000_000 };
  const asked: string[] = [];
  const failing = new Set<string>();
  const onAsked = { takes: 0 };
  const open = async (name: string): Promise<string> => {
    const server: Server = createServer((incoming, response) => {
      asked.push(name);
      time.ms += onAsked.takes;
      if (failing.has(name)) incoming.socket.destroy();
      else response.end(name);
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    stack.defer(async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const urls = [await open("first"), await open("second")];
  const clock = { wallMs: () => time.ms, ageMs: () => time.ms, steadyMs: () => time.ms };
  const origins = stack.use(new OriginPools(clock, () => 0, { ownListeners: [] }));
  const registry = new Registry();
  const deps = {
    origins,
    clock,
    metrics: createWorkerMetrics(registry),
    problems: new ProblemLog(silentLog(), clock.steadyMs),
    shares: { enter: () => () => {} },
  };
  const backend = {
    urls,
    host: "preserve",
    connect_timeout_s: 5,
    response_timeout_s: 5,
    idle_timeout_s: 5,
    retries: 1,
    stream_request_body: false,
    health: null,
  };
  /** Who was asked for one request, in order. */
  const ask = async (changes: Partial<OriginRequest> = {}): Promise<readonly string[]> => {
    asked.length = 0;
    const { promise, resolve } = Promise.withResolvers<Asked>();
    askOrigin(deps, "www.example.com", backend, { ...request, ...changes }, resolve);
    const outcome = await promise;
    if (outcome.ok) await Array.fromAsync(piecesOf(outcome.answer.body));
    return [...asked];
  };
  return {
    time,
    failing,
    ask,
    registry,
    onAsked,
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}

test("an origin that failed comes after the others for ten seconds", async () => {
  await using rig = await setUp();
  expect(await rig.ask()).toEqual(["first"]);
  rig.failing.add("first");
  // That a kept connection ends says nothing of its origin: a new one does.
  expect(await rig.ask()).toEqual(["first", "first", "second"]);
  expect(await rig.ask()).toEqual(["second"]);
  rig.failing.clear();
  rig.time.ms += 9_999;
  expect(await rig.ask()).toEqual(["second"]);
  rig.time.ms += 1;
  expect(await rig.ask()).toEqual(["first"]);
});

test("an origin that answers again is asked before one that still fails", async () => {
  await using rig = await setUp();
  for (const name of ["first", "second"]) rig.failing.add(name);
  expect(await rig.ask()).toEqual(["first", "second"]);
  rig.failing.delete("second");
  expect(await rig.ask()).toEqual(["first", "second"]);
  expect(await rig.ask()).toEqual(["second"]);
});

test("how long an origin took is told in seconds", async () => {
  await using rig = await setUp();
  rig.onAsked.takes = 1_500;
  await rig.ask();
  expect(await rig.registry.metrics()).toContain(
    'accel_agent_origin_duration_seconds_sum{domain="www.example.com"} 1.5\n',
  );
});

test("a visitor's body that breaks off says nothing of the origin", async () => {
  await using rig = await setUp();
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("half");
    throw new Error("the visitor's body is too large");
  }
  await rig.ask({ method: "POST", body: broken });
  expect(await rig.ask()).not.toContain("second");
});

test("an origin may be asked any number of times, one after the other, whether it answers or not", async () => {
  await using rig = await setUp();
  for (let no = 0; no < 520; no++) {
    if (no % 100 === 0) rig.failing.add("first");
    else rig.failing.clear();
    await rig.ask();
    rig.time.ms += 10_000;
  }
  expect(await rig.ask()).toEqual(["first"]);
});
