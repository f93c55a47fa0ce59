// A share of the worker for each backend: who waits, who is told to come again, and that others notice nothing.

import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { OriginShares } from "../../../../src/agent/accelerator/origin/origin-shares.ts";
import { createWorkerMetrics } from "../../../../src/agent/accelerator/records/worker-metrics.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { effectiveDevlove } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { ask, host, openEdge, openOrigin, stateOf } from "../edge.ts";

const slow = { urls: ["http://slow.example"] };
const other = { urls: ["http://other.example"] };
const never = new AbortController().signal;

function rig(waitMs = 60_000) {
  const registry = new Registry();
  const limits = { requestsMax: 1, waitingMax: 2 };
  const shares = new OriginShares({ limits, metrics: createWorkerMetrics(registry), waitMs });
  return { shares, text: async () => registry.metrics() };
}

describe("a backend that is full", () => {
  it("gives its places in the order of arrival, refuses at once who finds no room to wait, and concerns no other", async () => {
    const { shares, text } = rig();
    const first = shares.enter("a", slow, never);
    const [second, third] = [shares.enter("a", slow, never), shares.enter("a", slow, never)];
    expect(shares.enter("a", slow, never)).toBe("full");
    expect(shares.enter("a", other, never)).toBeTypeOf("function");
    expect(shares.enter("b", slow, never)).toBeTypeOf("function");
    if (typeof first !== "function") throw new Error("there was a place");
    first();
    first(); // Twice gives no second place.
    const leaveSecond = await second;
    if (leaveSecond === "full") throw new Error("its turn has come");
    let isThird = false;
    const waits = Promise.resolve(third).then((leave) => {
      isThird = true;
      return leave;
    });
    await Promise.resolve();
    expect(isThird).toBe(false);
    leaveSecond();
    const leaveThird = await waits;
    if (leaveThird === "full") throw new Error("its turn has come");
    leaveThird();
    expect(shares.enter("a", slow, never)).toBeTypeOf("function");
    const counted = await text();
    expect(counted).toContain('accel_agent_origin_full_total{domain="a",outcome="refused"} 1');
    expect(counted).toContain('accel_agent_origin_full_total{domain="a",outcome="waited"} 2');
  });

  it("lets nobody wait for ever, and gives no place to who has gone", async () => {
    const { shares, text } = rig(1);
    const first = shares.enter("a", slow, never);
    const leaving = new AbortController();
    const [late, left] = [shares.enter("a", slow, never), shares.enter("a", slow, leaving.signal)];
    leaving.abort();
    expect([await left, await late]).toEqual(["full", "full"]);
    if (typeof first !== "function") throw new Error("there was a place");
    first();
    expect(shares.enter("a", slow, never)).toBeTypeOf("function");
    const counted = await text();
    expect(counted).toContain('outcome="late"} 1');
    expect(counted).toContain('outcome="left"} 1');
  });
});

it("a slow site has its share, and another one is answered meanwhile", async () => {
  const held: ServerResponse[] = [];
  await using stuck = await openOrigin((_request, response) => void held.push(response));
  await using quick = await openOrigin((_request, response) => response.end("quick"));
  await using edge = await openEdge({ originShares: { requestsMax: 2, waitingMax: 1 } });
  const site = (url: string) => ({ backend: { urls: [url], retries: 0 } });
  const { domains } = stateOf(1, site(stuck.url));
  const name = "quick.example";
  const config = effectiveDevlove({ domains: { [name]: site(quick.url) } }, name, null);
  const served = domains[0]?.hosts[0];
  if (served === undefined) throw new Error("one host is served");
  const hosts = [{ ...served, name, site: config }];
  edge.publish({ version: 1, domains: [...domains, { name, hosts, manifest: null }] });
  const first = [ask(edge, "/1"), ask(edge, "/2")];
  await until("both are asked", () => held.length === 2);
  const waiting = ask(edge, "/3");
  await until("it is let in", async () =>
    (await edge.registry.metrics()).includes('reason="not-a-bot"} 3\n'),
  );
  const refused = await ask(edge, "/4");
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
  expect((await ask(edge, "/", { host: name })).text).toBe("quick");
  held[0]?.end("1");
  await until("the one that waited is asked", () => held.length === 3);
  for (const response of held) if (!response.writableEnded) response.end("done");
  expect((await Promise.all([...first, waiting])).map(({ status }) => status)).toEqual([
    200, 200, 200,
  ]);
  expect(await edge.registry.metrics()).toContain(
    `accel_agent_origin_full_total{domain="${host}",outcome="waited"} 1`,
  );
});
