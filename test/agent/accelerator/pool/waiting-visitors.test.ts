// Visitors who have connected and whom no worker has accepted yet: they wait for a worker, whatever becomes of the one that would have taken them.

import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { exposeMetrics } from "../../../../src/base/metrics.ts";
import { until } from "../../../support/until.ts";
import { SteadyVisitors } from "../../../support/steady-visitors.ts";
import { ask, host, openOrigin, stateOf } from "../edge.ts";
import { start } from "../pool-rig.ts";

const askAs = (pool: { readonly port: number }, agent: string): Promise<unknown> =>
  ask(pool, "/", { headers: { "user-agent": agent } }).catch(() => undefined);

test("the only worker dies: who comes meanwhile is answered by the next one", async () => {
  await using origin = await openOrigin((_q, r) => void r.end("page"));
  await using s = await start({ count: 1 });
  await s.pool.publish((version) => stateOf(version, { backend: { urls: [origin.url] } }));
  for (let round = 1; round <= 2; round++) {
    await askAs(s.pool, "die");
    const asked = await Promise.all(Array.from({ length: 20 }, () => ask(s.pool, "/")));
    expect(asked.map(({ text }) => text)).toEqual(Array.from({ length: 20 }, () => "page"));
    await until("replaced", () => s.pool.status().replacements === round);
  }
});

test("a worker is stuck: nobody is left in its queue", async () => {
  await using origin = await openOrigin((_q, r) => void r.end("page"));
  await using s = await start();
  await s.pool.publish((version) => stateOf(version, { backend: { urls: [origin.url] } }));
  const stuck = askAs(s.pool, "spin");
  // It has accepted nobody more from when its heart stands still.
  await until("stuck", async () => {
    const before = Object.values(s.pool.heartbeats());
    await sleep(600);
    return Object.values(s.pool.heartbeats()).some((beats, at) => beats === before[at]);
  });
  const asked = await Promise.all(Array.from({ length: 50 }, () => ask(s.pool, "/")));
  expect(asked.map(({ text }) => text)).toEqual(Array.from({ length: 50 }, () => "page"));
  await until("replaced", () => s.pool.status().replacements === 1);
  await stuck;
});

test("workers die under a steady stream of visitors: nobody is refused, and nobody waits for ever", async () => {
  await using origin = await openOrigin((_q, r) => void r.end("page"));
  await using s = await start();
  await s.pool.publish((version) => stateOf(version, { backend: { urls: [origin.url] } }));
  const visitors = new SteadyVisitors({
    host: "127.0.0.1",
    port: s.pool.port,
    name: host,
    path: "/",
    body: "page",
    perSecond: 100,
  });
  for (let round = 1; round <= 4; round++) {
    await askAs(s.pool, "die");
    await until("replaced", () => s.pool.status().replacements === round);
    await until("both serve", () => s.pool.status().live === 2);
  }
  const { sent, right, wrong } = await visitors.end();
  // Whose connection the dead worker had is cut off: also one that is to be kept, with its first request. Where all that are kept are busy, another one is opened.
  const { "new: ECONNRESET": only = 0, "kept: ECONNRESET": first = 0, ...others } = wrong;
  const cutOff = only + first;
  expect(others).toEqual({});
  expect(right + cutOff).toBe(sent);
  expect(cutOff).toBeLessThan(sent / 10);
});

test("more connections than there may be are refused and counted, whichever worker they come to; a worker that dies takes its own with it", async () => {
  await using s = await start({ connectionsMax: 10 });
  await s.pool.publish((version) => stateOf(version, null));
  const sockets: Socket[] = [];
  const open = async (): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const socket = connect(s.pool.port, "127.0.0.1").on("error", () => undefined);
    // Who has a place is answered, however long that takes.
    socket.once("data", () => resolve(true)).once("close", () => resolve(false));
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
    const isIn = await promise;
    if (isIn) sockets.push(socket);
    return isIn;
  };
  const seen: boolean[] = [];
  for (let count = 0; count < 12; count++) seen.push(await open());
  expect(seen).toEqual([...Array.from({ length: 10 }, () => true), false, false]);
  const [first] = sockets;
  first?.destroy();
  await until("its place is free", open);
  expect(await open()).toBe(false);
  const text = await exposeMetrics(await s.pool.metrics());
  const [, refused] = /^accel_agent_refused_connections_total(?:\{.*\})? (\d+)$/m.exec(text) ?? [];
  expect(Number(refused)).toBeGreaterThanOrEqual(3);
  for (const socket of sockets) socket.destroy();
  // All of them: a worker hears of the end of each by itself.
  await until("nobody is connected", async () => {
    const told = await exposeMetrics(await s.pool.metrics());
    const open = [...told.matchAll(/^accel_agent_open_connections(?:\{.*\})? (\d+)$/gm)];
    return open.length > 0 && open.every(([, count]) => Number(count) === 0);
  });
  expect(await open()).toBe(true);
  await askAs(s.pool, "die");
  await until("replaced", () => s.pool.status().replacements === 1);
  for (let count = 0; count < 9; count++) expect(await open()).toBe(true);
});
