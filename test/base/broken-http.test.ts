// What is answered to bytes that are not HTTP, wherever on a connection they come: behind the answers that are due before, and then nothing more.

import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { listen, refuseBroken } from "../../src/base/http-listener.ts";
import { until } from "../support/until.ts";

const local = { host: "127.0.0.1", port: 0 };
const whole = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/** A server that refuses, and one connection to it. */
async function opened(handler: RequestListener) {
  const server = createServer({ maxHeaderSize: 1_024 }, handler);
  refuseBroken(server);
  await listen(server, local);
  const { port } = Object(server.address());
  const socket: Socket = connect(Number(port), local.host).setEncoding("utf8");
  await once(socket, "connect");
  let heard = "";
  socket.on("data", (text: string) => (heard += text)).on("error", () => undefined);
  const closed = once(socket, "close");
  return {
    say: (text: string) => void socket.write(text),
    heard: () => heard,
    /** All that was said until the server ended it. */
    ended: async () => {
      await closed;
      return heard;
    },
    [Symbol.asyncDispose]: async () => {
      socket.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** In the order in which they came. */
const statuses = (heard: string): readonly string[] =>
  [...heard.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status = ""]) => status);

const answers: RequestListener = (_, response) => void response.end("answered\n");

test.each([
  ["what is no request", "nonsense\r\n\r\n", "400", "the request is not HTTP/1.1"],
  [
    "a header that is too large",
    `GET / HTTP/1.1\r\nx: ${"x".repeat(2_000)}\r\n\r\n`,
    "431",
    "the header fields are too large",
  ],
  [
    "chunk extensions that are too large",
    `POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1;${"x".repeat(20_000)}\r\na\r\n0\r\n\r\n`,
    "413",
    "the chunk extensions are too large",
  ],
])(
  "%s is told as a problem document, and the connection ends",
  async (_what, sent, status, detail) => {
    await using connection = await opened(() => undefined);
    connection.say(sent);
    const heard = await connection.ended();
    expect(statuses(heard)).toEqual([status]);
    const [head = "", body = ""] = heard.split("\r\n\r\n");
    expect(head).toContain("content-type: application/problem+json");
    expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`);
    expect(JSON.parse(body)).toEqual({
      type: "about:blank",
      title: expect.stringMatching(/./),
      status: Number(status),
      detail,
    });
  },
);

test("behind a request that was answered it is refused all the same", async () => {
  await using connection = await opened(answers);
  connection.say(whole);
  await until("answered", () => connection.heard().includes("answered"));
  connection.say("nonsense\r\n\r\n");
  expect(statuses(await connection.ended())).toEqual(["200", "400"]);
});

test("behind a request that is not answered yet it waits for that answer", async () => {
  const asked: ServerResponse[] = [];
  await using connection = await opened((_, response) => void asked.push(response));
  connection.say(`${whole}nonsense\r\n\r\n`);
  await until("asked", () => asked.length === 1);
  asked[0]?.end("answered\n");
  const heard = await connection.ended();
  expect(statuses(heard)).toEqual(["200", "400"]);
  expect(heard).toContain("answered\n");
});

const broken = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n";

test("a body that breaks before its answer has begun is refused", async () => {
  await using connection = await opened((request) => void request.resume());
  connection.say(broken);
  expect(statuses(await connection.ended())).toEqual(["400"]);
});

test("a body that breaks behind the head of its answer cuts the connection: what follows would be taken for the answer's", async () => {
  await using connection = await opened((request, response) => {
    request.resume();
    response.writeHead(200, { "content-length": 100 });
    response.write("begun");
  });
  connection.say(broken.replace("nonsense\r\n", ""));
  await until("begun", () => connection.heard().includes("begun"));
  connection.say("nonsense\r\n");
  expect(statuses(await connection.ended())).toEqual(["200"]);
});
