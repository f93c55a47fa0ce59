// Connections that begin with a PROXY header, on real sockets: whom they serve, however their bytes arrive, and who is cut off.

import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { proxyV1, proxyV2, proxyV2Local } from "../../../support/proxy-headers.ts";
import { until } from "../../../support/until.ts";
import { ask, openEdge, openOrigin, raw, type Edge } from "../edge.ts";

const gated = async (options: Parameters<typeof openEdge>[0] = {}): Promise<Edge> =>
  openEdge({ site: {}, trusted: ["127.0.0.1"], proxyProtocol: "required", ...options });

const get = (path: string, fields = ""): string =>
  `GET ${path} HTTP/1.1\r\nHost: www.example.com\r\n${fields}\r\n`;
const last = get("/last", "Connection: close\r\n");
const v1 = proxyV1("192.0.2.7");
const v2 = proxyV2([192, 0, 2, 7]);
const v2Six = proxyV2([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
/** 16 + 12 + 4,084 bytes: all that a header may be. */
const longest = proxyV2([192, 0, 2, 7], { extensions: `\x04\x0f\xf1${"x".repeat(4_081)}` });

async function refused(edge: Edge): Promise<Readonly<Record<string, number>>> {
  const metrics = await edge.registry.getMetricsAsJSON();
  const found = metrics.find(({ name }) => name === "accel_agent_proxy_header_refused_total");
  return Object.fromEntries(
    (found?.values ?? []).map(({ labels, value }) => [String(labels["reason"]), value]),
  );
}

/** Each piece as a packet of its own, as far as the kernel lets us. */
async function rawPackets(edge: Edge, pieces: readonly string[]): Promise<string> {
  const socket = connect({ port: edge.port, host: "127.0.0.1", noDelay: true });
  let received = "";
  socket.setEncoding("latin1").on("data", (text: string) => (received += text));
  socket.once("error", () => {});
  const closed = Promise.withResolvers<void>();
  socket.once("close", () => closed.resolve());
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, "latin1", resolve));
    await turn();
  }
  await closed.promise;
  return received;
}

const statusesOf = (received: string): readonly string[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = ""]) => status);

const addressesOf = (edge: Edge): readonly string[] =>
  edge.records.map(({ client_ip }) => client_ip);

describe("behind a PROXY header", () => {
  it.each([
    ["version 1", v1, "192.0.2.7"],
    ["version 1, IPv6", proxyV1("2001:DB8:0::9"), "2001:db8::9"],
    ["version 2", v2, "192.0.2.7"],
    ["version 2, IPv6", v2Six, "2001:db8::9"],
    ["version 2, mapped", proxyV2([...Array<number>(10).fill(0), 255, 255, 1, 2, 3, 4]), "1.2.3.4"],
    ["version 2, 4 KiB of extensions", longest, "192.0.2.7"],
    ["a health check", proxyV2Local, "127.0.0.1"],
    ["an unknown visitor", "PROXY UNKNOWN\r\n", "127.0.0.1"],
  ])("%s: the visitor is the one it names", async (_, header, address) => {
    const judged: string[] = [];
    await using edge = await gated({
      judge: (_bots, ip) => {
        judged.push(ip);
        return { kind: "allow", reason: "not-a-bot", bot: null };
      },
    });
    const spoofed = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n";
    const received = await raw(edge, `${header}${get("/a", spoofed)}${last}`);
    expect(statusesOf(received)).toEqual(["404", "404"]);
    await until("records", () => edge.records.length === 2);
    expect(addressesOf(edge)).toEqual([address, address]);
    expect(judged).toEqual([address, address]);
    expect(edge.records.map(({ connection }) => connection)).toEqual([1, 1]);
    expect(await refused(edge)).toEqual({});
  });

  it.each([
    ["x-forwarded-for", "X-Forwarded-For: 6.6.6.6, 203.0.113.5\r\n"],
    ["forwarded", "Forwarded: for=6.6.6.6, for=203.0.113.5\r\n"],
  ] as const)(
    "who it names is believed in %s if trusted itself",
    async (forwardedHeader, field) => {
      const trusted = ["127.0.0.1", "192.0.2.7"];
      await using edge = await gated({ trusted, forwardedHeader });
      for (const source of ["192.0.2.7", "192.0.2.8"])
        await raw(edge, `${proxyV1(source)}${get("/a", `${field}Connection: close\r\n`)}`);
      await until("records", () => edge.records.length === 2);
      expect(addressesOf(edge)).toEqual(["203.0.113.5", "192.0.2.8"]);
    },
  );

  it("the origin is told the visitor, its scheme and the port that it asked", async () => {
    const seen: (string | string[] | undefined)[] = [];
    await using origin = await openOrigin(({ headers }, response) => {
      const { host } = headers;
      seen.push(headers["x-forwarded-for"], headers["x-forwarded-proto"], host);
      response.end(`${headers["forwarded"]}`);
    });
    await using edge = await gated({ site: { backend: { urls: [origin.url] } } });
    const tls = proxyV2([192, 0, 2, 7], { port: 8_443, extensions: " \0\x05\x01\0\0\0\0" });
    const asked = `GET /a HTTP/1.1\r\nHost: www.example.com:8443\r\nX-Forwarded-For: 6.6.6.6\r\n`;
    const received = await raw(
      edge,
      `${tls}${asked}Forwarded: for=6.6.6.6\r\nConnection: close\r\n\r\n`,
    );
    expect(received).toMatch(/undefined$/);
    expect(seen).toEqual(["192.0.2.7", "https", "www.example.com:8443"]);
  });

  it("a connection is kept alive for the one visitor, bodies included", async () => {
    await using origin = await openOrigin((request, response) => {
      let bytes = 0;
      request.on("data", (chunk: Buffer) => (bytes += chunk.length));
      request.once("end", () => response.end(`${bytes} bytes.`));
    });
    await using edge = await gated({ site: { backend: { urls: [origin.url] } } });
    const socket = connect(edge.port, "127.0.0.1");
    let received = "";
    socket.setEncoding("latin1").on("data", (text: string) => (received += text));
    const body = "b".repeat(300_000);
    const post = `POST /p HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: ${body.length}\r\n\r\n`;
    for (let no = 1; no <= 3; no++) {
      socket.write(`${no === 1 ? v2 : ""}${post}${body}`, "latin1");
      await until("an answer", () => received.split("300000 bytes.").length === no + 1);
    }
    socket.destroy();
    await until("records", () => edge.records.length === 3);
    expect(new Set(addressesOf(edge))).toEqual(new Set(["192.0.2.7"]));
    expect(new Set(edge.records.map(({ connection }) => connection))).toEqual(new Set([1]));
  });
});

describe("however the bytes arrive", () => {
  it.each([
    ["version 1", v1],
    ["version 2", v2],
    ["version 2, IPv6", v2Six],
  ])("%s, cut at every byte", async (_, header) => {
    await using edge = await gated();
    const sent = header + last;
    for (let cut = 1; cut < sent.length; cut++)
      expect(statusesOf(await rawPackets(edge, [sent.slice(0, cut), sent.slice(cut)]))).toEqual([
        "404",
      ]);
    expect(statusesOf(await rawPackets(edge, sent.split("")))).toEqual(["404"]);
    await until("records", () => edge.records.length === sent.length);
    expect(new Set(addressesOf(edge)).size).toBe(1);
    expect(addressesOf(edge)).not.toContain("127.0.0.1");
  });

  it("a header with many requests, cut anywhere, is each of them in order", async () => {
    await using edge = await gated();
    const requests = Array.from({ length: 30 }, (_, no) => get(`/${no}`)).join("");
    const sent = v2 + requests + last;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(sent.length), { maxLength: 6 }), async (cuts) => {
        edge.records.length = 0;
        const at = [0, ...cuts.toSorted((a, b) => a - b), sent.length];
        const pieces = at.slice(1).map((end, i) => sent.slice(at[i], end));
        await rawPackets(
          edge,
          pieces.filter((piece) => piece !== ""),
        );
        await until("records", () => edge.records.length === 31);
        expect(edge.records.map(({ uri_path }) => uri_path)).toEqual([
          ...Array.from({ length: 30 }, (_, no) => `/${no}`),
          "/last",
        ]);
        expect(new Set(addressesOf(edge))).toEqual(new Set(["192.0.2.7"]));
      }),
      { numRuns: 20 },
    );
  });
});

describe("cut off", () => {
  it("is who is no trusted proxy, whatever it sends", async () => {
    await using edge = await gated({ trusted: ["192.0.2.0/24", "::1"] });
    expect(await raw(edge, `${v1}${last}`)).toBe("");
    await expect(ask(edge, "/")).rejects.toThrow();
    expect(await refused(edge)).toEqual({ untrusted: 2 });
    expect(edge.records).toEqual([]);
  });

  it.each([
    ["a request", last],
    ["a TLS hello", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["a header of another family", `PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n${last}`],
    ["a line without end", `PROXY TCP4 ${"1".repeat(200)}`],
    ["a header of 64 KiB", `${v2.slice(0, 14)}\xff\xff${"x".repeat(70_000)}`],
    ["version 3", `${v2.slice(0, 12)}\x31${v2.slice(13)}${last}`],
  ])("%s", async (_, sent) => {
    await using edge = await gated();
    expect(await raw(edge, sent)).toBe("");
    await until("counted", async () => (await refused(edge))["invalid"] === 1);
    expect([await refused(edge), edge.records]).toEqual([{ invalid: 1 }, []]);
  });

  it("is half a header; a look at the port is no header", async () => {
    await using edge = await gated();
    for (const sent of ["", v2.slice(0, 20), v1.slice(0, 9)]) {
      const socket = connect(edge.port, "127.0.0.1");
      socket.end(sent, "latin1");
      await until("closed", () => socket.destroyed);
    }
    await until("counted", async () => (await refused(edge))["incomplete"] === 2);
    expect(await refused(edge)).toEqual({ incomplete: 2 });
    expect(edge.records).toEqual([]);
  });

  it("is a header that takes too long, not a request behind it", async () => {
    await using edge = await gated({ headerMs: 700 });
    const prompt = connect(edge.port, "127.0.0.1");
    let received = "";
    prompt.setEncoding("latin1").on("data", (text: string) => (received += text));
    prompt.write(v1 + last.slice(0, 20), "latin1");
    const slow = connect({ port: edge.port, host: "127.0.0.1", noDelay: true });
    slow.once("error", () => {});
    const silent = connect(edge.port, "127.0.0.1");
    silent.once("error", () => {});
    slow.on("data", () => {}).write(v2.slice(0, 8), "latin1");
    silent.on("data", () => {});
    const drip = setInterval(() => slow.write("\0"), 40);
    await until("both cut", () => slow.destroyed && silent.destroyed);
    clearInterval(drip);
    expect((await refused(edge))["late"]).toBeGreaterThanOrEqual(1);
    prompt.end(last.slice(20));
    await until("answered", () => prompt.destroyed);
    expect(statusesOf(received)).toEqual(["404"]);
  });

  it("is what the parser refuses behind the header, with an answer and a record", async () => {
    await using edge = await gated();
    expect(
      statusesOf(await raw(edge, `${v1}${get("/a")}GET /b HTTP/1.1\r\nbad field\r\n\r\n`)),
    ).toEqual(["404", "400"]);
    await until("records", () => edge.records.length === 2);
    expect(addressesOf(edge)).toEqual(["192.0.2.7", "192.0.2.7"]);
  });

  it("is nobody where the protocol is off: a header is a malformed request", async () => {
    await using edge = await openEdge({ site: {}, trusted: ["127.0.0.1"] });
    expect(statusesOf(await raw(edge, `${v1}${last}`))).toEqual(["400"]);
    expect(addressesOf(edge)).toEqual(["127.0.0.1"]);
  });
});

describe("draining", () => {
  const opened = async (edge: Edge, sent: string): Promise<Socket & { received: string }> => {
    const socket = Object.assign(connect({ port: edge.port, host: "127.0.0.1", noDelay: true }), {
      received: "",
    });
    socket.once("error", () => {});
    socket.setEncoding("latin1").on("data", (text: string) => (socket.received += text));
    await new Promise((resolve) => socket.write(sent, "latin1", resolve));
    return socket;
  };

  it("answers who completes the header, and waits for nobody else", async () => {
    await using edge = await gated();
    const half = await opened(edge, v2.slice(0, 20));
    const arriving = await opened(edge, v1.slice(0, 20));
    const idle = await opened(edge, v1);
    const used = await opened(edge, v1 + get("/used"));
    await until("answered", () => used.received.includes("404"));
    const started = performance.now();
    const drained = edge.drain(8_000);
    arriving.write(v1.slice(20) + get("/arriving"));
    await drained;
    expect(performance.now() - started).toBeLessThan(4_000);
    await until("closed", () => [half, arriving, idle, used].every(({ destroyed }) => destroyed));
    expect(statusesOf(arriving.received)).toEqual(["404"]);
    expect(arriving.received).toMatch(/connection: close/i);
    expect([half.received, idle.received]).toEqual(["", ""]);
    await until("forgotten", () => edge.openConnections === 0);
  });
});
