// Answers to what never became a request: written to the socket, for the parser has given up and there is no response object.

import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { RequestLine } from "../records/recorder.ts";

/** Time for the visitor to take the answer before the connection is cut. */
const takeMs = 1_000;

const texts: Readonly<Record<number, string>> = {
  400: "The request is malformed.",
  405: "CONNECT is not answered here.",
  408: "The request did not arrive in time.",
  413: "The chunk extensions of the request are too large.",
  431: "The header of the request is too large.",
};

/** Ends the connection. */
export function writeRawAnswer(socket: Socket, status: number, nowMs: number): void {
  const text = `${status} ${STATUS_CODES[status] ?? ""}\n${texts[status] ?? ""}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    `Date: ${new Date(nowMs).toUTCString()}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "X-Content-Type-Options: nosniff",
    "Cache-Control: no-store",
    ...(status === 405 ? ["Allow: GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"] : []),
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
  // What still arrives is read and thrown away: unread bytes at the close would make the kernel destroy the answer on its way.
  socket.resume();
  const cut = setTimeout(() => socket.destroy(), takeMs);
  socket.once("close", () => clearTimeout(cut));
}

/** Undefined: there is nobody to answer. */
export function statusOfParserError(error: Error): number | undefined {
  const code = "code" in error ? error.code : undefined;
  if (code === "ECONNRESET" || code === "EPIPE" || code === "ETIMEDOUT") return undefined;
  if (code === "HPE_HEADER_OVERFLOW") return 431;
  if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") return 413;
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : 400;
}

/**
 * The request line in what the parser choked on, as far as it can be made out: the packet may hold complete
 * requests before it. `before` is what was read of the packet before.
 */
export function requestLineOf(error: Error, before: Buffer): RequestLine {
  const rest = "rawPacket" in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : null;
  if (rest === null) return { method: "", target: "" };
  const packet = Buffer.concat([before, rest]);
  const parsed =
    "bytesParsed" in error && typeof error.bytesParsed === "number" ? error.bytesParsed : 0;
  const end = packet.subarray(0, before.length + parsed).lastIndexOf("\r\n\r\n");
  return requestLineIn(packet, end < 0 ? 0 : end + 4);
}

/** The request line that begins at `from`, as far as it can be made out. */
export function requestLineIn(packet: Buffer, from: number): RequestLine {
  const line = packet.toString("latin1", from, from + 16_384).split(/\r?\n/, 1)[0] ?? "";
  const [, method = "", target = ""] =
    /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) ([^ ]*)/.exec(line) ?? [];
  return { method, target };
}
