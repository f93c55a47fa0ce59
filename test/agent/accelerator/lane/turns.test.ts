// Many requests at once on one connection: all are answered, in their order, and others have their turn between them.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import { openEdge, openOrigin, type Edge } from "../edge.ts";

const count = 1_000;
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: www.example.com\r\n\r\n`;
const pipelined = Array.from({ length: count }, (_, no) => get(`/page/${no}`)).join("");
/** Requests that only node:http reads. */
const odd = pipelined.replaceAll("\r\n\r\n", "\r\nKeep-Alive: 5\r\n\r\n");
const kinds = [
  ["plain", pipelined],
  ["odd", odd],
] as const;
const answers = (said: string): number => said.split("HTTP/1.1 ").length - 1;

async function openStage(): Promise<{ edge: Edge } & AsyncDisposable> {
  const stack = new AsyncDisposableStack();
  const origin = stack.use(await openOrigin((_request, response) => response.end()));
  // Answered at once, without the origin.
  const redirects = [{ from: "/page/*", to: "/other", status: 302 as const }];
  const site = { backend: { urls: [origin.url] }, redirects };
  const edge = stack.use(await openEdge({ site }));
  return { edge, [Symbol.asyncDispose]: async () => stack.disposeAsync() };
}

async function visit({ port }: Edge): Promise<{ readonly socket: Socket; said: string }> {
  const socket = connect(port, "127.0.0.1");
  const visitor = { socket, said: "" };
  socket.on("data", (bytes: Buffer) => (visitor.said += bytes.toString("latin1")));
  await once(socket, "connect");
  return visitor;
}

it.each(kinds)(
  "answers all of them in their order (%s), also those that came before the visitor ended",
  async (_kind, requests) => {
    await using stage = await openStage();
    const { edge } = stage;
    const crowd = await visit(edge);
    crowd.socket.end(requests);
    await once(crowd.socket, "close");
    expect(crowd.said.match(/HTTP\/1\.1 302 /g)?.length).toBe(count);
    await until("the records", () => edge.records.length === count);
    const inOrder = Array.from({ length: count }, (_, no) => `/page/${no}`);
    expect(edge.records.map(({ uri_path }) => uri_path)).toEqual(inOrder);
  },
);

it.each(kinds)("answers somebody else before the last of them (%s)", async (_kind, requests) => {
  await using stage = await openStage();
  const { edge } = stage;
  const [crowd, single] = [await visit(edge), await visit(edge)];
  crowd.socket.write(requests);
  single.socket.write(get("/page/single"));
  await until("all answers", () => answers(crowd.said) === count && answers(single.said) === 1);
  await until("the records", () => edge.records.length === count + 1);
  const place = edge.records.findIndex(({ uri_path }) => uri_path === "/page/single");
  expect(place).toBeGreaterThanOrEqual(0);
  expect(place).toBeLessThan(count / 2);
  crowd.socket.destroy();
  single.socket.destroy();
});

it("ends a connection of node:http behind 32 that are under way", async () => {
  const asked: string[] = [];
  await using origin = await openOrigin((request, response) => {
    asked.push(request.url ?? "");
    response.end("x");
  });
  await using edge = await openEdge({ site: { backend: { urls: [origin.url] } } });
  edge.switchLane(false);
  const crowd = await visit(edge);
  crowd.socket.write(pipelined);
  await once(crowd.socket, "close");
  expect(answers(crowd.said)).toBe(32);
  expect(crowd.said.split("Connection: close").length).toBe(2);
  expect(new Set(asked)).toEqual(new Set(Array.from({ length: 32 }, (_, no) => `/page/${no}`)));
  await until("the records", () => edge.records.length === 32);
});
