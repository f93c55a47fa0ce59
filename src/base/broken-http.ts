// What is not HTTP gets a problem document (RFC 9457) too, after the answers to what came before it on its connection; then the connection ends.

import { STATUS_CODES, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

type Refusal = { readonly status: number; readonly detail: string };

/** By the parser's code; anything else is a 400. */
const refusals: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: "the request was not whole in time" },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, detail: "the chunk extensions are too large" },
  HPE_HEADER_OVERFLOW: { status: 431, detail: "the header fields are too large" },
};

export function refuseBroken(server: Server): void {
  /** Of each connection the last one that is not finished: thousands of idle ones keep none. */
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
    // Its body broke.
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
