// HTTP servers of the control side (central, metrics, control sockets): listening with named errors, bounded bodies, closing that ends.

import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
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
  refuseBroken(server);
  await listen(server, where);
  return {
    server,
    port: portOf(server),
    [Symbol.asyncDispose]: async () => closeHttp(server, graceMs),
  };
}

const broken: Readonly<Record<string, { readonly status: number; readonly detail: string }>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "the request was not whole in time" },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, detail: "the chunk extensions are too large" },
  HPE_HEADER_OVERFLOW: {
    status: 431,
    detail: `the header fields have more than ${options.maxHeaderSize} bytes`,
  },
};

/** What the parser refuses gets a problem document (RFC 9457) too, and the end of its connection. Nothing is written into an answer that is on its way. */
function refuseBroken(server: Server): void {
  const newest = new WeakMap<object, ServerResponse>();
  server.on("request", (request, response) => newest.set(request.socket, response));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const response = newest.get(socket);
    const isUnderWay = response?.headersSent === true && !response.writableFinished;
    if (!socket.writable || isUnderWay || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    const known = broken[error.code ?? ""];
    const { status, detail } = known ?? { status: 400, detail: "the request is not HTTP/1.1" };
    const title = STATUS_CODES[status];
    const body = JSON.stringify({ type: "about:blank", title, status, detail });
    const head = `HTTP/1.1 ${status} ${title}\r\nconnection: close\r\ncontent-type: application/problem+json\r\n`;
    socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  });
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
