// Visitors who have connected and whom no worker has accepted yet: they wait for a worker, whatever becomes of the one that would have taken them.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
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
  // Whose connection the dead worker had is cut off.
  const { "new: ECONNRESET": cutOff = 0, ...others } = wrong;
  expect(others).toEqual({});
  expect(right + cutOff).toBe(sent);
  expect(cutOff).toBeLessThan(sent / 10);
});
