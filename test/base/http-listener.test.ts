// Listening with named errors, bodies with a bound, closing that ends.

import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { once } from "node:events";
import { expect, test } from "vitest";
import { listenHttp, readBody, type BodyRead } from "../../src/base/http-listener.ts";
import { until } from "../support/until.ts";

const local = { host: "127.0.0.1", port: 0 };

test("a taken port is told by host and port", async () => {
  await using first = await listenHttp(() => undefined, local);
  expect(first.port).toBeGreaterThan(0);
  await expect(
    listenHttp(() => undefined, { host: "127.0.0.1", port: first.port }),
  ).rejects.toMatchObject({
    code: "PORT_TAKEN",
    message: `127.0.0.1:${first.port} is in use by another process`,
  });
});

test("an address of another host is told", async () => {
  await expect(
    listenHttp(() => undefined, { host: "192.0.2.1", port: 8_080 }),
  ).rejects.toMatchObject({
    code: "ADDRESS_UNUSABLE",
    message: expect.stringMatching(/^cannot listen on 192\.0\.2\.1:8080: /),
  });
});

async function post(
  port: number,
  chunks: readonly string[],
  length: number | undefined,
): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const head = length === undefined ? "transfer-encoding: chunked" : `content-length: ${length}`;
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${head}\r\n\r\n`);
  for (const chunk of chunks)
    socket.write(length === undefined ? `${chunk.length.toString(16)}\r\n${chunk}\r\n` : chunk);
  if (length === undefined) socket.write("0\r\n\r\n");
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
  return answer.split("\r\n\r\n")[1] ?? "";
}

test.each([
  ["as long as allowed", ["12345", "67890"], 10, "1234567890"],
  ["empty", [], 0, ""],
  ["chunked", ["123", "456"], undefined, "123456"],
  ["one more than allowed", ["12345", "678901"], 11, "too large"],
  ["one more than allowed, chunked", ["12345", "678901"], undefined, "too large"],
  [
    "much more than allowed, chunked",
    Array.from({ length: 50 }, () => "x".repeat(60_000)),
    undefined,
    "too large",
  ],
])("a body that is %s", async (_name, chunks, length, expected) => {
  await using listener = await listenHttp((request, response) => {
    void readBody(request, 10).then((read) =>
      response.end(read.ok ? read.body.toString("utf8") : read.reason),
    );
  }, local);
  expect(await post(listener.port, chunks, length)).toMatch(
    new RegExp(`(?:^|\r\n)${expected}(?:$|\r\n)`),
  );
});

test("a body that is too large does not hold up the requests behind it", async () => {
  await using listener = await listenHttp((request, response) => {
    void readBody(request, 10).then((read) => response.end(read.ok ? "read" : read.reason));
  }, local);
  const socket = connect(listener.port, "127.0.0.1").setEncoding("utf8");
  let answers = "";
  socket.on("data", (chunk: string) => (answers += chunk));
  const chunk = "x".repeat(65_536);
  socket.write("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  await until("answered", () => {
    socket.write(`10000\r\n${chunk}\r\n`);
    return answers.includes("too large");
  });
  for (let i = 0; i < 20; i++) socket.write(`10000\r\n${chunk}\r\n`);
  socket.write("0\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await until("the next one answered", () => answers.includes("read"));
  expect(answers.split("HTTP/1.1 200 OK")).toHaveLength(3);
  socket.destroy();
});

test("a sender that goes away leaves an aborted body, no exception", async () => {
  const { promise, resolve } = Promise.withResolvers<BodyRead>();
  let socket: Socket | undefined;
  await using listener = await listenHttp((request: IncomingMessage) => {
    void readBody(request, 100).then(resolve);
    socket?.destroy();
  }, local);
  socket = connect(listener.port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\nhalf");
  expect(await promise).toEqual({ ok: false, reason: "aborted" });
});

test("closing waits for the request in flight", async () => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
  const listener = await listenHttp((_, response) => {
    ask();
    void mayAnswer.then(() => response.end("whole"));
  }, local);
  const got = fetch(`http://127.0.0.1:${listener.port}/`).then(async (response) => response.text());
  await asked;
  const beganMs = performance.now();
  const closed = listener[Symbol.asyncDispose]();
  answer();
  expect(await got).toBe("whole");
  await closed;
  expect(performance.now() - beganMs).toBeLessThan(2_000); // Not the whole grace for a connection kept alive.
  await expect(fetch(`http://127.0.0.1:${listener.port}/`)).rejects.toThrow();
});

test("closing cuts what is still open after the grace: a request without answer, a connection that says nothing", async () => {
  let isAsked = false;
  const listener = await listenHttp(() => (isAsked = true), local, { graceMs: 100 });
  const silent = connect(listener.port, "127.0.0.1");
  await once(silent, "connect");
  const hanging = connect(listener.port, "127.0.0.1");
  hanging.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const closed = [silent, hanging].map(async (socket) => once(socket.resume(), "close"));
  for (const socket of [silent, hanging]) socket.on("error", () => undefined);
  await until("asked", () => isAsked);
  const beganMs = performance.now();
  await listener[Symbol.asyncDispose]();
  expect(performance.now() - beganMs).toBeLessThan(2_000);
  await Promise.all(closed);
});

test("a body that takes too long is given up", async () => {
  await using listener = await listenHttp((request, response) => {
    void readBody(request, 100, 1_000).then((read) => response.end(read.ok ? "read" : read.reason));
  }, local);
  expect(
    await answerTo(listener.port, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\nhalf"),
  ).toContain("too slow");
  expect(await post(listener.port, ["whole"], 5)).toContain("read");
});

/** Until the connection is closed at the other end. */
async function answerTo(port: number, sent: string): Promise<string> {
  const socket = connect(port, "127.0.0.1").setEncoding("utf8");
  socket.write(sent);
  let answer = "";
  for await (const chunk of socket) {
    answer += String(chunk);
    if (/too slow|early/.test(answer)) break;
  }
  return answer;
}

test("who is answered and goes on with its body for too long is cut off; who ends it in time is not", async () => {
  const times = { restOfBodyMs: 1_500 }; // Whoever ends it in time must not be too late on a busy machine.
  await using listener = await listenHttp(
    (_, response) => void response.end("early"),
    local,
    times,
  );
  const head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n";
  const slow = connect(listener.port, "127.0.0.1");
  const cut = once(slow.resume(), "close");
  slow.on("error", () => undefined);
  slow.write(`${head}12`);
  await cut;

  const quick = connect(listener.port, "127.0.0.1").setEncoding("utf8");
  let answers = "";
  quick.on("data", (chunk: string) => (answers += chunk));
  quick.write(`${head}12`);
  await until("answered", () => answers.includes("early"));
  quick.write("345");
  // The next one on its connection, after the time that the other one had.
  const slowAgain = connect(listener.port, "127.0.0.1");
  slowAgain.on("error", () => undefined);
  slowAgain.write(`${head}12`);
  await once(slowAgain.resume(), "close");
  quick.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await until("answered again", () => answers.split("early").length === 3);
  expect(quick.destroyed).toBe(false);
  quick.destroy();
});

test("while what is in flight is answered, what comes is answered too, as the last of its connection", async () => {
  const asked: ServerResponse[] = [];
  const listener = await listenHttp(
    (request, response) => {
      if (request.url === "/slow") asked.push(response);
      else response.end("quick");
    },
    local,
    { drainMs: 10_000 },
  );
  const url = `http://127.0.0.1:${listener.port}`;
  const slow = fetch(`${url}/slow`);
  await until("asked", () => asked.length === 1);
  const kept = await fetch(url);
  expect(kept.headers.get("connection")).toBe("keep-alive");
  await kept.text();
  const closed = listener[Symbol.asyncDispose]();
  const meanwhile = await fetch(url);
  expect(meanwhile.headers.get("connection")).toBe("close");
  expect(await meanwhile.text()).toBe("quick");
  asked[0]?.end("whole");
  const answer = await slow;
  expect(answer.headers.get("connection")).toBe("close");
  expect(await answer.text()).toBe("whole");
  await closed;
  await expect(fetch(url)).rejects.toThrow();
});

test("closing ends, however many requests hang", async () => {
  let asked = 0;
  const times = { drainMs: 50, graceMs: 50 };
  const listener = await listenHttp(() => void asked++, local, times);
  const url = `http://127.0.0.1:${listener.port}`;
  const hanging = Array.from({ length: 20 }, async () => fetch(url).catch(() => "cut"));
  await until("asked", () => asked === 20);
  await listener[Symbol.asyncDispose]();
  expect(new Set(await Promise.all(hanging))).toEqual(new Set(["cut"]));
});
