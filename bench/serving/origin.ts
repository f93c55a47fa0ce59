// The origin behind all servers of the comparison, in a thread of its own: plain and TLS, with answers that are made before. No
// coding makes them smaller, so that every server sends the same bytes.
//
//   /hit/…      4 KiB, storable for an hour          /vary/…   the same, by Accept-Language
//   /private/…  4 KiB, of one visitor                /store/…  storable, for URLs that are asked for once
//   /mega/…     1 MiB, of one visitor                POST      takes the body, answers 4 KiB
//   /ruled/…    as /hit/…; a rule gives it its lifetime

import { randomBytes } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

export type OriginPorts = { readonly plain: number; readonly tls: number };
export type Origin = AsyncDisposable & OriginPorts;
type Certificate = { readonly key: string; readonly cert: string };

export const pageBytes = 4_096;
export const etag = '"page-1"';
const page = randomBytes(pageBytes);
const mega = randomBytes(2 ** 20);
const lastModified = "Thu, 01 Jan 2026 00:00:00 GMT";

export async function startOrigin(certificate: Certificate): Promise<Origin> {
  const worker = new Worker(import.meta.filename, { workerData: certificate });
  const { promise, resolve, reject } = Promise.withResolvers<OriginPorts>();
  worker.once("message", resolve).once("error", reject);
  return { ...(await promise), [Symbol.asyncDispose]: async () => void (await worker.terminate()) };
}

const answer: RequestListener = (request, response) => {
  const path = request.url ?? "/";
  const isShared = /^\/(?:hit|vary|store|ruled)\//.test(path);
  const body = path.startsWith("/mega/") ? mega : page;
  request.resume();
  request.once("end", () => {
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "content-length": body.length,
      "cache-control": isShared ? "public, max-age=3600" : "private, no-store",
      ...(isShared && { etag, "last-modified": lastModified }),
      ...(path.startsWith("/vary/") && { vary: "Accept-Language" }),
    });
    response.end(body);
  });
};

async function listen(server: Server): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return (server.address() as AddressInfo).port; // A TCP server that listens has one.
}

if (!isMainThread && parentPort !== null) {
  const { key, cert } = workerData as Certificate; // What startOrigin gave.
  const keepAliveTimeout = 600_000;
  const plain = createServer({ keepAliveTimeout }, answer);
  const tls = createTlsServer({ key, cert, keepAliveTimeout }, answer);
  parentPort.postMessage({ plain: await listen(plain), tls: await listen(tls) });
}
