// The lane of a listener: who answers what, and the switch.

import { connect } from "node:net";
import { once } from "node:events";
import { expect, it, onTestFinished, vi } from "vitest";
import { QuickAnswers } from "../../../../src/agent/accelerator/lane/quick-answers.ts";
import { until } from "../../../support/until.ts";
import { openEdge, openOrigin, raw, type Origin } from "../edge.ts";

it("leaves the requests of an open connection to node:http while it is switched off", async () => {
  const quick = vi.spyOn(QuickAnswers.prototype, "answer");
  onTestFinished(() => quick.mockRestore());
  await using origin = await openOrigin((_request, response) => {
    response.writeHead(200, { "cache-control": "max-age=60", "content-length": 5 });
    response.end("hello");
  });
  await using edge = await openEdge({ site: { backend: { urls: [origin.url] } } });
  const socket = connect(edge.port, "127.0.0.1");
  let said = "";
  socket.on("data", (bytes: Buffer) => (said += bytes.toString("latin1")));
  await once(socket, "connect");
  const ask = async (count: number): Promise<void> => {
    socket.write("GET /a HTTP/1.1\r\nHost: www.example.com\r\n\r\n");
    await until("an answer", () => said.split("hello").length === count + 1);
  };
  await ask(1);
  await ask(2);
  expect(quick).toHaveBeenCalledTimes(2);
  edge.switchLane(false);
  await ask(3);
  expect(quick).toHaveBeenCalledTimes(2);
  edge.switchLane(true);
  await ask(4);
  expect(quick).toHaveBeenCalledTimes(3);
  socket.destroy();
  const withoutMarks = (answer: string): string => answer.replace(/ttl=\d+|Age: \d+/g, "");
  const [, second = "", third = "", fourth = ""] = said.split("hello").map(withoutMarks);
  expect(third).toBe(second);
  expect(fourth).toBe(second);
  await until("the records", () => edge.records.length === 4);
  expect(edge.records.map(({ cache }) => cache)).toEqual(["miss", "hit", "hit", "hit"]);
});

const hello = async (): Promise<Origin> =>
  openOrigin((_request, response) => {
    response.writeHead(200, { "cache-control": "max-age=60", "content-length": 5 });
    response.end("hello");
  });

it("connections of one peer are told apart by what they say", async () => {
  await using origin = await hello();
  await using edge = await openEdge({
    site: { backend: { urls: [origin.url] } },
    trusted: ["127.0.0.1"],
  });
  const said = [
    ["one/1", "192.0.2.1"],
    ["one/1", "192.0.2.1"],
    ["two/2", "192.0.2.1"],
    ["two/2", "192.0.2.2"],
    ["one/1", "192.0.2.1"],
  ] as const;
  for (const [agent, address] of said) {
    const fields = `User-Agent: ${agent}\r\nX-Forwarded-For: ${address}\r\n`;
    const request = `GET /a HTTP/1.1\r\nHost: www.example.com\r\n${fields}Connection: close\r\n\r\n`;
    expect(await raw(edge, request)).toMatch(/^HTTP\/1\.1 200 [\s\S]*hello$/);
  }
  await until("the records", () => edge.records.length === said.length);
  expect(edge.records.map((one) => [one.user_agent, one.client_ip])).toEqual(said);
});

it("a visitor who ends his side behind his requests has all that was answered by then", async () => {
  await using origin = await hello();
  await using edge = await openEdge({ site: { backend: { urls: [origin.url] } } });
  const get = "GET /a HTTP/1.1\r\nHost: www.example.com\r\n\r\n";
  expect(await raw(edge, get.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"))).toContain(
    "hello",
  );
  const socket = connect(edge.port, "127.0.0.1");
  let received = "";
  socket.on("data", (bytes: Buffer) => (received += bytes.toString("latin1")));
  socket.end(get.repeat(20));
  await once(socket, "close");
  expect(received.split("hello")).toHaveLength(21);
  await until("the records", () => edge.records.length === 21);
  expect(edge.records.every(({ response_status: status }) => status === 200)).toBe(true);
});
