// What is counted of the requests to an origin, and what central is told of it by that: one that is down stays so, whatever is still under way.

import { connect } from "node:net";
import { expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { OriginReport } from "../../../../src/agent/admin/domain-reports.ts";
import { until } from "../../../support/until.ts";
import { freePorts } from "../../../support/free-ports.ts";
import { ask, host, openEdge } from "../edge.ts";
import { openStage } from "../stage.ts";

it("what is under way, or was given up, does not make a dead origin look alive", async () => {
  let isDead = false;
  await using stage = await openStage((request) => {
    if (isDead) request.socket.destroy();
  });
  const { edge, seen } = stage;
  const facts = new OriginReport();
  const report = async () => {
    const metrics = await edge.registry.getMetricsAsJSON();
    return facts.take([metrics], [host], new Map())[0]?.backend;
  };
  const leaving = connect(edge.port, "127.0.0.1");
  leaving.write(`GET /left HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const waiting = ask(edge, "/waiting");
  await until("both are under way", () => seen.length === 2);
  expect(await report()).toMatchObject({ requests: 0, errors: 0 });
  isDead = true;
  expect((await ask(edge, "/failed")).status).toBe(502);
  expect(await report()).toMatchObject({ requests: 1, errors: 1, reachable: false });
  leaving.destroy();
  await until("the visitor's leaving is recorded", () => edge.records.length === 2);
  expect((await ask(edge, "/failed")).status).toBe(502);
  expect(await report()).toMatchObject({ requests: 2, errors: 2, reachable: false });
  for (const { socket } of seen) socket.destroy();
  expect((await waiting).status).toBe(502);
  expect(await report()).toMatchObject({ requests: 3, errors: 3, reachable: false });
});

it.each([
  { it: "is not there", status: 502, kind: "unreachable", path: "/", urls: "none" },
  { it: "breaks off", status: 502, kind: "broken", path: "/broken", urls: "there" },
  { it: "says nothing", status: 504, kind: "timeout", path: "/silent", urls: "there" },
] as const)(
  "an origin that $it: counted as $kind, and as no answer of its own",
  async ({ status, kind, path, urls }) => {
    await using stage = await openStage((request) => {
      if (request.url === "/broken") request.socket.destroy();
    });
    const [unused] = await freePorts(1);
    const backend: SiteInput["backend"] = {
      urls: [urls === "none" ? `http://127.0.0.1:${unused}` : stage.origin.url],
      retries: 0,
      response_timeout_s: 0.1,
    };
    await using edge = await openEdge({ site: { backend } });
    expect((await ask(edge, path)).status).toBe(status);
    const text = await edge.registry.metrics();
    expect(text).toContain(`accel_agent_origin_errors_total{domain="${host}",kind="${kind}"} 1\n`);
    expect(text).not.toContain("accel_agent_origin_server_errors_total{");
  },
);

it("an origin's own answer of 500 or more is counted, others are not", async () => {
  await using stage = await openStage((request, response) =>
    response.writeHead(Number(request.url?.slice(1))).end(),
  );
  for (const status of [200, 404, 499, 500, 503])
    expect((await ask(stage.edge, `/${status}`)).status).toBe(status);
  const text = await stage.edge.registry.metrics();
  expect(text).toContain(`accel_agent_origin_server_errors_total{domain="${host}"} 2\n`);
  expect(text).not.toContain("accel_agent_origin_errors_total{");
});
