// A drain is over when nothing is worked on any more: an answer that has gone out may still be busy with what it leaves behind.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { BoundSocket, connect, createServer } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { sendText } from "../../../../src/agent/accelerator/doors/answer.ts";
import type { Exchange } from "../../../../src/agent/accelerator/doors/exchange.ts";
import { VisitorListener } from "../../../../src/agent/accelerator/doors/listener.ts";
import { LateWrites } from "../../../../src/agent/accelerator/origin/late-writes.ts";
import { ProblemLog } from "../../../../src/agent/accelerator/records/problem-log.ts";
import { createRecorder } from "../../../../src/agent/accelerator/records/recorder.ts";
import { RequestTally } from "../../../../src/agent/accelerator/records/request-tally.ts";
import { createWorkerMetrics } from "../../../../src/agent/accelerator/records/worker-metrics.ts";
import { SocketCalls } from "../../../../src/base/socket-calls.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { ClientAddresses } from "../../../../src/core/http/client-address.ts";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";
import { until } from "../../../support/until.ts";

/** Opens a listener that gives everybody the same answer. */
function listenerOf(
  answer: (exchange: Exchange) => Promise<void>,
  usesLane: boolean,
): VisitorListener {
  const [clock, metrics] = [createClock(), createWorkerMetrics(new Registry())];
  return new VisitorListener({
    answer,
    nextConnection: () => 1,
    clients: new ClientAddresses([], "x-forwarded-for"),
    proxyProtocol: "off",
    visitors: { admit: () => true },
    staples: { find: () => null },
    contexts: { find: () => undefined },
    ticketKeys: () => ({ current: randomBytes(48), previous: undefined }),
    recorder: createRecorder({ accept: () => undefined }, new RequestTally(new Registry()), clock),
    metrics,
    clock,
    problems: new ProblemLog(silentLog(), clock.steadyMs),
    quick: { answer: () => ({ kind: "pass", admission: "has-to-wait", judged: undefined }) },
    answerNow: async () => undefined,
    writes: new LateWrites(),
    usesLane: () => usesLane,
  });
}

test.each([
  ["in the lane", true],
  ["at node:http", false],
])(
  "a drain waits for what an answer still does when it has gone out and its connection is closed, %s",
  async (_where, usesLane) => {
    const left = Promise.withResolvers<void>();
    await using listener = listenerOf(async (exchange) => {
      sendText(exchange, 200, "Done.");
      await left.promise;
    }, usesLane);
    const port = await listener.listen({ host: "127.0.0.1", port: 0 });
    const visitor = connect(port, "127.0.0.1").resume();
    visitor.end("GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n");
    await once(visitor, "close");
    let isDrained = false;
    const drained = listener.drain({ graceMs: 0 }).then(() => (isDrained = true));
    // The listener is closed and nobody is connected: only the work is left.
    const again = connect(port, "127.0.0.1");
    expect(await once(again, "error").then(([error]) => String(error))).toContain("ECONNREFUSED");
    for (let turns = 0; turns < 20; turns++) await nextTurn();
    expect([listener.openConnections, isDrained]).toEqual([0, false]);
    left.resolve();
    await drained;
  },
);

test.each([
  ["in the lane", true],
  ["at node:http", false],
])("who waited when listening ended is answered behind it, %s", async (_where, usesLane) => {
  await using listener = listenerOf(async (exchange) => {
    sendText(exchange, 200, "Done.");
  }, usesLane);
  const calls = new SocketCalls();
  using bound = new BoundSocket({ host: "127.0.0.1", port: 0 });
  const address = bound.address();
  const port = typeof address === "object" ? address.port : 0;
  const queue = createServer().listen({ fd: calls.duplicate(bound.fd()) });
  await once(queue, "listening");
  queue.close(); // Nobody accepts, and it is listened on.
  await once(queue, "close");
  const visitor = connect(port, "127.0.0.1").setEncoding("utf8");
  let said = "";
  visitor.on("data", (text: string) => (said += text));
  await once(visitor, "connect");
  visitor.write("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
  listener.takeLate({ plain: calls.endListening(bound.fd()), secure: [] });
  const drained = listener.drain({ graceMs: 5_000 });
  await once(visitor, "close");
  await drained;
  expect(said).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(said).toMatch(/\r\nconnection: close\r\n/i);
});

test("writes have longer than what only reads: they are answered when the others are cut", async () => {
  const [read, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const begun: string[] = [];
  await using listener = listenerOf(async (exchange) => {
    begun.push(exchange.method);
    await (exchange.method === "POST" ? written : read).promise;
    if (!exchange.isGone) sendText(exchange, 200, "Done.");
  }, true);
  const port = await listener.listen({ host: "127.0.0.1", port: 0 });
  const visit = (method: string): { said: string; readonly closed: Promise<unknown> } => {
    const visitor = connect(port, "127.0.0.1").setEncoding("utf8");
    const seen = { said: "", closed: once(visitor, "close") };
    visitor.on("data", (text: string) => (seen.said += text));
    visitor.write(`${method} / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 0\r\n\r\n`);
    return seen;
  };
  const [reader, writer] = [visit("GET"), visit("POST")];
  await until("both are asked", () => begun.length === 2);
  const drained = listener.drain({ graceMs: 10, writesMs: 60_000 });
  await reader.closed;
  expect(reader.said).toBe("");
  written.resolve();
  await writer.closed;
  expect(writer.said).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  read.resolve();
  await drained;
});
