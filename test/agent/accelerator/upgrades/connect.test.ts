// WebSockets over HTTP/2 (extended CONNECT), with node:http2 and the frames of a real client on its streams.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { until } from "../../../support/until.ts";
import { stateOf, type EdgeOptions } from "../edge.ts";
import { readHttp2, visitByHttp2, type Http2Visitor } from "../secure-clients.ts";
import { openSecure } from "../secure-stage.ts";
import { echoes, UpgradeOrigin, type Upgraded } from "./upgrade-origin.ts";

async function openScene(upgraded: Upgraded = echoes, options: EdgeOptions = {}) {
  const origin = new UpgradeOrigin(createServer(), upgraded);
  const urls = [`http://127.0.0.1:${await origin.listen()}`];
  const site = { backend: { urls, retries: 0 } };
  const secure = await openSecure({ ...options, site });
  const visitor = await visitByHttp2(secure.port);
  if (!visitor.session.remoteSettings.enableConnectProtocol)
    await once(visitor.session, "remoteSettings");
  return {
    edge: secure.edge,
    origin,
    site,
    visitor,
    [Symbol.asyncDispose]: async () => {
      await visitor[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
      await secure[Symbol.asyncDispose]();
    },
  };
}

const asks = (more: OutgoingHttpHeaders = {}): OutgoingHttpHeaders => ({
  ":method": "CONNECT",
  ":protocol": "websocket",
  ":scheme": "https",
  ":path": "/chat?a=1",
  "sec-websocket-version": "13",
  "sec-websocket-protocol": "b, a",
  origin: "https://elsewhere.example",
  ...more,
});

function connectBy(visitor: Http2Visitor, more?: OutgoingHttpHeaders): ClientHttp2Stream {
  return visitor.begin(asks(more), false);
}

/** The client's side of an open one. */
async function open(visitor: Http2Visitor): Promise<WebSocket> {
  const stream = connectBy(visitor);
  const [head] = (await once(stream, "response")) as [Record<string, unknown>];
  expect(head[":status"]).toBe(200);
  // As after an upgrade of HTTP/1.1: the library only wants a stream that it can set a timeout on.
  const socket: WebSocket = Reflect.construct(WebSocket, [
    null,
    undefined,
    { autoPong: true, closeTimeout: 30_000 },
  ]);
  const duplex = Object.assign(stream, { setNoDelay: () => {}, setTimeout: () => {} });
  const plain = { maxPayload: 0, skipUTF8Validation: false, allowSynchronousEvents: true };
  const inside = socket as unknown as {
    _isServer: boolean;
    setSocket(socket: Socket, head: Buffer, options: object): void;
  };
  inside._isServer = false;
  inside.setSocket(duplex as unknown as Socket, Buffer.alloc(0), plain);
  socket.on("error", () => {});
  return socket;
}

async function closeCode(socket: WebSocket): Promise<number> {
  const [code] = (await once(socket, "close")) as [number];
  return code;
}

test("10,000 messages each way over two streams, and a new state in between", async () => {
  await using s = await openScene();
  const sockets = [await open(s.visitor), await open(s.visitor)];
  s.edge.publish({ ...stateOf(2, s.site) });
  const digests = sockets.map(async (socket) => {
    const [sent, got] = [createHash("sha256"), createHash("sha256")];
    const { promise, resolve } = Promise.withResolvers<void>();
    let came = 0;
    socket.on("message", (bytes: Buffer) => {
      got.update(bytes);
      if (++came === 5_000) resolve();
    });
    for (let n = 0; n < 5_000; n++) {
      const message = Buffer.alloc((n * 37) % 700, `${n} `);
      sent.update(message);
      socket.send(message);
    }
    await promise;
    return [sent.digest("hex"), got.digest("hex")];
  });
  for (const [sent, got] of await Promise.all(digests)) expect(got).toBe(sent);
  expect(s.edge.records).toEqual([]);
  for (const socket of sockets) {
    socket.close(1000);
    expect(await closeCode(socket)).toBe(1000);
  }
  await until("the records", () => s.edge.records.length === 2);
  for (const record of s.edge.records) {
    expect(record).toMatchObject({ response_status: 101, request_method: "GET", cache: "pass" });
    expect(record.bytes_sent).toBeGreaterThan(5_000);
  }
  expect(s.visitor.session.destroyed).toBe(false);
});

test("the origin is asked as by HTTP/1.1, and the visitor is told nothing of that", async () => {
  await using s = await openScene();
  const stream = connectBy(s.visitor, { "sec-websocket-key": "theirs" });
  const [head] = (await once(stream, "response")) as [Record<string, unknown>];
  expect(head).toMatchObject({ ":status": 200, "sec-websocket-protocol": "b" });
  for (const name of ["connection", "upgrade", "sec-websocket-accept"])
    expect(head).not.toHaveProperty(name);
  const [asked] = s.origin.asked;
  expect(asked).toMatchObject({ method: "GET", url: "/chat?a=1" });
  expect(asked?.headers).toMatchObject({
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-protocol": "b, a",
    origin: "https://elsewhere.example",
    "x-forwarded-proto": "https",
    via: "2 accel-agent",
  });
  expect(asked?.headers["sec-websocket-key"]).toMatch(/^[A-Za-z0-9+/]{22}==$/);
});

test("another answer is a plain one, on a stream that ends", async () => {
  await using s = await openScene((_request, socket) =>
    socket.end("HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nnope"),
  );
  const stream = connectBy(s.visitor);
  const answered = readHttp2(stream);
  stream.once("end", () => stream.end());
  expect(await answered).toMatchObject({ status: 403, text: "nope" });
  await until("the record", () => s.edge.records.length === 1);
  expect(s.edge.records[0]).toMatchObject({ response_status: 403 });
});

test("an origin that did not read the key gives no WebSocket", async () => {
  await using s = await openScene((_request, socket) =>
    socket
      .once("end", () => socket.end())
      .resume()
      .write(
        "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
      ),
  );
  const stream = connectBy(s.visitor);
  const answered = readHttp2(stream);
  stream.once("end", () => stream.end());
  expect((await answered).status).toBe(502);
  await until("the origin's connection", () => s.origin.sockets.size === 0);
});

test("a CONNECT for another protocol, or for none, is 405", async () => {
  await using s = await openScene();
  const other = connectBy(s.visitor, { ":protocol": "connect-udp" });
  const answered = readHttp2(other);
  other.once("end", () => other.end());
  expect((await answered).status).toBe(405);
  expect(s.origin.asked).toEqual([]);
});

test("who resets the stream leaves, and other streams go on", async () => {
  await using s = await openScene();
  const left = connectBy(s.visitor);
  await once(left, "response");
  left.close(8);
  await until("the record", () => s.edge.records.length === 1);
  await until("the origin's connection", () => s.origin.sockets.size === 0);
  const socket = await open(s.visitor);
  socket.send("hello");
  const [bytes] = (await once(socket, "message")) as [Buffer];
  expect(bytes.toString()).toBe("hello");
});

test("a drain gives it the grace, then says 1001", async () => {
  await using s = await openScene();
  const socket = await open(s.visitor);
  const drained = s.edge.drain(100);
  expect(await closeCode(socket)).toBe(1001);
  await drained;
  expect(s.edge.records).toMatchObject([{ response_status: 101 }]);
});
