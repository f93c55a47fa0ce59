// The lane of a listener: who answers what, and the switch.

import { connect } from "node:net";
import { once } from "node:events";
import { expect, it, onTestFinished, vi } from "vitest";
import { QuickAnswers } from "../../../../src/agent/accelerator/lane/quick-answers.ts";
import { until } from "../../../support/until.ts";
import { openEdge, openOrigin } from "../edge.ts";

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
