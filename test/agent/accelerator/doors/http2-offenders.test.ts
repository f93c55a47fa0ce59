// A visitor whose connection of HTTP/2 was cut agrees on HTTP/1.1 for a while; others are not concerned.

import { pino } from "pino";
import { expect, test } from "vitest";
import { Http2Offenders } from "../../../../src/agent/accelerator/doors/http2-offenders.ts";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";
import type { ClientAddress } from "../../../../src/core/http/client-address.ts";
import { until } from "../../../support/until.ts";
import type { EdgeOptions } from "../edge.ts";
import { flags, frame, get, pack, visitByFrames, type FrameVisitor } from "../http2-frames.ts";
import { askSecure, shake } from "../secure-clients.ts";
import { openSecure, openSecureStage, type SecureEdge } from "../secure-stage.ts";

const both = ["h2", "http/1.1"];
const whole = flags.endHeaders | flags.endStream;
const pings = Array.from({ length: 10 }, () => frame("ping", 0, Buffer.alloc(8)));
const control = { burst: 5, perSecond: 0 };

/** What is agreed on with a visitor who offers `protocols`; undefined: no handshake. */
async function agreed(
  { port }: SecureEdge,
  protocols = both,
  localAddress = "127.0.0.1",
): Promise<string | false | null | undefined> {
  try {
    const socket = await shake(port, { ALPNProtocols: protocols, localAddress });
    socket.destroy();
    return socket.alpnProtocol;
  } catch {
    return undefined;
  }
}

async function isCutFor(s: SecureEdge, visitor: FrameVisitor, reason: string): Promise<void> {
  await visitor.closed;
  const cut = `connections_cut_total{reason="${reason}"} 1`;
  await until("the cut", async () => (await s.edge.registry.metrics()).includes(cut));
}

test.each<[string, EdgeOptions, (visitor: FrameVisitor) => void]>([
  ["control", { http2: { control } }, (visitor) => visitor.send(...pings)],
  [
    "resets",
    { http2: { resets: { burst: 5, perSecond: 0 } } },
    (visitor) => {
      for (let n = 1; n < 40; n += 2)
        visitor.send(
          frame("headers", n, pack(get()), whole),
          frame("reset", n, Buffer.of(0, 0, 0, 8)),
        );
    },
  ],
  [
    "overhead",
    { http2: { overhead: { burst: 1_000, perSecond: 0 }, overheadLookMs: 1 } },
    (visitor) =>
      visitor.send(
        ...Array.from({ length: 200 }, () => frame("windowUpdate", 0, Buffer.of(0, 0, 0, 1))),
      ),
  ],
  ["protocol", {}, (visitor) => visitor.send(frame("data", 0, Buffer.of(1)))],
])("who was cut for %s agrees on HTTP/1.1 for a minute", async (reason, options, offend) => {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
  let nowMs = 0;
  const clock = { ...createClock(), steadyMs: () => nowMs };
  await using s = await openSecureStage((_request, response) => response.writeHead(404).end(), {
    ...options,
    clock,
    log,
  });
  expect(await agreed(s)).toBe("h2");
  const visitor = await visitByFrames(s.port);
  await until("the settings", () => visitor.has("settings", 0));
  offend(visitor);
  await isCutFor(s, visitor, reason);

  expect(await agreed(s)).toBe("http/1.1");
  expect(await agreed(s, ["h2"])).toBeUndefined();
  expect(await agreed(s, both, "127.0.0.2")).toBe("h2");
  expect((await askSecure(s.port, "/")).status).toBe(404);
  const said = await s.edge.registry.metrics();
  expect(said).toContain("accel_agent_http2_withheld_total 2");
  expect(lines.length).toBe(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    err: "127.0.0.1",
    msg: expect.stringContaining("an HTTP/2 connection was closed: its visitor "),
  });

  nowMs = 59_000;
  expect(await agreed(s)).toBe("http/1.1");
  nowMs = 60_000;
  expect(await agreed(s)).toBe("h2");
});

test("who ends his connection himself, and however, has HTTP/2 again", async () => {
  await using s = await openSecure();
  const goodbye = frame("goaway", 0, Buffer.of(0, 0, 0, 0, 0, 0, 0, 2));
  for (const leave of [
    (visitor: FrameVisitor) => visitor.socket.destroy(),
    (visitor: FrameVisitor) => visitor.socket.end(goodbye),
    (visitor: FrameVisitor) => visitor.socket.end(),
  ]) {
    const visitor = await visitByFrames(s.port);
    visitor.send(frame("headers", 1, pack(get()), whole));
    await until("the answer", () => visitor.has("headers", 1));
    leave(visitor);
    await until("no connection is left", () => s.edge.openConnections === 0);
    expect(await agreed(s)).toBe("h2");
  }
  expect(await s.edge.registry.metrics()).not.toMatch(/connections_cut_total\{/);
});

const peer = (text: string, isProxied = false): ClientAddress => ({
  text,
  isProxied,
  forwardedFor: text,
  scheme: "https",
});

test("a visitor is an IPv4 address or the /64 of an IPv6 address, and never a trusted proxy", () => {
  const offenders = new Http2Offenders({ steadyMs: () => 0 }, 1_000);
  for (const one of [peer("192.0.2.1"), peer("2001:db8::1"), peer("192.0.2.9", true), undefined])
    offenders.add(one);
  const asked = ["192.0.2.1", "192.0.2.2", "2001:db8::2", "2001:db8:0:1::1", "192.0.2.9"].map(
    (text) => offenders.has(peer(text)),
  );
  expect(asked).toEqual([true, false, true, false, false]);
  expect(offenders.has(undefined)).toBe(false);
});

test("beyond ten thousand the one is forgotten that was remembered first", () => {
  const offenders = new Http2Offenders({ steadyMs: () => 0 }, 1_000);
  const nth = (n: number): ClientAddress => peer(`10.0.${n >> 8}.${n & 255}`);
  for (let n = 0; n < 10_000; n++) offenders.add(nth(n));
  offenders.add(nth(0)); // Once more: now it is the newest.
  expect(offenders.has(nth(1))).toBe(true);
  offenders.add(nth(10_000));
  expect([0, 1, 2, 10_000].map((n) => offenders.has(nth(n)))).toEqual([true, false, true, true]);
});
