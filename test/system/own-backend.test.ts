// A devlove whose backend is the agent itself: refused by the agent with the reason, which the customer reads, while the old version serves.

import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { callControl } from "../../src/base/control-socket.ts";
import { Edge } from "../support/edge.ts";
import { freePorts } from "../support/free-ports.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import { until } from "../support/until.ts";

let edge: Edge;
let origin: Origin;
let script: CustomerScript;

beforeAll(async () => {
  origin = await startOrigin();
  edge = await Edge.prepare();
  await edge.startCentral();
  script = new CustomerScript(edge, origin.url, "own-backend");
  await script.enrol();
  await edge.startAgent();
  for (const { name, run } of script.steps())
    if (["domain", "activate", "hit"].includes(name)) await run();
}, 300_000);

afterAll(async () => {
  await edge[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
});

/** A version with this backend, as central tells of it when its activation has come to that. */
async function activated(
  name: string,
  url: string,
  outcome: "applied" | "failed",
): Promise<Readonly<Record<string, unknown>>> {
  const { api } = edge;
  const content = JSON.stringify({ domains: { [domain]: { backend: { urls: [url] } } } });
  const made = await api.post(`/${domain}/devlove/${name}/`, { schema: "devlove/1", content });
  expect(made.status).toBe(201); // Central does not know where agents listen.
  const version = async (): Promise<Readonly<Record<string, unknown>> | undefined> => {
    const { body } = await api.get(`/active-viewset/${domain}/`);
    return (body as readonly Record<string, unknown>[]).find((one) => one["name"] === name);
  };
  const wanted = await version();
  const put = await api.put(`/active-viewset/${domain}/${String(wanted?.["id"])}/`, wanted);
  expect(put.status).toBe(200);
  return until(`${name} is ${outcome}`, async () => {
    const now = await version();
    return now?.["activation"] === outcome && now;
  });
}

test.each([
  ["metrics", () => `http://127.0.0.1:${edge.ports.metrics}`],
  ["metrics, by name", () => `http://localhost:${edge.ports.metrics}`],
  ["metrics, in IPv6", () => `http://[::ffff:127.0.0.1]:${edge.ports.metrics}`],
  ["visitors", () => `http://127.0.0.1:${edge.ports.visitors}`],
])(
  "its own listener for %s",
  async (what, url) => {
    const name = `own ${what}`.replaceAll(/[ ,]+/g, "-");
    const refused = await activated(name, url(), "failed");
    const error = expect.stringContaining("is a listener of the agent itself");
    expect(refused["deployments"]).toMatchObject([{ error, serving: { viewset_name: "first" } }]);
    const answer = await edge.visit("/page/after", { host: domain });
    expect([answer.status, answer.body.toString()]).toEqual([
      200,
      expect.stringContaining("after"),
    ]);
  },
  120_000,
);

test("a backend that becomes a listener of the agent by its settings: the version is served, and the backend never asked", async () => {
  const [port = 0] = await freePorts(1);
  await activated("later-own", `http://127.0.0.1:${port}`, "applied");
  await edge.agent.kill();
  edge.changeAgentSettings({
    accelerator: {
      listen: `127.0.0.1:${edge.ports.visitors}`,
      tls_listen: `127.0.0.1:${port}`,
      workers: 2,
      trusted_proxies: ["127.0.0.1"],
    },
  });
  await edge.startAgent();
  expect((await edge.visit("/page/own", { host: domain })).status).toBe(502);
  const socket = join(edge.dir, "agent/control.sock");
  const [status] = await Array.fromAsync(
    callControl(socket, "status", {}, AbortSignal.timeout(60_000)),
  );
  expect(status).toMatchObject({
    serving: { domains: [{ domain, version: { viewset_name: "later-own" } }] },
    warnings: expect.arrayContaining([
      expect.objectContaining({
        code: "viewset_objections",
        text: expect.stringContaining("is a listener of the agent itself"),
      }),
    ]),
  });
}, 120_000);
