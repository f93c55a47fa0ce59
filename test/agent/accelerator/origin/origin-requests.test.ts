// What is counted of the requests to an origin, and what central is told of it by that: one that is down stays so, whatever is still under way.

import { connect } from "node:net";
import { expect, it } from "vitest";
import { OriginReport } from "../../../../src/agent/admin/domain-reports.ts";
import { until } from "../../../support/until.ts";
import { ask, host } from "../edge.ts";
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
