// What one visitor may hold: connections, and requests that are not finished; by his address, or by the one that a trusted proxy names.

import { connect } from "node:net";
import type { ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { closeOf } from "../../../../src/base/wait.ts";
import { until } from "../../../support/until.ts";
import { ask, openEdge, openOrigin, type EdgeOptions } from "../edge.ts";

async function openScene(options: EdgeOptions) {
  const stack = new AsyncDisposableStack();
  const held: ServerResponse[] = [];
  const origin = stack.use(await openOrigin((_request, response) => void held.push(response)));
  const site = {
    backend: { urls: [origin.url], retries: 0 },
    cache: { default: { bypass: true } },
  };
  const edge = stack.use(await openEdge({ ...options, site }));
  const from = async (address: string) =>
    ask(edge, "/", { headers: { "x-forwarded-for": address } });
  const end = async (): Promise<void> => stack.disposeAsync();
  return { edge, held, from, [Symbol.asyncDispose]: end };
}

it("a connection too many of one address is closed, and there is room again when another one ends", async () => {
  await using scene = await openScene({ visitors: { connectionsMax: 2 } });
  const { edge } = scene;
  const open = [connect(edge.port, "127.0.0.1"), connect(edge.port, "127.0.0.1")] as const;
  await until("both are open", () => edge.openConnections === 2);
  const third = connect(edge.port, "127.0.0.1").on("error", () => {});
  await closeOf(third);
  expect(edge.openConnections).toBe(2);
  expect(await edge.registry.metrics()).toContain(
    'accel_agent_visitor_refused_total{what="connection"} 1',
  );
  open[0].destroy();
  await until("one has gone", () => edge.openConnections === 1);
  const fourth = connect(edge.port, "127.0.0.1");
  await until("there is room", () => edge.openConnections === 2);
  for (const socket of [open[1], fourth]) socket.destroy();
});

it("a request too many is told 429, and others are answered", async () => {
  await using scene = await openScene({ visitors: { requestsMax: 2 } });
  const { edge, held } = scene;
  const first = [ask(edge, "/1"), ask(edge, "/2")];
  await until("both are with the origin", () => held.length === 2);
  const refused = await ask(edge, "/3");
  expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"]);
  for (const response of held) response.end("made");
  expect((await Promise.all(first)).map(({ text }) => text)).toEqual(["made", "made"]);
  const later = ask(edge, "/4");
  await until("it is with the origin", () => held.length === 3);
  held[2]?.end("later");
  expect((await later).text).toBe("later");
  expect(edge.records.map(({ response_status: status }) => status)).toEqual([429, 200, 200, 200]);
  expect(await edge.registry.metrics()).toContain(
    'accel_agent_visitor_refused_total{what="request"} 1',
  );
});

it("behind a trusted proxy the requests are judged by whom it names, and its connections by nobody", async () => {
  const visitors = { requestsMax: 1, connectionsMax: 1 };
  await using scene = await openScene({ trusted: ["127.0.0.1"], visitors });
  const { edge, held, from } = scene;
  const waiting = [
    from("192.0.2.1"),
    from("192.0.2.2"),
    from("2001:db8:0:1::1"),
    from("2001:db8:0:2::1"),
  ];
  await until("all are with the origin", () => held.length === 4);
  for (const address of ["192.0.2.1", "192.0.2.2", "2001:db8::1:ffff:0:0:9", "2001:db8:0:2::7"])
    expect([address, (await from(address)).status]).toEqual([address, 429]);
  for (const response of held) response.end("made");
  for (const answer of await Promise.all(waiting)) expect(answer.text).toBe("made");
  expect(edge.records).toHaveLength(8);
});
