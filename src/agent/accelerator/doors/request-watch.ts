// Watches the bytes of a connection that is served by node:http, for what its parser does not tell: the protocol of a request line, and the size of a chunk
// before its data have come. It reads no more than that, and never decides where a body ends for anybody but itself.
//
// What the strict parser of node refuses ends the connection, so only what it takes has to be followed: lines end with CRLF, a head ends with an empty line, and
// its body has the length that one Content-Length says, or comes in chunks.

import type { Duplex } from "node:stream";
import type { PromisedBytes } from "./carrier.ts";

/** A request whose head has come whole; the parser tells it in the same turn. */
export class WatchedRequest implements PromisedBytes {
  readonly isHttp: boolean;
  #bytes = 0;
  #told: ((bytes: number) => void) | undefined;

  constructor(isHttp: boolean) {
    this.isHttp = isHttp;
  }

  follow(told: ((bytes: number) => void) | undefined): void {
    this.#told = told;
    if (this.#bytes > 0) told?.(this.#bytes);
  }

  /** A chunk of so many bytes begins. */
  promise(bytes: number): void {
    this.#bytes += bytes;
    this.#told?.(this.#bytes);
  }
}

/** What is awaited: a head, the bytes of a body, or in chunks a line with a size, data with the line end behind them, or the lines behind the last chunk. */
type Place = "head" | "body" | "size" | "data" | "trailer";

const cr = 13;
const lf = 10;
const lineEndBytes = 2;
/** The parser refuses a size of more digits, unless they are zeros. */
const sizeDigitsMax = 1_024;
/** The parser refuses longer heads, and longer lines of chunks. */
const textBytesMax = 64 * 1024;
const nothing = Buffer.alloc(0);

const requestLine = /^[^ \r\n]+ +[^ \r\n]+(?: +(?:HTTP\/[^\r\n]*)?)?\r\n/;
const framing = /\r\n(?:content-length|transfer-encoding):/i;
const statedLength = /\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n/i;
const hexDigits = /^[0-9a-f]+/i;
const chunked = /\r\ntransfer-encoding:[^\r\n]*chunked[ \t]*\r\n/i;

export class RequestWatch {
  #place: Place = "head";
  /** The bytes of a body, or of a chunk and its line end, that have not come. */
  #left = 0;
  /** The beginning of a head or a line that is not complete. */
  #text: Buffer = nothing;
  /** The requests that the parser has not told yet. */
  readonly #seen: WatchedRequest[] = [];
  #newest: WatchedRequest | undefined;
  #unfollow = (): void => {};

  /** Reads along with the parser, which has the connection already; what the parser read by itself comes by way of JavaScript from now on. */
  follow(socket: Duplex): void {
    const take = (chunk: Buffer): void => this.take(chunk);
    socket.prependListener("data", take);
    this.#unfollow = () => void socket.off("data", take);
  }

  /** The connection is another protocol's from now on. */
  leave(): void {
    this.#unfollow();
  }

  /** Returns the next request that the parser tells; undefined where it tells one that was not seen. */
  next(): WatchedRequest | undefined {
    return this.#seen.shift();
  }

  /** Takes bytes before the parser does. */
  take(chunk: Buffer): void {
    let bytes = chunk;
    let at = 0;
    if (this.#text.length > 0) {
      bytes = Buffer.concat([this.#text, chunk]);
      this.#text = nothing;
    }
    while (at < bytes.length) {
      const next = this.#step(bytes, at);
      if (next === undefined) {
        // What the parser will refuse is not kept.
        if (bytes.length - at <= textBytesMax) this.#text = bytes.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** Returns the place behind what was read; undefined where it is not complete. */
  #step(bytes: Buffer, at: number): number | undefined {
    switch (this.#place) {
      case "head":
        return this.#head(bytes, at);
      case "size":
        return this.#size(bytes, at);
      case "trailer":
        return this.#trailer(bytes, at);
      default:
        return this.#skip(bytes, at);
    }
  }

  #head(bytes: Buffer, at: number): number | undefined {
    // Empty lines before a request mean nothing (RFC 9112 §2.2).
    let from = at;
    while (bytes[from] === cr || bytes[from] === lf) from++;
    if (from > at) return from;
    const end = bytes.indexOf("\r\n\r\n", from, "latin1");
    if (end < 0) return undefined;
    const text = bytes.toString("latin1", from, end + 4);
    this.#newest = new WatchedRequest(requestLine.test(text));
    this.#seen.push(this.#newest);
    if (framing.test(text)) this.#expectBody(text);
    return end + 4;
  }

  #expectBody(head: string): void {
    if (chunked.test(head)) this.#place = "size";
    else {
      this.#left = Number(statedLength.exec(head)?.[1] ?? 0);
      if (this.#left > 0) this.#place = "body";
    }
  }

  #skip(bytes: Buffer, at: number): number {
    const skipped = Math.min(this.#left, bytes.length - at);
    this.#left -= skipped;
    if (this.#left === 0) this.#place = this.#place === "data" ? "size" : "head";
    return at + skipped;
  }

  #size(bytes: Buffer, at: number): number | undefined {
    const end = bytes.indexOf("\r\n", at, "latin1");
    if (end < 0) return undefined;
    const said = hexDigits.exec(bytes.toString("latin1", at, Math.min(end, at + sizeDigitsMax)));
    const size = Number.parseInt(said?.[0] ?? "0", 16);
    if (size === 0) this.#place = "trailer";
    else {
      this.#newest?.promise(size);
      this.#left = size + lineEndBytes;
      this.#place = "data";
    }
    return end + lineEndBytes;
  }

  #trailer(bytes: Buffer, at: number): number | undefined {
    const end = bytes.indexOf("\r\n", at, "latin1");
    if (end < 0) return undefined;
    if (end === at) this.#place = "head";
    return end + lineEndBytes;
  }
}
