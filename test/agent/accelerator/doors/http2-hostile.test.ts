// Visitors of HTTP/2 who mean harm, or do not know better: what they ask for beyond measure is cut, and nobody else notices.

import { connect } from "node:net";
import { describe, expect, test } from "vitest";
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

const { endHeaders, endStream, ack } = flags;
const whole = endHeaders | endStream;
const enhanceYourCalm = 11;
const protocolError = 1;
const refusedStream = 7;

/** A request that is taken back at once. */
const rapid = (stream: number): Buffer =>
  Buffer.concat([frame("headers", stream, pack(get()), whole), frame("reset", stream, code(8))]);

const odd = (n: number): number => 2 * n + 1;

function resetOf({ frames }: FrameVisitor, stream: number): number | undefined {
  const reset = frames.find((one) => one.type === 3 && one.stream === stream);
  return reset?.body.readUInt32BE(0);
}

async function isCut(s: SecureEdge, visitor: FrameVisitor, reason: string): Promise<void> {
  await visitor.closed;
  // Who is cut while more of his is on its way is reset by TCP, and the last words may be lost with the connection.
  if (visitor.goaway !== undefined || !visitor.wasReset)
    expect(visitor.goaway).toBe(enhanceYourCalm);
  expect(await s.edge.registry.metrics()).toContain(
    `accel_agent_http2_connections_cut_total{reason="${reason}"} 1`,
  );
  await until("no connection is left", () => s.edge.openConnections === 0);
  expect((await askSecure(s.port, "/")).status).toBe(404);
}

describe("a connection is cut", () => {
  test.each([1, 50])("that takes its requests back, %d in a packet", async (each) => {
    let asked = 0;
    await using s = await openSecureStage(
      (_request, response) => {
        asked++;
        response.writeHead(404).end();
      },
      { http2: { resets: { burst: 100, perSecond: 0 } } },
    );
    using visitor = await visitByFrames(s.port);
    for (let n = 0; !visitor.socket.destroyed; n += each) {
      visitor.send(...Array.from({ length: each }, (_, i) => rapid(odd(n + i))));
      await new Promise((sent) => setImmediate(sent));
    }
    await isCut(s, visitor, "resets");
    expect(asked).toBeLessThan(200);
  });

  test.each([
    ["pings", frame("ping", 0, Buffer.alloc(8))],
    ["settings", frame("settings", 0)],
  ])("that floods with %s", async (_what, flood) => {
    await using s = await openSecure({ http2: { control: { burst: 100, perSecond: 0 } } });
    using visitor = await visitByFrames(s.port);
    visitor.send(...Array.from({ length: 110 }, () => flood));
    await isCut(s, visitor, "control");
  });

  test("that never ends its header", async () => {
    await using s = await openSecure();
    using visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(get()), endStream));
    const more = frame("continuation", 1, pack([["x-more", "y".repeat(15_000)]]));
    for (let n = 0; n < 1_000 && !visitor.socket.destroyed; n++) {
      visitor.send(more);
      await new Promise((sent) => setImmediate(sent));
    }
    await visitor.closed;
    expect((await askSecure(s.port, "/")).status).toBe(404);
  });

  test("that does not speak HTTP/2 though it said so", async () => {
    await using s = await openSecure();
    using visitor = await visitByFrames(s.port);
    visitor.send(Buffer.from("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"));
    await visitor.closed;
    await until("no connection is left", () => s.edge.openConnections === 0);
    expect(visitor.has("headers", 1)).toBe(false);
    expect((await askSecure(s.port, "/")).status).toBe(404);
  });

  test("that asks for nothing any more", async () => {
    await using s = await openSecure({ http2: { idleMs: 1_000 } });
    using visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(get()), whole));
    await visitor.closed;
    expect(visitor.has("headers", 1)).toBe(true);
    expect(visitor.goaway).toBe(0);
  });

  test("that asks for nothing behind an answer that took longer than it may rest", async () => {
    await using s = await openSecureStage(
      (_request, response) => void setTimeout(() => response.writeHead(404).end(), 300),
      { http2: { idleMs: 100 } },
    );
    using visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(get()), whole));
    await visitor.closed;
    expect(visitor.has("headers", 1)).toBe(true);
    expect(visitor.goaway).toBe(0);
  });

  test("whose handshake does not end", async () => {
    await using s = await openSecure({ handshakeMs: 100 });
    const socket = connect(s.port, "127.0.0.1");
    socket.on("error", () => {});
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.once("close", () => resolve()).resume();
    // The first bytes of a ClientHello.
    socket.write(Buffer.of(0x16, 0x03, 0x01, 0x02, 0x00, 0x01));
    await promise;
    expect(await s.edge.registry.metrics()).toContain('handshakes_total{outcome="failed"} 1');
  });
});

/** The shortest request there is (RFC 7541 §6.1: GET, https and / have a byte each), taken back at once. */
const brief = (stream: number): Buffer =>
  Buffer.concat([
    frame(
      "headers",
      stream,
      Buffer.concat([Buffer.of(0x82, 0x87, 0x84), pack([[":authority", host]])]),
      whole,
    ),
    frame("reset", stream, code(8)),
  ]);

// All in one packet, so that none of those before has left its place yet: 128 have one, the others are refused.
test.each([
  [128 + 90, "answered"],
  [128 + 110, "cut"],
])("who opens %d at once is %s: a hundred may be refused", async (count, outcome) => {
  await using s = await openSecureStage((_request, response) => response.writeHead(404).end());
  using visitor = await visitByFrames(s.port);
  await until("the settings", () => visitor.has("settings", 0));
  visitor.send(frame("settings", 0, Buffer.alloc(0), ack));
  visitor.send(...Array.from({ length: count }, (_, n) => brief(odd(n))));
  visitor.send(frame("ping", 0, Buffer.alloc(8)));
  const isAnswered = (): boolean => visitor.has("ping", 0);
  await until("an end", () => visitor.socket.destroyed || isAnswered());
  expect(isAnswered() ? "answered" : "cut").toBe(outcome);
});

describe("a connection is kept", () => {
  test("that takes back as much as an impatient browser does", async () => {
    await using s = await openSecureStage((_request, response) => response.writeHead(404).end());
    using visitor = await visitByFrames(s.port);
    for (let n = 0; n < 200; n++) visitor.send(rapid(odd(n)));
    visitor.send(frame("headers", odd(200), pack(get()), whole));
    await until("the answer", () => visitor.has("headers", odd(200)));
    expect(visitor.goaway).toBeUndefined();
  });

  test("that acknowledges", async () => {
    await using s = await openSecure();
    using visitor = await visitByFrames(s.port);
    visitor.send(...Array.from({ length: 50 }, () => frame("ping", 0, Buffer.alloc(8))));
    visitor.send(frame("settings", 0, Buffer.alloc(0), ack));
    visitor.send(frame("headers", 1, pack(get()), whole));
    await until("the answer", () => visitor.has("headers", 1));
    expect([visitor.goaway, resetOf(visitor, 1)]).toEqual([undefined, undefined]);
  });
});

describe("a stream is refused", () => {
  test("beyond so many at a time, and served when there is room", async () => {
    const waiting: (() => void)[] = [];
    await using s = await openSecureStage((_request, response) => {
      waiting.push(() => void response.writeHead(404).end());
    });
    using visitor = await visitByFrames(s.port);
    const streams = Array.from({ length: 140 }, (_, n) => odd(n));
    visitor.send(...streams.map((n) => frame("headers", n, pack(get(`/${n}`)), whole)));
    await until("the origin is asked", () => waiting.length === 128);
    await until("the others are refused", () => resetOf(visitor, odd(139)) === refusedStream);
    expect(streams.filter((n) => resetOf(visitor, n) === refusedStream).length).toBe(12);
    for (const answer of waiting) answer();
    await until("all are answered", () => visitor.has("headers", odd(127)));
    visitor.send(frame("headers", odd(140), pack(get("/again")), whole));
    await until("the origin is asked again", () => waiting.length === 129);
  });

  test.each([
    ["an upper-case name", [...get(), ["X-Upper", "1"]]],
    ["a field of connections", [...get(), ["connection", "close"]]],
    ["a transfer coding", [...get(), ["transfer-encoding", "chunked"]]],
    ["no path", get().filter(([name]) => name !== ":path")],
    ["an empty path", [...get().filter(([name]) => name !== ":path"), [":path", ""]]],
    ["no scheme", get().filter(([name]) => name !== ":scheme")],
    ["two methods", [[":method", "GET"], ...get()]],
    ["a pseudo-field behind a field", [["a", "1"], ...get()]],
    ["a pseudo-field of answers", [...get(), [":status", "200"]]],
  ] as const)("with %s", async (_what, fields) => {
    await using s = await openSecure();
    using visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(fields), whole));
    await until("the refusal", () => resetOf(visitor, 1) === protocolError);
    visitor.send(frame("headers", 3, pack(get()), whole));
    await until("the next answer", () => visitor.has("headers", 3));
    expect(s.edge.records.length).toBe(1);
  });

  test.each(["1\r\nx-b: 2", "1\nx-b: 2", "1\0", "\u007f"])(
    "in part: a field of the value %j is left out",
    async (value) => {
      const seen: unknown[] = [];
      await using s = await openSecureStage((request, response) => {
        seen.push(request.headers["x-a"], request.headers["x-b"], request.headers["x-c"]);
        response.end();
      });
      using visitor = await visitByFrames(s.port);
      visitor.send(frame("headers", 1, pack([...get(), ["x-a", value], ["x-c", "3"]]), whole));
      await until("the answer", () => visitor.has("headers", 1));
      expect(seen).toEqual([undefined, undefined, "3"]);
    },
  );

  test("whose body is not as long as it says", async () => {
    await using s = await openSecureStage((request, response) => {
      request.once("error", () => {});
      request.resume().once("end", () => void response.end("took it"));
    });
    using visitor = await visitByFrames(s.port);
    const fields = [...get().slice(1), [":method", "POST"], ["content-length", "10"]] as const;
    visitor.send(frame("headers", 1, pack(fields), endHeaders));
    visitor.send(frame("data", 1, Buffer.from("short"), endStream));
    await until("the refusal", () => resetOf(visitor, 1) === protocolError);
    await until("the record", () => s.edge.records.length === 1);
    expect(visitor.has("headers", 1)).toBe(false);
  });

  test("that unpacks to more than it weighs", async () => {
    await using s = await openSecure();
    using visitor = await visitByFrames(s.port);
    const value = "v".repeat(4_000);
    // With indexing: the newest entry of the dynamic table is number 62.
    const entry = Buffer.concat([Buffer.of(0x40), pack([["x", value]]).subarray(1)]);
    const bomb = Buffer.concat([pack(get()), entry, Buffer.alloc(1_000, 0xbe)]);
    visitor.send(frame("headers", 1, bomb, whole));
    await until("the refusal", () => resetOf(visitor, 1) !== undefined || visitor.socket.destroyed);
    expect(visitor.has("headers", 1)).toBe(false);
    expect((await askSecure(s.port, "/")).status).toBe(404);
  });
});

test("a visitor who takes nothing holds up nobody", async () => {
  await using s = await openSecureStage((_request, response) => response.end("x".repeat(100_000)));
  // No window: not one byte of a body may be sent.
  using stuck = await visitByFrames(s.port, [[4, 0]]);
  const streams = Array.from({ length: 100 }, (_, n) => odd(n));
  stuck.send(...streams.map((n) => frame("headers", n, pack(get(`/${n}`)), whole)));
  await until("its answers begin", () => streams.every((n) => stuck.has("headers", n)));
  expect(stuck.frames.some(({ type }) => type === 0)).toBe(false);
  expect((await askSecure(s.port, "/other")).body.length).toBe(100_000);
});
