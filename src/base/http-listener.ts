// HTTP servers of the control side (central, metrics, control sockets): listening with named errors, bounded bodies, closing that ends.

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from "node:http";
import type { AddressInfo, ListenOptions, Server as NetServer } from "node:net";
import { AccelError, messageOf } from "../core/faults.ts";

export type Listener = AsyncDisposable & { readonly server: Server; readonly port: number };

/** Time for requests in flight when closing; what is still open afterwards is cut. */
const closeGraceMs = 5_000;
const idleSweepMs = 20;

const options: ServerOptions = {
  requestTimeout: 120_000,
  headersTimeout: 20_000,
  keepAliveTimeout: 30_000,
  maxHeaderSize: 32_768,
};

/** Port 0 takes a free one. Throws PORT_TAKEN or ADDRESS_UNUSABLE naming host and port. */
export async function listenHttp(
  handler: RequestListener,
  where: ListenOptions,
  graceMs = closeGraceMs,
): Promise<Listener> {
  const server = createServer(options, handler);
  await listen(server, where);
  return {
    server,
    port: portOf(server),
    [Symbol.asyncDispose]: async () => closeHttp(server, graceMs),
  };
}

export async function listen(server: NetServer, where: ListenOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(where, resolve);
  try {
    await promise;
  } catch (error) {
    const place = where.path ?? `${where.host ?? "*"}:${where.port}`;
    const taken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    throw taken
      ? new AccelError("PORT_TAKEN", `${place} is in use by another process`)
      : new AccelError("ADDRESS_UNUSABLE", `cannot listen on ${place}: ${messageOf(error)}`);
  } finally {
    server.removeListener("error", reject);
  }
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}

export async function closeHttp(server: Server, graceMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  // A connection is kept alive when its last request ends: without this it would hold the server for the whole grace.
  const idle = setInterval(() => server.closeIdleConnections(), idleSweepMs);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await promise;
  clearInterval(idle);
  clearTimeout(cut);
}

export type BodyRead =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly reason: "too large" | "aborted" };

/** The whole body, at most `bytesMax`. Never throws; keeps nothing beyond the limit, the answer is the caller's. */
export async function readBody(request: IncomingMessage, bytesMax: number): Promise<BodyRead> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax)
    return { ok: false, reason: "too large" };
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      const bytes: Buffer = chunk;
      size += bytes.length;
      if (size > bytesMax) break;
      chunks.push(bytes);
    }
  } catch {
    return { ok: false, reason: "aborted" };
  }
  if (size <= bytesMax) return { ok: true, body: Buffer.concat(chunks, size) };
  request.resume(); // The rest is dropped: unread, it would hold up the sender and the requests behind it.
  return { ok: false, reason: "too large" };
}
