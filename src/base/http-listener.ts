// HTTP servers of the control side (central, metrics, control sockets): listening with named errors, bounded
// bodies, and a close that ends.

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { AddressInfo, ListenOptions, Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import { AccelError, codeOf, isShortage, messageOf, systemCode } from "../core/faults.ts";

/** `fd`: a descriptor of a TCP socket that is bound. */
export type ListenPlace = ListenOptions & { readonly fd?: number };

/** Who may wait to be accepted; the system takes at most net.core.somaxconn (4,096) of it. */
const backlogDefault = 4_096;

export type Listener = AsyncDisposable & { readonly server: Server; readonly port: number };

/** The time for requests in flight when closing; whatever is still open afterwards is cut. */
const closeGraceMs = 5_000;
const idleSweepMs = 20;
/**
 * The time for the rest of a body whose request is answered already: whoever drips it must not hold a
 * connection.
 */
const restOfBodyDefaultMs = 5_000;

export const listenerOptions: ServerOptions = {
  requestTimeout: 120_000,
  headersTimeout: 20_000,
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 5_000, // The limits above take effect this much later at most.
  maxHeaderSize: 32_768,
};

export type ListenTimes = {
  /** The time that requests in flight have when the listener closes. */
  readonly graceMs?: number;
  /**
   * The longest time for which new requests are still answered while the listener closes and others are in
   * flight.
   */
  readonly drainMs?: number;
  readonly restOfBodyMs?: number;
};

/**
 * Listens; port 0 takes a free one. Throws PORT_TAKEN or ADDRESS_UNUSABLE naming host and port. An answer
 * given while closing is the last of its connection.
 */
export async function listenHttp(
  handler: RequestListener,
  where: ListenOptions,
  { graceMs = closeGraceMs, drainMs = 0, restOfBodyMs = restOfBodyDefaultMs }: ListenTimes = {},
): Promise<Listener> {
  const inFlight = new InFlight();
  const server = createServer(listenerOptions, (request, response) => {
    inFlight.add(response);
    response.once("finish", () => endBody(request, restOfBodyMs));
    handler(request, response);
  });
  refuseBroken(server);
  await listen(server, where);
  return {
    server,
    port: portOf(server),
    [Symbol.asyncDispose]: async () => {
      await inFlight.drain(drainMs);
      await closeHttp(server, graceMs);
    },
  };
}

/** The requests that are answered, for an end that waits for them. */
export class InFlight {
  readonly #responses = new Set<ServerResponse>();
  #isClosing = false;
  #whenNone: (() => void) | undefined;

  add(response: ServerResponse): void {
    this.#responses.add(response);
    response.once("close", () => {
      this.#responses.delete(response);
      if (this.#responses.size === 0) this.#whenNone?.();
    });
    if (this.#isClosing) response.setHeader("connection", "close");
  }

  /** Resolves when none is in flight, or the time is up. */
  async drain(timeoutMs: number): Promise<void> {
    this.#isClosing = true;
    for (const response of this.#responses)
      if (!response.headersSent) response.setHeader("connection", "close");
    if (this.#responses.size === 0 || timeoutMs === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenNone = resolve;
    const late = setTimeout(resolve, timeoutMs);
    await promise;
    clearTimeout(late);
  }
}

/** Why a request is answered before its work has ended: the server ends, or its connection stood still for as long as it may. */
export type Overdue = "ending" | "still";

/**
 * Waits for the work that answers. Returns undefined when it has ended, or why an answer is due before that: the work goes on, and its failure is nobody's. An answer that is
 * partly out stays its work's; a connection on which it stands still is cut.
 */
export async function orOverdue(
  work: Promise<void>,
  response: ServerResponse,
  ending?: AbortSignal,
): Promise<Overdue | undefined> {
  const { promise, resolve } = Promise.withResolvers<Overdue>();
  const end = (): void => {
    if (!response.headersSent) resolve("ending");
  };
  // Whoever listens to it is to end the connection.
  const stoodStill = (): void => {
    if (response.headersSent) response.destroy();
    else resolve("still");
  };
  ending?.addEventListener("abort", end, { once: true });
  response.on("timeout", stoodStill);
  if (ending?.aborted === true) end();
  try {
    return (await Promise.race([work, promise])) ?? undefined;
  } finally {
    ending?.removeEventListener("abort", end);
    response.removeListener("timeout", stoodStill);
  }
}

/** Has the rest of a body come within that time, or cuts its connection. */
export function endBody(request: IncomingMessage, timeoutMs: number): void {
  if (request.complete || request.destroyed) return;
  const late = setTimeout(() => request.socket.destroy(), timeoutMs);
  request.once("close", () => clearTimeout(late));
}

/** With a descriptor, listens on its socket; host and port are named in errors. Throws PORT_TAKEN or ADDRESS_UNUSABLE. */
export async function listen(server: NetServer, where: ListenPlace): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  // Of options with a descriptor, Node takes no backlog.
  server.listen(where, where.backlog ?? backlogDefault, resolve);
  try {
    await promise;
  } catch (error) {
    const place = where.path ?? `${where.host ?? "*"}:${where.port}`;
    const taken = systemCode(error) === "EADDRINUSE";
    if (isShortage(error))
      throw new AccelError(codeOf(error), `cannot listen on ${place}: ${messageOf(error)}`);
    throw taken
      ? new AccelError("PORT_TAKEN", `${place} is in use by another process`)
      : new AccelError("ADDRESS_UNUSABLE", `cannot listen on ${place}: ${messageOf(error)}`);
  } finally {
    server.removeListener("error", reject);
  }
}

export function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}

export async function closeHttp(server: Server, graceMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  // A connection stays open after its last request, and would hold the server for the whole grace.
  const idle = setInterval(() => server.closeIdleConnections(), idleSweepMs);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await promise;
  clearInterval(idle);
  clearTimeout(cut);
}

export type BodyRead =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly reason: "too large" | "too slow" | "aborted" };

/**
 * Reads the whole body, at most `bytesMax`. Never throws and keeps nothing beyond the limit; the caller
 * answers. Without `timeoutMs` it takes as long as the server allows.
 */
export async function readBody(
  request: IncomingMessage,
  bytesMax: number,
  timeoutMs?: number,
): Promise<BodyRead> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax)
    return { ok: false, reason: "too large" };
  if (timeoutMs === undefined) return readWhole(request, bytesMax);
  const { promise: late, resolve } = Promise.withResolvers<BodyRead>();
  const timer = setTimeout(() => resolve({ ok: false, reason: "too slow" }), timeoutMs);
  try {
    return await Promise.race([readWhole(request, bytesMax), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function readWhole(request: IncomingMessage, bytesMax: number): Promise<BodyRead> {
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
  request.resume(); // The rest is read and dropped; unread, it would hold up the sender and the requests behind it.
  return { ok: false, reason: "too large" };
}

// A request that is not HTTP also gets a problem document (RFC 9457), after the answers to what came before
// it on its connection. Then the connection ends.

type Refusal = { readonly status: number; readonly detail: string };

/** The answers to what the parser refuses, by its code; anything else is a 400. */
const refusals: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "the request was not whole in time" },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, detail: "the chunk extensions are too large" },
  HPE_HEADER_OVERFLOW: { status: 431, detail: "the header fields are too large" },
};

export function refuseBroken(server: Server): void {
  /** The last unfinished answer of each connection; thousands of idle connections keep none. */
  const unfinished = new WeakMap<object, ServerResponse>();
  server.on("request", ({ socket }, response) => {
    unfinished.set(socket, response);
    response.once("finish", () => {
      if (unfinished.get(socket) === response) unfinished.delete(socket);
    });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const response = unfinished.get(socket);
    if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
    else if (response === undefined) refuse(socket, error);
    else if (response.req.complete) response.once("finish", () => refuse(socket, error));
    // The body of its request broke.
    else if (response.headersSent) socket.destroy();
    else refuse(socket, error);
  });
}

function refuse(socket: Duplex, { code }: NodeJS.ErrnoException): void {
  const { status, detail } = refusals[code ?? ""] ?? {
    status: 400,
    detail: "the request is not HTTP/1.1",
  };
  const title = STATUS_CODES[status] ?? "";
  const body = JSON.stringify({ type: "about:blank", title, status, detail });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nconnection: close\r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
