// WebSockets and other upgrades through the accelerator, with real clients and a real server behind it.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createSecure } from "node:https";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { beforeAll, expect, test } from "vitest";
import { WebSocket, type ClientOptions } from "ws";
import type { VisitorJudge } from "../../../../src/agent/bots/decisions/evidence.ts";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { makeAuthority } from "../../../support/x509.ts";
import { until } from "../../../support/until.ts";
import { host, openEdge, raw, stateOf, type Edge, type EdgeOptions } from "../edge.ts";
import { ca } from "../secure-clients.ts";
import { openSecure } from "../secure-stage.ts";
import { echoes, UpgradeOrigin, type Upgraded } from "./upgrade-origin.ts";

const authority = makeAuthority();
const trusted = authority.issue({ names: [host] });
beforeAll(() => {
  setDefaultCACertificates([...getCACertificates("default"), authority.root.pem]);
});

type Scene = AsyncDisposable & {
  readonly edge: Edge;
  readonly origin: UpgradeOrigin;
  readonly site: SiteInput;
};

async function openScene(upgraded: Upgraded = echoes, options: EdgeOptions = {}): Promise<Scene> {
  const origin = new UpgradeOrigin(createServer(), upgraded);
  const site: SiteInput = {
    backend: { urls: [`http://127.0.0.1:${await origin.listen()}`], retries: 0 },
  };
  const edge = await openEdge({ ...options, site });
  return {
    edge,
    origin,
    site,
    [Symbol.asyncDispose]: async () => {
      await origin[Symbol.asyncDispose]();
      await edge[Symbol.asyncDispose]();
    },
  };
}

/** An open one. */
async function open(
  port: number,
  options: ClientOptions & { readonly tls?: boolean } = {},
): Promise<WebSocket> {
  const { tls = false, headers, ...rest } = options;
  const own = { headers: { host, ...headers }, ...(tls && { ca, servername: host }), ...rest };
  const socket = new WebSocket(
    `${tls ? "wss" : "ws"}://127.0.0.1:${port}/chat?a=1`,
    ["b", "a"],
    own,
  );
  await once(socket, "open");
  socket.on("error", () => {});
  return socket;
}

async function closeCode(socket: WebSocket): Promise<number> {
  const [code] = (await once(socket, "close")) as [number];
  return code;
}

async function echoed(socket: WebSocket, text: string): Promise<string> {
  socket.send(text);
  const [bytes] = (await once(socket, "message")) as [Buffer];
  return bytes.toString();
}

async function metric(edge: Edge, line: string): Promise<void> {
  await until(line, async () => (await edge.registry.metrics()).includes(`${line}\n`));
}

/** Sends `count` messages and resolves with the digests of what went and what came. */
async function exchange(socket: WebSocket, count: number): Promise<readonly [string, string]> {
  const [sent, got] = [createHash("sha256"), createHash("sha256")];
  let came = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("message", (bytes: Buffer) => {
    got.update(bytes);
    if (++came === count) resolve();
  });
  for (let n = 0; n < count; n++) {
    const message = Buffer.alloc((n * 37) % 700, `${n} `);
    sent.update(message);
    socket.send(message);
  }
  await promise;
  return [sent.digest("hex"), got.digest("hex")];
}

test.each([false, true])(
  "10,000 messages each way, TLS %s, and a new state in between",
  async (tls) => {
    await using s = await openScene();
    await using secure = await openSecure({ site: s.site });
    const edge = tls ? secure.edge : s.edge;
    const socket = await open(tls ? secure.port : s.edge.port, { tls, perMessageDeflate: true });
    expect(socket.protocol).toBe("b");
    const half = await exchange(socket, 5_000);
    expect(half[1]).toBe(half[0]);
    socket.removeAllListeners("message");
    edge.publish(stateOf(2, s.site));
    const rest = await exchange(socket, 5_000);
    expect(rest[1]).toBe(rest[0]);
    await metric(edge, "accel_agent_open_upgrades 1");
    expect(edge.records).toEqual([]);
    socket.close(1000);
    expect(await closeCode(socket)).toBe(1000);
    await until("the record", () => edge.records.length === 1);
    const [record] = edge.records;
    expect(record).toMatchObject({
      response_status: 101,
      uri_path: "/chat?a=1",
      cache: "pass",
      domain: host,
    });
    expect(record?.bytes_sent).toBeGreaterThan(10_000);
    await metric(edge, "accel_agent_open_upgrades 0");
    await metric(edge, `accel_agent_upgrades_ended_total{domain="${host}",reason="closed"} 1`);
  },
);

test("the fields of the upgrade reach the origin untouched, others as always", async () => {
  await using s = await openScene();
  const key = "dGhlIHNhbXBsZSBub25jZQ==";
  const head = [
    "GET /chat HTTP/1.1",
    `Host: ${host}`,
    "Connection: keep-alive, Upgrade",
    "Upgrade: WebSocket",
    "Keep-Alive: 5",
    `Sec-WebSocket-Key: ${key}`,
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
    "Origin: https://elsewhere.example",
    "X-Forwarded-For: 192.0.2.1",
  ];
  const answer = await raw(s.edge, `${head.join("\r\n")}\r\n\r\n`, (text) =>
    text.includes("\r\n\r\n"),
  );
  expect(answer).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
  expect(answer).toMatch(/\r\nUpgrade: websocket\r\n/i);
  expect(answer).toMatch(/\r\nConnection: Upgrade\r\n/i);
  expect(answer).toContain("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");
  expect(s.origin.asked[0]?.headers).toMatchObject({
    connection: "keep-alive, Upgrade",
    upgrade: "WebSocket",
    "sec-websocket-key": key,
    "sec-websocket-version": "13",
    "sec-websocket-extensions": "permessage-deflate; client_max_window_bits",
    origin: "https://elsewhere.example",
    "x-forwarded-for": "127.0.0.1",
    via: "1.1 accel-agent",
  });
  expect(s.origin.asked[0]?.headers).not.toHaveProperty("keep-alive");
});

const upgradeTo = (protocol: string, rest = ""): string =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${rest}\r\n`;

test("another protocol: what either side says early arrives, and an end of one way is passed on", async () => {
  await using s = await openScene((_request, socket, early) => {
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello ",
    );
    socket.write(early);
    socket.on("data", (bytes) => socket.write(bytes));
    socket.on("end", () => socket.end(" bye"));
  });
  const socket = connect({ port: s.edge.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.write(`${upgradeTo("echo")}early `);
  let got = "";
  socket.setEncoding("latin1").on("data", (text: string) => (got += text));
  await until("the echo", () => got.endsWith("hello early "));
  socket.end("late");
  await once(socket, "end");
  expect(got.split("\r\n\r\n")[1]).toBe("hello early late bye");
  await until("the record", () => s.edge.records.length === 1);
  expect(s.edge.records[0]).toMatchObject({ response_status: 101, bytes_sent: got.length });
  await metric(s.edge, `accel_agent_upgrade_bytes_total{domain="${host}",from="visitor"} 10`);
  await metric(s.edge, `accel_agent_upgrade_bytes_total{domain="${host}",from="origin"} 20`);
});

test("another answer of the origin is a plain one, and the last of its connection", async () => {
  await using s = await openScene((_request, socket) =>
    socket.end(
      "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\nX-A: 1\r\nUpgrade: other\r\n\r\nnope",
    ),
  );
  const answer = await raw(s.edge, upgradeTo("websocket"));
  expect(answer).toMatch(/^HTTP\/1\.1 426 /);
  expect(answer).toContain("\r\nX-A: 1\r\n");
  expect(answer).toMatch(/\r\nConnection: close\r\n/);
  expect(answer).toMatch(/\r\n\r\nnope$/);
  await until("the record", () => s.edge.records.length === 1);
  expect(s.edge.records[0]).toMatchObject({ response_status: 426, cache: "pass" });
  await metric(s.edge, `accel_agent_upgrades_total{domain="${host}",outcome="declined"} 1`);
});

test("an origin that ends without an answer is 502", async () => {
  await using s = await openScene((_request, socket) => socket.end());
  expect(await raw(s.edge, upgradeTo("websocket"))).toMatch(/^HTTP\/1\.1 502 /);
  await until("the record", () => s.edge.records.length === 1);
  await metric(s.edge, `accel_agent_upgrades_total{domain="${host}",outcome="failed"} 1`);
  await metric(s.edge, `accel_agent_origin_errors_total{domain="${host}",kind="broken"} 1`);
});

test("an origin that declines with a status of 500 or more counts as failing", async () => {
  await using s = await openScene((_request, socket) =>
    socket.end("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
  );
  expect(await raw(s.edge, upgradeTo("websocket"))).toMatch(/^HTTP\/1\.1 503 /);
  await metric(s.edge, `accel_agent_origin_server_errors_total{domain="${host}"} 1`);
});

test("h2c and a request with a body are answered without the upgrade", async () => {
  await using s = await openScene();
  const close = (text: string): boolean => text.endsWith("plain") || text.endsWith("0\r\n\r\n");
  expect(await raw(s.edge, upgradeTo("h2c", "HTTP2-Settings: AAA\r\n"), close)).toMatch(
    /^HTTP\/1\.1 200 /,
  );
  expect(s.origin.asked[0]?.headers.upgrade).toBeUndefined();
});

test("the verdict comes first", async () => {
  const judge: VisitorJudge = () => ({ kind: "block", reason: "bad-set", bot: null });
  await using s = await openScene(echoes, { judge });
  const answer = await raw(s.edge, upgradeTo("websocket"));
  expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  expect(s.origin.asked).toEqual([]);
});

test("who becomes bad is judged again with the next state and told to go", async () => {
  let isBad = false;
  const judge: VisitorJudge = () =>
    isBad
      ? { kind: "block", reason: "bad-set", bot: null }
      : { kind: "allow", reason: "not-a-bot", bot: null };
  await using s = await openScene(echoes, { judge });
  const socket = await open(s.edge.port);
  s.edge.publish(stateOf(2, s.site));
  expect(await echoed(socket, "still here")).toBe("still here");
  isBad = true;
  s.edge.publish(stateOf(3, s.site));
  expect(await closeCode(socket)).toBe(1008);
  await until("the record", () => s.edge.records.length === 1);
  expect(s.edge.records[0]).toMatchObject({ response_status: 101, verdict: "block bad-set" });
  expect(s.edge.decisions).toHaveLength(1);
  await until("the origin's connection", () => s.origin.sockets.size === 0);
});

test("one over which nothing passes is closed on both sides", async () => {
  await using s = await openScene(echoes, { upgrades: { idleMs: 50 } });
  const socket = await open(s.edge.port);
  expect(await closeCode(socket)).toBe(1001);
  await until("the origin's connection", () => s.origin.sockets.size === 0);
  await metric(s.edge, `accel_agent_upgrades_ended_total{domain="${host}",reason="idle"} 1`);
});

test("beyond the limit it is 503, and a place is given back", async () => {
  await using s = await openScene(echoes, { upgrades: { openMax: 1 } });
  const socket = await open(s.edge.port);
  const answer = await raw(s.edge, upgradeTo("websocket"));
  expect(answer).toMatch(/^HTTP\/1\.1 503 /);
  expect(answer).toContain("Retry-After: 1");
  socket.terminate();
  await metric(s.edge, "accel_agent_open_upgrades 0");
  expect(await echoed(await open(s.edge.port), "again")).toBe("again");
});

test("a drain leaves it open for the grace, then says 1001 between frames", async () => {
  await using s = await openScene();
  const socket = await open(s.edge.port);
  const drained = s.edge.drain(300);
  expect(await echoed(socket, "still here")).toBe("still here");
  expect(await closeCode(socket)).toBe(1001);
  await drained;
  expect(s.edge.records).toMatchObject([{ response_status: 101 }]);
});

test.each([
  ["the rest of the frame comes: the Close frame stands behind it", true],
  ["it never comes: the connection is ended without one", false],
])("a drain within a frame, %s", async (_, isEnded) => {
  let said: Duplex | undefined;
  await using s = await openScene((_request, socket) => {
    said = socket;
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x82\x05abc",
      "latin1",
    );
  });
  let got = "";
  const socket = connect(s.edge.port, "127.0.0.1");
  socket.setEncoding("latin1").on("data", (text: string) => (got += text));
  socket.write(upgradeTo("websocket"));
  await until("the half frame", () => got.endsWith("abc"));
  const drained = s.edge.drain(0);
  if (isEnded) {
    await sleep(1); // A timer behind the one that ends the grace.
    said?.write("de\x82\x03never", "latin1");
  }
  await drained;
  const frames = got.slice(got.indexOf("\r\n\r\n") + 4);
  expect(frames).toBe(isEnded ? "\x82\x05abcde\x88\x02\x03\xe9" : "\x82\x05abc");
});

test("neither side is read faster than the other takes it in", async () => {
  const chunk = Buffer.alloc(64 * 1024);
  let taken = 0;
  let origin: Duplex | undefined;
  await using s = await openScene((_request, socket) => {
    origin = socket;
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bulk\r\n\r\n",
    );
    const fill = (): void => {
      while (taken < 2 ** 28 && socket.write(chunk)) taken += chunk.length;
    };
    socket.on("drain", fill);
    fill();
  });
  const socket = connect(s.edge.port, "127.0.0.1");
  socket.pause().write(upgradeTo("bulk"));
  await until("a full way", () => (origin?.writableLength ?? 0) > 0);
  let before = -1;
  await until("nothing more is taken", () => {
    const isStill = before === taken;
    before = taken;
    return isStill;
  });
  expect(taken).toBeLessThan(2 ** 26);
  socket.destroy();
  await until("the record", () => s.edge.records.length === 1);
});

test.each([true, false])(
  "an origin by TLS, asked by the name of the host; trusted: %s",
  async (isTrusted) => {
    const { chain, key } = isTrusted ? trusted : makeAuthority().issue({ names: [host] });
    const server = createSecure({ cert: chain, key });
    const names: unknown[] = [];
    server.on("secureConnection", (socket) => names.push(socket.servername));
    await using origin = new UpgradeOrigin(server, echoes);
    const urls = [`https://127.0.0.1:${await origin.listen()}`];
    await using edge = await openEdge({ site: { backend: { urls, retries: 0 } } });
    if (isTrusted) {
      expect(await echoed(await open(edge.port), "hello")).toBe("hello");
      expect(names).toEqual([host]);
    } else {
      expect(await raw(edge, upgradeTo("websocket"))).toMatch(/^HTTP\/1\.1 502 /);
      expect(origin.asked).toEqual([]);
    }
  },
);
