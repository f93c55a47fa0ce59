// Requests that are not plain, on a connection of the lane: each is answered in its turn, recorded once, and the lane goes on behind it, however the bytes come.

import { connect as connectPlain, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi, type Mock } from "vitest";
import { QuickAnswers } from "../../../../src/agent/accelerator/lane/quick-answers.ts";
import { proxyV1 } from "../../../support/proxy-headers.ts";
import { until } from "../../../support/until.ts";
import { openEdge, openOrigin, type Edge, type EdgeOptions, type Origin } from "../edge.ts";
import { installed, shake } from "../secure-clients.ts";
import { openSecure } from "../secure-stage.ts";

const hostField = "Host: www.example.com\r\n";
const get = (path: string, fields = ""): string =>
  `GET ${path} HTTP/1.1\r\n${hostField}${fields}\r\n`;
const last = get("/last", "Connection: close\r\n");
const chunked = "Transfer-Encoding: chunked\r\n";

/** What is not plain, and what its answer says. The body of a request is echoed. */
const kinds = {
  "a body of a known length": [
    `POST /echo HTTP/1.1\r\n${hostField}Content-Length: 11\r\n\r\nGET / HTTP/`,
    "echo:GET / HTTP/",
  ],
  "an empty body": [`POST /echo HTTP/1.1\r\n${hostField}Content-Length: 0\r\n\r\n`, "echo:"],
  "a body in chunks": [
    `POST /echo HTTP/1.1\r\n${hostField}${chunked}\r\n4\r\nGET \r\n3;a=b\r\n/ H\r\n0\r\n\r\n`,
    "echo:GET / H",
  ],
  "a body in chunks, with a trailer": [
    `PUT /echo HTTP/1.1\r\n${hostField}${chunked}\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n`,
    "echo:x",
  ],
  "another method without a body": [`OPTIONS /echo HTTP/1.1\r\n${hostField}\r\n`, "echo:"],
  "a GET with a body": [get("/echo", "Content-Length: 3\r\n").concat("abc"), "echo:abc"],
  "a GET with an odd field": [get("/echo", "TE: gzip\r\n"), "echo:"],
  "a GET with an odd target": [get("/echo?a=|"), "echo:"],
  "a body that is offered": [
    `POST /echo HTTP/1.1\r\n${hostField}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab`,
    "echo:ab",
  ],
  "line ends before a request": [`\r\n\r\n${get("/echo", "TE: gzip\r\n")}`, "echo:"],
} as const;

async function echoing(): Promise<Origin> {
  return openOrigin((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.once("end", () => {
      const isEcho = request.url?.startsWith("/echo") === true;
      const said = isEcho ? `echo:${Buffer.concat(parts).toString()}` : `page:${request.url}`;
      const shared = isEcho ? "no-store" : "max-age=60";
      response.writeHead(200, { "cache-control": shared, "content-length": said.length });
      response.end(said);
    });
  });
}

/** Sends each piece as a packet of its own, as far as the kernel lets us; resolves with all that came when the connection has ended. */
async function told(socket: Socket, pieces: readonly string[]): Promise<string> {
  let received = "";
  socket.setNoDelay(true).setEncoding("latin1");
  socket.on("data", (text: string) => (received += text));
  socket.on("error", () => {});
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, "latin1", resolve));
    await turn();
  }
  await closed;
  return received;
}

const bodiesOf = (received: string): readonly string[] =>
  received
    .split(/HTTP\/1\.1 \d+ [^\r]*\r\n/)
    .slice(1)
    .filter((answer) => answer.includes("\r\n\r\n") && answer.trim() !== "")
    .map((answer) => answer.slice(answer.indexOf("\r\n\r\n") + 4));

function watched(): Mock {
  const quick = vi.spyOn(QuickAnswers.prototype, "answer");
  onTestFinished(() => quick.mockRestore());
  return quick as Mock;
}

async function stage(options: EdgeOptions = {}): Promise<Edge & { readonly origin: Origin }> {
  const origin = await echoing();
  const edge = await openEdge({ site: { backend: { urls: [origin.url] } }, ...options });
  onTestFinished(async () => {
    await edge[Symbol.asyncDispose]();
    await origin[Symbol.asyncDispose]();
  });
  return Object.assign(edge, { origin });
}

const open = (edge: { readonly port: number }): Socket => connectPlain(edge.port, "127.0.0.1");

describe.each(Object.entries(kinds))("%s", (_, [odd, answered]) => {
  const before = get("/page");
  const text = `${before}${odd}${get("/page")}${last}`;
  const wanted = ["page:/page", answered, "page:/page", "page:/last"];

  it("is answered in its turn wherever its bytes are split", async () => {
    const edge = await stage();
    const [from, to] = [before.length - 1, before.length + odd.length + 1];
    for (let at = from; at <= to; at++) {
      const received = await told(open(edge), [text.slice(0, at), text.slice(at)]);
      expect(bodiesOf(received), `split at ${at}`).toEqual(wanted);
    }
    await until("records", () => edge.records.length === 4 * (to - from + 1));
    expect(edge.records.every(({ response_status }) => response_status === 200)).toBe(true);
  });

  it("is answered byte by byte, and behind its answer the lane goes on", async () => {
    const edge = await stage();
    const quick = watched();
    const socket = open(edge).setNoDelay(true);
    let received = "";
    socket.on("data", (bytes: Buffer) => (received += bytes.toString("latin1")));
    for (const byte of `${before}${odd}`) {
      await new Promise((resolve) => socket.write(byte, "latin1", resolve));
      await turn();
    }
    await until("an answer", () => received.endsWith(answered));
    expect(quick).toHaveBeenCalledTimes(1);
    for (const count of [2, 3]) {
      socket.write(get("/page"));
      await until("an answer", () => received.split("page:/page").length === count + 1);
      expect(quick).toHaveBeenCalledTimes(count);
    }
    socket.destroy();
    await until("records", () => edge.records.length === 4);
    expect(edge.records.slice(2).map(({ cache }) => cache)).toEqual(["hit", "hit"]);
  });

  it("is answered in its turn behind a PROXY header", async () => {
    const edge = await stage({ trusted: ["127.0.0.1"], proxyProtocol: "required" });
    const whole = `${proxyV1("192.0.2.7")}${text}`;
    const start = whole.length - text.length + before.length;
    const ends = [start, start + odd.length, whole.length - last.length];
    for (const at of ends.flatMap((end) => [end - 1, end, end + 1])) {
      const received = await told(open(edge), [whole.slice(0, at), whole.slice(at)]);
      expect(bodiesOf(received)).toEqual(wanted);
    }
    await until("records", () => edge.records.length === 4 * 3 * ends.length);
    expect(new Set(edge.records.map(({ client_ip }) => client_ip))).toEqual(new Set(["192.0.2.7"]));
  });

  it("is answered in its turn over TLS", async () => {
    const origin = await echoing();
    onTestFinished(async () => origin[Symbol.asyncDispose]());
    await using secure = await openSecure({
      certificates: [installed({ names: ["www.example.com"] })],
      site: { backend: { urls: [origin.url] } },
    });
    for (let at = 1; at < text.length; at += 11) {
      const socket = await shake(secure.port, { ALPNProtocols: ["http/1.1"] });
      const received = await told(socket, [text.slice(0, at), text.slice(at)]);
      expect(bodiesOf(received), `split at ${at}`).toEqual(wanted);
    }
  });
});

it("a request that came in one piece with its forerunner is answered by node:http, and the next one by the lane", async () => {
  const edge = await stage();
  const quick = watched();
  const socket = open(edge);
  let received = "";
  socket.on("data", (bytes: Buffer) => (received += bytes.toString("latin1")));
  const post = `POST /echo HTTP/1.1\r\n${hostField}Content-Length: 1\r\n\r\nx`;
  socket.write(`${post}${get("/page")}${post}${get("/page")}`);
  await until("answers", () => received.split("page:/page").length === 3);
  expect(quick).not.toHaveBeenCalled();
  expect(bodiesOf(received)).toEqual(["echo:x", "page:/page", "echo:x", "page:/page"]);
  socket.write(get("/page"));
  await until("an answer", () => received.split("page:/page").length === 4);
  expect(quick).toHaveBeenCalledTimes(1);
  socket.destroy();
});

it("what a visitor sends while his request is answered waits, and is not read ahead without bound", async () => {
  const edge = await stage();
  const quick = watched();
  const post = `POST /echo HTTP/1.1\r\n${hostField}Content-Length: 1\r\n\r\nx`;
  const count = 2_000;
  const received = await told(open(edge), [post, get("/page").repeat(count), last]);
  expect(bodiesOf(received)).toEqual([
    "echo:x",
    ...Array.from({ length: count }, () => "page:/page"),
    "page:/last",
  ]);
  expect(quick.mock.calls.length).toBeGreaterThan(0);
  await until("records", () => edge.records.length === count + 2);
});

it("a body that the origin takes slowly comes whole, and the lane goes on behind it", async () => {
  await using origin = await openOrigin((request, response) => {
    let bytes = 0;
    request.once("end", () => response.end(`took:${bytes}`));
    const take = (): void => {
      for (let part: unknown; (part = request.read()) !== null;) {
        if (Buffer.isBuffer(part)) bytes += part.length;
      }
      if (!request.readableEnded) setImmediate(take);
    };
    take();
  });
  await using edge = await openEdge({ site: { backend: { urls: [origin.url] } } });
  const quick = watched();
  const bytes = 8 * 2 ** 20;
  const head = `POST /echo HTTP/1.1\r\n${hostField}Content-Length: ${bytes}\r\n\r\n`;
  const received = await told(open(edge), [head, "x".repeat(bytes), last]);
  expect(received.split("took:")).toHaveLength(3);
  expect(received).toContain(`took:${bytes}`);
  expect(quick.mock.calls.length).toBeLessThanOrEqual(1);
  await until("records", () => edge.records.length === 2);
});

describe("a refusal of the parser", () => {
  it.each([
    ["of a head", `GET /bad HTTP/1.1\r\nHost : a\r\n\r\n`, "GET", "/bad"],
    ["of its last byte", `GET /bad HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\r`, "GET", "/bad"],
  ])("%s ends the connection and is recorded with its line", async (_, bad, method, uri) => {
    const edge = await stage();
    const received = await told(open(edge), [get("/page"), bad]);
    expect(received).toMatch(/page:\/pageHTTP\/1\.1 400 /);
    await until("records", () => edge.records.length === 2);
    const [, refused] = edge.records;
    expect(refused).toMatchObject({ request_method: method, uri_path: uri, response_status: 400 });
  });

  it("of a body leaves the answer to its exchange", async () => {
    const edge = await stage();
    const head = `POST /echo HTTP/1.1\r\n${hostField}${chunked}\r\n`;
    const received = await told(open(edge), [get("/page"), head, "zz\r\n"]);
    expect(received).toMatch(/page:\/pageHTTP\/1\.1 400 /);
    await until("records", () => edge.records.length === 2);
  });
});

it("a visitor who leaves within his request is recorded once", async () => {
  const edge = await stage();
  const socket = open(edge);
  socket.write(`POST /echo HTTP/1.1\r\n${hostField}Content-Length: 5\r\n\r\nab`);
  await until("the request", () => edge.openConnections === 1);
  socket.end();
  await until("the record", () => edge.records.length === 1);
  expect(edge.records).toHaveLength(1);
});
