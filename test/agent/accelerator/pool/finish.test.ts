// The end of a pool whose sockets are kept for the next start: visitors are served until what was under way has ended, and wait only then.

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import type { SocketKeeping } from "../../../../src/agent/accelerator/pool/visitor-sockets.ts";
import { SocketCalls } from "../../../../src/base/socket-calls.ts";
import { until } from "../../../support/until.ts";
import { ask, host, raw, stateOf } from "../edge.ts";
import { start } from "../pool-rig.ts";
import { echoes, UpgradeOrigin } from "../upgrades/upgrade-origin.ts";

const kept = {
  take: () => undefined,
  keep: async () => undefined,
  closeRest: async () => [],
  holdsAny: true,
};

/** A pool before an origin that holds back the answer of `/slow`. */
async function startScene(drainGraceMs: number, keeping: Partial<SocketKeeping> = {}) {
  const held: ServerResponse[] = [];
  const server = createServer();
  const origin = new UpgradeOrigin(server, echoes);
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    if (request.url === "/slow") held.push(response);
    else response.end("page");
  });
  const url = `http://127.0.0.1:${await origin.listen()}`;
  const stop = new AbortController();
  const sockets = { calls: new SocketCalls(), kept, ...keeping };
  const pool = await start({ drainGraceMs, sockets, stop: stop.signal });
  await pool.pool.publish((version) => stateOf(version, { backend: { urls: [url], retries: 0 } }));
  const end = async (): Promise<void> => {
    stop.abort();
    await pool.pool[Symbol.asyncDispose]();
  };
  return { ...pool, held, origin, end };
}

test("a restart serves others for as long as the agent before may answer, though nothing is under way here", async () => {
  const before = Promise.withResolvers<void>();
  const gone = vi.fn(async () => before.promise);
  const onEnd = vi.fn();
  const { pool, origin, end } = await startScene(60_000, { before: { gone }, onEnd });
  await using _origin = origin;
  const closed = end();
  while (gone.mock.calls.length === 0) expect((await ask(pool, "/")).text).toBe("page");
  // A worker that was asked to close would have done so by then.
  for (const began = performance.now(); performance.now() - began < 500;)
    expect((await ask(pool, "/")).text).toBe("page");
  expect(onEnd).not.toHaveBeenCalled();
  before.resolve();
  await closed;
  expect(onEnd.mock.calls).toEqual([[true]]);
  await expect(ask(pool, "/")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("a stop refuses whoever comes, though the agent before still answers", async () => {
  const gone = vi.fn(async () => Promise.withResolvers<void>().promise);
  const onEnd = vi.fn();
  const isLast = async (): Promise<boolean> => true;
  const { pool, origin, end } = await startScene(60_000, { before: { gone }, isLast, onEnd });
  await using _origin = origin;
  await end();
  await expect(ask(pool, "/")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(gone).not.toHaveBeenCalled();
  expect(onEnd.mock.calls).toEqual([[false]]);
});

async function openSocket(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`, { headers: { host } });
  socket.on("error", () => undefined);
  await once(socket, "open");
  return socket;
}

test("others are served while a long request ends; then it closes, and who comes is refused", async () => {
  const { pool, held, origin, records } = await startScene(60_000);
  await using _origin = origin;
  const slow = ask(pool, "/slow");
  const answer = await until("under way", () => held[0]);
  const closed = pool[Symbol.asyncDispose]();
  for (let count = 0; count < 20; count++) expect((await ask(pool, "/")).text).toBe("page");
  // It resolves when the connection is closed, which the visitor did not ask for.
  const kept = await raw(pool, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(kept).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*Connection: close\r\n/);
  answer.end("late");
  expect((await slow).text).toBe("late");
  await closed;
  await expect(ask(pool, "/")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(records()).toBe(22);
});

test("connections on which nothing is asked end while others are still served, so that nobody waits for them when nobody is accepted", async () => {
  const { pool, held, origin } = await startScene(60_000);
  await using _origin = origin;
  const slow = ask(pool, "/slow");
  const answer = await until("under way", () => held[0]);
  const used = connect(pool.port, "127.0.0.1");
  used.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await once(used, "data");
  const unused = connect(pool.port, "127.0.0.1");
  await once(unused, "connect");
  // Accepted after it, so it has been, too.
  expect((await ask(pool, "/")).text).toBe("page");
  const ended = [used, unused].map(async (socket) => once(socket.resume(), "end"));
  const closed = pool[Symbol.asyncDispose]();
  await Promise.all(ended);
  expect((await ask(pool, "/")).text).toBe("page");
  answer.end("late");
  expect((await slow).text).toBe("late");
  await closed;
});

test("what does not end in its grace is cut, and a WebSocket is closed with a word; so is one that was opened meanwhile", async () => {
  const { pool, held, origin } = await startScene(1_000);
  await using _origin = origin;
  const slow = ask(pool, "/slow").catch((error: unknown) => error);
  await until("under way", () => held[0]);
  const before = await openSocket(pool.port);
  const told = once(before, "close");
  const closed = pool[Symbol.asyncDispose]();
  const meanwhile = await openSocket(pool.port);
  const toldLater = once(meanwhile, "close");
  expect((await ask(pool, "/")).text).toBe("page");
  expect([(await told)[0], (await toldLater)[0]]).toEqual([1001, 1001]);
  expect(await slow).toMatchObject({ code: "ECONNRESET" });
  await closed;
});
