// What is watched beside node's parser: the protocol of each request line and the size of each chunk, however the bytes are split, and in step with the parser.

import { createServer, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RequestWatch } from "../../../../src/agent/accelerator/doors/request-watch.ts";
import { until } from "../../../support/until.ts";
import { ask, host, openEdge, openOrigin, raw } from "../edge.ts";

const head = `Host: ${host}\r\n`;
const get = `GET / HTTP/1.1\r\n${head}\r\n`;
const post = `POST / HTTP/1.1\r\n${head}Content-Length: 5\r\n\r\nGET /`;
const inChunks = `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n`;
const chunks = "5;a=b\r\nGET /\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
const huge = "FFFFFFFFFFFFFFFF";

/** What a watch tells of each request: `http` or `other`, and the bytes that were promised. */
function told(pieces: readonly Buffer[]): string[] {
  const watch = new RequestWatch();
  for (const piece of pieces) watch.take(piece);
  const said: string[] = [];
  for (let seen = watch.next(); seen !== undefined; seen = watch.next()) {
    let bytes = 0;
    seen.follow((promised) => (bytes = promised));
    said.push(`${seen.isHttp ? "http" : "other"} ${bytes}`);
  }
  return said;
}

it("is the same however the bytes are split", () => {
  const rtsp = `GET / RTSP/1.0\r\n${head}\r\n`;
  const bytes = Buffer.from(
    `\r\n${get}${post}${inChunks}${chunks}\r\n${get}${rtsp}${inChunks}${huge}\r\n`,
  );
  const expected = ["http 0", "http 0", "http 15", "http 0", "other 0", `http ${2 ** 64}`];
  expect(told([bytes])).toEqual(expected);
  for (let at = 0; at <= bytes.length; at++)
    expect(told([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected);
  expect(told([...bytes].map((byte) => Buffer.from([byte])))).toEqual(expected);
});

it("a promise is told as soon as the size of its chunk has come", () => {
  const watch = new RequestWatch();
  watch.take(Buffer.from(inChunks));
  const seen = watch.next();
  const promises: number[] = [];
  seen?.follow((bytes) => promises.push(bytes));
  watch.take(Buffer.from("5\r\nabcde\r\n7f"));
  expect(promises).toEqual([5]);
  watch.take(Buffer.from("ff\r\n"));
  expect(promises).toEqual([5, 5 + 0x7fff]);
});

/** A connection of a test: what is pushed is read by whoever serves it. */
class Wire extends Duplex {
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done();
  }
}

describe("beside node's parser", () => {
  const pieces = fc.constantFrom(
    get,
    post,
    inChunks,
    chunks,
    "\r\n",
    "\r",
    "\n",
    " ",
    "0\r\n\r\n",
    "GET /",
    "HTTP/1.1",
    "ff\r\n",
    ":",
    "5",

    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "GET  /  HTTP/1.1\r\n",
    "POST /x\r\n",
    "\t",
    ";",

    `PUT /a HTTP/1.0\r\n${head}content-length:  04 \r\n\r\nabcd`,
    "Connection: close\r\n",
    "0;x\r\nA: b\r\n\r\n",

    `GET / ICE/1.0\r\n${head}\r\n`,
    `OPTIONS * RTSP/1.0\r\n${head}\r\n`,
    "transfer-encoding: gzip, chunked\r\n",
  );

  it("no request is told that was not seen, and none of another protocol for one of HTTP", async () => {
    const server = createServer({ requireHostHeader: false });
    let requests = 0;
    const property = fc.asyncProperty(
      fc.array(pieces, { minLength: 1, maxLength: 12 }).map((texts) => [get, post, ...texts]),
      fc.nat(400),
      async (texts, split) => {
        const bytes = Buffer.from(texts.join(""));
        const hasOther = /RTSP|ICE/.test(bytes.toString());
        const watch = new RequestWatch();
        const wire = new Wire();
        const unseen: string[] = [];
        const { promise: over, resolve: end } = Promise.withResolvers<void>();
        const onRequest = (
          request: Pick<IncomingMessage, "method" | "url" | "httpVersion">,
          response: { end(): void },
        ) => {
          requests++;
          const seen = watch.next();
          // Without a version it is refused either way, and a bare LF may end its line.
          if (request.httpVersion === "0.9") wire.destroy();
          const isRight =
            wire.destroyed || seen?.isHttp === true || (seen !== undefined && hasOther);
          if (!isRight) unseen.push(`${request.method} ${request.url}`);
          response.end();
        };
        server.on("request", onRequest);
        server.once("clientError", () => end());
        wire.on("error", () => {}).once("close", () => end());
        server.emit("connection", wire);
        wire.prependListener("data", (chunk: Buffer) => watch.take(chunk));
        const at = Math.min(split, bytes.length);
        for (const piece of [bytes.subarray(0, at), bytes.subarray(at)])
          if (piece.length > 0) wire.push(piece);
        wire.push(null);
        await over;
        server.off("request", onRequest).removeAllListeners("clientError");
        wire.destroy();
        expect(unseen, JSON.stringify(bytes.toString())).toEqual([]);
      },
    );
    await fc.assert(property, { numRuns: 3_000 });
    server.close();
    expect(requests).toBeGreaterThan(1_000);
  });
});

describe.each([
  ["in the lane", true],
  ["without the lane", false],
])("a visitor %s", (_where, lane) => {
  it.each([
    ["RTSP", `GET / RTSP/1.0\r\n${head}\r\n`],
    ["ICE", `SOURCE / ICE/1.0\r\n${head}\r\n`],
  ])("who speaks %s is told 400, also behind requests of HTTP", async (_name, request) => {
    await using origin = await openOrigin((_request, response) => response.end("made"));
    await using edge = await openEdge({ lane, site: { backend: { urls: [origin.url] } } });
    expect(await raw(edge, request)).toMatch(/^HTTP\/1\.1 400 [^]*not one of HTTP/);
    const both = await raw(edge, [post, request, get]);
    expect(both.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
    await until("all are recorded", () => edge.records.length === 3);
    expect(edge.records.map(({ response_status: status }) => status)).toEqual([400, 200, 400]);
  });

  it("who promises a chunk beyond what the site takes is told 413 at once, and the origin is not asked", async () => {
    let asked = 0;
    await using origin = await openOrigin((_request, response) => {
      asked++;
      response.end("made");
    });
    const site = { backend: { urls: [origin.url] }, limits: { body_bytes_max: 1_000 } };
    await using edge = await openEdge({ lane, site });
    const isOver = (text: string): boolean => text.includes("1000 bytes at most.\n");
    for (const size of [huge, "3E9", "3E8\r\n" + "x".repeat(1_000) + "\r\n1"]) {
      const first = await raw(edge, `${inChunks}${size}\r\n`, isOver);
      expect(first).toMatch(/^HTTP\/1\.1 413 /);
      const second = await raw(edge, [post, `${inChunks}${size}\r\n`], isOver);
      expect(second.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 413"]);
    }
    expect(asked).toBe(3);
    const headers = { "transfer-encoding": "chunked" };
    const whole = await ask(edge, "/", { method: "POST", headers, body: "x".repeat(1_000) });
    expect(whole.status).toBe(200);
  });
});
