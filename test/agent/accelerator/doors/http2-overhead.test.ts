// What a visitor of HTTP/2 sends beside requests and bodies. Who sends millions of such frames is cut. Who has a reason for them never is: each of these is held to limits
// that are far below the real ones, and that nothing comes back to.

import { createServer } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import { describe, expect, test } from "vitest";
import { Http2Overhead } from "../../../../src/agent/accelerator/doors/http2-overhead.ts";
import type { Http2Limits } from "../../../../src/agent/accelerator/doors/http2-sessions.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { host } from "../edge.ts";
import {
  code,
  flags,
  frame,
  get,
  pack,
  visitByFrames,
  type FrameVisitor,
} from "../http2-frames.ts";
import { askSecure } from "../secure-clients.ts";
import { openSecure, openSecureStage, type SecureEdge } from "../secure-stage.ts";
import { layManifest } from "../site-layout.ts";
import { UpgradeOrigin } from "../upgrades/upgrade-origin.ts";

const { endHeaders, endStream } = flags;
const whole = endHeaders | endStream;
const padded = 8;
const enhanceYourCalm = 11;
const odd = (n: number): number => 2 * n + 1;
const repeat = (count: number, make: (n: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, n) => make(n)));
const grant = (stream: number, bytes: number): Buffer => frame("windowUpdate", stream, code(bytes));
const post = (path = "/"): readonly (readonly [string, string])[] => [
  ...get(path).slice(1),
  [":method", "POST"],
];

/** So many bytes may come beside requests and bodies, and never more. */
const strict = (burst: number): { readonly http2: Partial<Http2Limits> } => ({
  http2: { overhead: { burst, perSecond: 0 }, overheadLookMs: 1 },
});

/** A type that nobody knows (RFC 9113 §5.5: it is ignored). */
function unknownFrame(): Buffer {
  const unknown = frame("data", 0, Buffer.alloc(4));
  unknown[3] = 0xee;
  return unknown;
}

/** With as much padding as there can be. */
function pad(type: "data" | "headers", stream: number, body: Buffer, flag = 0): Buffer {
  const whole = Buffer.concat([Buffer.of(255), body, Buffer.alloc(255)]);
  return frame(type, stream, whole, flag | padded);
}

/** Sends so many frames of a body, each of `cost` bytes for the windows of its stream and of the connection. */
async function sendBody(
  visitor: FrameVisitor,
  stream: number,
  count: number,
  cost: number,
  make: () => Buffer,
): Promise<void> {
  const granted = (of: number): number =>
    visitor.frames
      .filter((one) => one.type === 8 && one.stream === of)
      .reduce((sum, { body }) => sum + body.readUInt32BE(0), 65_535);
  for (let sent = 0; sent < count;) {
    const room = Math.min(granted(0), granted(stream)) - sent * cost;
    const some = Math.min(count - sent, Math.floor(room / cost), 100);
    if (some > 0) visitor.send(repeat(some, make));
    else expect(visitor.socket.destroyed).toBe(false);
    sent += Math.max(0, some);
    await new Promise((more) => setImmediate(more));
  }
}

/** The reasons of all connections that were cut. */
async function cuts({ edge }: SecureEdge): Promise<readonly string[]> {
  const said = await edge.registry.metrics();
  return said.match(/(?<=connections_cut_total\{reason=").*(?="\} 1)/g) ?? [];
}

/** The connection still answers, behind another look. */
async function isKept(s: SecureEdge, visitor: FrameVisitor, stream: number): Promise<void> {
  await new Promise((looked) => setTimeout(looked, 20));
  visitor.send(frame("headers", stream, pack(get("/kept")), whole));
  await until(
    "an answer or a close",
    () => visitor.socket.destroyed || visitor.has("headers", stream),
  );
  expect([visitor.goaway, visitor.socket.destroyed]).toEqual([undefined, false]);
  expect(await cuts(s)).toEqual([]);
}

async function isCut(s: SecureEdge, visitor: FrameVisitor, reason = "overhead"): Promise<void> {
  await visitor.closed;
  // Who is cut while more of his is on its way is reset by TCP, and the last words may be lost with the connection.
  if (visitor.goaway !== undefined || !visitor.wasReset)
    expect(visitor.goaway).toBe(enhanceYourCalm);
  expect(await cuts(s)).toEqual([reason]);
  await until("no connection is left", () => s.edge.openConnections === 0);
  expect((await askSecure(s.port, "/")).status).toBe(404);
}

async function flood(visitor: FrameVisitor, bytes: number, some: Buffer): Promise<void> {
  const { socket } = visitor;
  for (let sent = 0; sent < bytes && !socket.destroyed; sent += some.length) {
    visitor.send(some);
    await new Promise((more) => setImmediate(more));
  }
}

describe("a connection is cut", () => {
  test.each([
    ["WINDOW_UPDATE of the connection", () => grant(0, 1), "overhead"],
    ["WINDOW_UPDATE of a stream", () => grant(1, 1), "overhead"],
    // These the library gives up itself.
    [
      "PRIORITY",
      (n: number) => frame("priority", odd(n) + 2, Buffer.of(0, 0, 0, 0, 1)),
      "protocol",
    ],
    ["frames of no known type", unknownFrame, "protocol"],
  ] as const)("that floods with %s, by the limits in force", async (_what, make, reason) => {
    await using s = await openSecure();
    using visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(post()), endHeaders));
    await flood(visitor, 2 ** 23, repeat(2_000, make));
    await isCut(s, visitor, reason);
  });

  test("that floods behind another one, which had gone", async () => {
    await using s = await openSecure(strict(65_536));
    using before = await visitByFrames(s.port);
    before.send(frame("headers", 1, pack(get()), whole));
    await until("an answer", () => before.has("headers", 1));
    before.socket.destroy();
    await until("it has gone", () => s.edge.openConnections === 0);
    using visitor = await visitByFrames(s.port);
    await flood(
      visitor,
      2 ** 23,
      repeat(2_000, () => grant(0, 1)),
    );
    await isCut(s, visitor);
  });
});

describe("a connection is kept", () => {
  test.each([
    ["bytes, each in a frame of its own", 1, () => frame("data", 1, Buffer.of(1))],
    ["bytes with padding", 257, () => pad("data", 1, Buffer.of(1))],
    ["kibibytes", 1_024, () => frame("data", 1, Buffer.alloc(1_024))],
  ])("that uploads %s", async (_what, cost, make) => {
    await using s = await openSecureStage((request, response) => {
      request.resume().once("end", () => void response.writeHead(404).end());
    }, strict(4_096));
    using visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(post()), endHeaders));
    await sendBody(visitor, 1, 2_000, cost, make);
    visitor.send(frame("data", 1, Buffer.alloc(0), endStream));
    await until("the answer", () => visitor.has("headers", 1));
    await isKept(s, visitor, 3);
  });

  test.each([
    ["large cookies", [["cookie", "c".repeat(8_000)]], false],
    ["a hundred short fields", Array.from({ length: 100 }, (_, n) => [`${n}`, "1"]), false],
    ["padding", [], true],
  ] as const)("that asks 200 times with %s", async (_what, more, isPadded) => {
    await using s = await openSecure(strict(8_192));
    using visitor = await visitByFrames(s.port);
    const fields = pack([...get(), ...(more as readonly (readonly [string, string])[])]);
    for (let n = 0; n < 200; n++) {
      const head = isPadded
        ? pad("headers", odd(n), fields, whole)
        : frame("headers", odd(n), fields, whole);
      visitor.send(head);
      if (n % 50 === 49) await until("answers", () => visitor.has("headers", odd(n)));
    }
    await isKept(s, visitor, odd(200));
  });

  test("that sends long trailers", async () => {
    await using s = await openSecureStage((request, response) => {
      request.resume().once("end", () => void response.writeHead(404).end());
    }, strict(16_384));
    using visitor = await visitByFrames(s.port);
    const trailers = pack([["x-trailer", "t".repeat(8_000)]]);
    for (let n = 0; n < 20; n++) {
      visitor.send(frame("headers", odd(n), pack(post()), endHeaders));
      visitor.send(frame("data", odd(n), Buffer.from("body")));
      visitor.send(frame("headers", odd(n), trailers, whole));
      await until("the answer", () => visitor.has("headers", odd(n)));
    }
    await isKept(s, visitor, odd(20));
  });

  test("that grants each KiB of a download, to its stream and to the connection", async () => {
    const size = 2 ** 21;
    await using s = await openSecureStage(
      (_request, response) => void response.end(Buffer.alloc(size)),
      strict(16_384),
    );
    using visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(get()), whole));
    let granted = 0;
    let read = 0;
    await until("the download", () => {
      read += visitor.frames
        .splice(0)
        .reduce((sum, { type, body }) => sum + (type === 0 ? body.length : 0), 0);
      const more = Math.floor((read - granted) / 1_024);
      if (more > 0)
        visitor.send(repeat(more, () => Buffer.concat([grant(0, 1_024), grant(1, 1_024)])));
      granted += more * 1_024;
      expect(visitor.socket.destroyed).toBe(false);
      return read === size;
    });
    await isKept(s, visitor, 3);
  });

  test("that pings to keep itself alive", async () => {
    await using s = await openSecure(strict(2_048));
    using visitor = await visitByFrames(s.port);
    visitor.send(repeat(90, () => frame("ping", 0, Buffer.alloc(8))));
    await until("the answers", () => visitor.frames.filter(({ type }) => type === 6).length === 90);
    await isKept(s, visitor, 1);
  });

  test("that sends small messages through a tunnel, and gets them back", async () => {
    const upgraded = (_request: unknown, socket: Duplex): void => {
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
      );
      socket.write("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
      socket.pipe(socket);
    };
    await using origin = new UpgradeOrigin(createServer(), upgraded);
    const urls = [`http://127.0.0.1:${await origin.listen()}`];
    await using s = await openSecure({ ...strict(4_096), site: { backend: { urls, retries: 0 } } });
    using visitor = await visitByFrames(s.port);
    const connect = [
      [":method", "CONNECT"],
      [":protocol", "websocket"],
      [":scheme", "https"],
      [":authority", host],
      [":path", "/chat"],
      ["sec-websocket-version", "13"],
    ] as const;
    visitor.send(frame("headers", 1, pack(connect), endHeaders));
    await until("the tunnel", () => visitor.has("headers", 1));
    const message = Buffer.of(0x82, 0x80, 0, 0, 0, 0); // An empty one, masked.
    await sendBody(visitor, 1, 2_000, message.length + 256, () => pad("data", 1, message));
    await until("the echo", () => {
      const echoed = visitor.frames.filter(({ type, stream }) => type === 0 && stream === 1);
      return echoed.reduce((sum, { body }) => sum + body.length, 0) > 0;
    });
    await isKept(s, visitor, 3);
  });

  test("whose uploads are refused while they are on their way", async () => {
    using dir = tempDir();
    const { views, blobsDir } = layManifest(dir.path, "");
    await using s = await openSecure({ ...strict(65_536), views, blobsDir });
    using visitor = await visitByFrames(s.port);
    const streams = [1, 3];
    visitor.send(...streams.map((n) => frame("headers", n, pack(post("/style.css")), endHeaders)));
    // The rest of a body is awaited for a while, and then not any more.
    const isReset = (n: number): boolean => visitor.has("reset", n);
    await until("all are reset", () => streams.every(isReset));
    for (const n of streams) visitor.send(repeat(4, () => frame("data", n, Buffer.alloc(16_000))));
    await isKept(s, visitor, 5);
  });
});

describe("bytes beside requests and bodies", () => {
  const socket = { bytesRead: 0, bytesWritten: 0 };
  const overheadOf = (burst: number, perSecond: number): Http2Overhead => {
    Object.assign(socket, { bytesRead: 0, bytesWritten: 0 });
    return new Http2Overhead(socket, { burst, perSecond }, 1_000);
  };

  test("may be so many at once, and come back with the time", () => {
    const overhead = overheadOf(1_000, 100);
    socket.bytesRead = 1_000;
    expect(overhead.isTooMuch(1_000)).toBe(false);
    socket.bytesRead = 1_100;
    expect(overhead.isTooMuch(2_000)).toBe(false);
    socket.bytesRead = 1_150;
    expect(overhead.isTooMuch(2_400)).toBe(true);
  });

  test("may be a sixteenth of what was sent, of which a burst at most is kept", () => {
    const overhead = overheadOf(1_000, 1_000);
    socket.bytesRead = 1_000;
    socket.bytesWritten = 8_000;
    expect(overhead.isTooMuch(1_000)).toBe(false);
    socket.bytesRead = 1_500;
    expect(overhead.isTooMuch(1_000)).toBe(false);
    socket.bytesWritten = 160_000_000;
    socket.bytesRead = 1_501;
    expect(overhead.isTooMuch(1_000)).toBe(false);
    socket.bytesRead += 1_001;
    expect(overhead.isTooMuch(9_000)).toBe(false);
    // The time adds nothing to what was kept.
    socket.bytesRead += 1_001;
    expect(overhead.isTooMuch(9_000)).toBe(true);
  });

  test("are what no head explains", () => {
    const overhead = overheadOf(1_000, 0);
    const stream = { endAfterHeaders: true } as ServerHttp2Stream;
    overhead.take(stream, ["name", "v".repeat(5_000)]);
    socket.bytesRead = 6_000;
    expect(overhead.isTooMuch(1_000)).toBe(false);
    socket.bytesRead = 6_300;
    expect(overhead.isTooMuch(1_000)).toBe(true);
  });
});
