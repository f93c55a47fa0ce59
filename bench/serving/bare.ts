// Bare Node beside the comparison: the same bytes from memory, and nothing that an edge does. HTTP/1.1 by node:http and node:https, HTTP/2 by the core API with raw
// header arrays. Arguments: the files of key and certificate. Says its ports on stdout.

import { readFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { fileBytes } from "./cases.ts";
import { etag, pageBytes } from "./origin.ts";

const [keyFile = "", certFile = ""] = process.argv.slice(2);
const tls = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
const bodies = new Map(
  Object.entries(fileBytes).map(([name, bytes]) => [`/files/${name}`, Buffer.alloc(bytes, "x")]),
);
const page = Buffer.alloc(pageBytes, "x");

const answer: RequestListener = (request, response) => {
  request.resume();
  const { "if-none-match": known, "user-agent": agent = "" } = request.headers;
  if (agent.includes("Scraper") || request.socket.remoteAddress === "127.0.0.3") {
    response.writeHead(403, { "content-length": 0 }).end();
    return;
  }
  if (known === etag) {
    response.writeHead(304, { etag }).end();
    return;
  }
  const body = bodies.get(request.url ?? "") ?? page;
  response.writeHead(200, { "content-type": "text/html", "content-length": body.length, etag });
  response.end(body);
};

async function listen(server: Server): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return (server.address() as AddressInfo).port; // A TCP server that listens has one.
}

const keepAliveTimeout = 600_000;
const http2 = createSecureServer(tls);
/** The head of our cached hit, field by field: the API is compared on the same answer. */
const hitFields = [
  "content-type",
  "text/html; charset=utf-8",
  "content-length",
  `${pageBytes}`,
  "cache-control",
  "public, max-age=3600",
  "etag",
  etag,
  "last-modified",
  "Thu, 01 Jan 2026 00:00:00 GMT",
  "vary",
  "Accept-Encoding",
  "date",
  "Thu, 01 Jan 2026 00:00:00 GMT",
  "age",
  "10",
  "cache-status",
  "accel-agent; hit; ttl=3590",
];
http2.on("stream", (stream: ServerHttp2Stream) => {
  stream.respond([":status", "200", ...hitFields]);
  stream.end(page);
});
const ports = {
  plain: await listen(createServer({ keepAliveTimeout }, answer)),
  tls: await listen(createTlsServer({ ...tls, keepAliveTimeout }, answer)),
  http2: await listen(http2),
};
process.stdout.write(`${JSON.stringify(ports)}\n`);
