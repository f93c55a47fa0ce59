// What the log says about each request of customers: from where, to what, how it ended. Its id is also in the
// answer and in the audit trail.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { ClientAddresses } from "../../../core/http/client-address.ts";
import { fieldsOfRaw } from "../../../core/http/http-fields.ts";

export type ToldRequest = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
};

/** Returns how a request ended. */
export function endedFacts({ request, response, requestId }: ToldRequest) {
  return {
    ...bytesOf("bytes_in", request.headers["content-length"]),
    ...bytesOf("bytes_out", response.getHeader("content-length")),
    ...(!response.writableEnded && { aborted: true }),
    request_id: requestId,
  };
}

/** Returns the status, or null if the client gave up. */
export function statusOf(response: ServerResponse): number | null {
  return response.headersSent ? response.statusCode : null;
}

/** Returns the size of a body whose length was told before. */
function bytesOf(name: string, length: unknown): Readonly<Record<string, number>> {
  return length === undefined ? {} : { [name]: Number(length) };
}

const requestIdBytes = 8;
const idsAtOnce = 128;

/** Makes random ids of 16 hexadecimal digits; the system is asked for many at once. */
export function requestIds(randomBytes: (count: number) => Uint8Array): () => string {
  let rest = Buffer.alloc(0);
  return () => {
    if (rest.length === 0) rest = Buffer.from(randomBytes(requestIdBytes * idsAtOnce));
    const id = rest.toString("hex", 0, requestIdBytes);
    rest = rest.subarray(requestIdBytes);
    return id;
  };
}

/** Returns the client's address, through the proxies that are trusted. */
export function visitorAddress(clients: ClientAddresses, request: IncomingMessage): string {
  const peer = clients.ofPeer(request.socket.remoteAddress);
  if (peer === undefined) return "unknown";
  return peer.isProxied ? clients.ofRequest(peer, fieldsOfRaw(request.rawHeaders)).text : peer.text;
}
