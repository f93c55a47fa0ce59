// The lane as a carrier of ordinary exchanges: a plain request and its answer, written to the socket of the lane's own connection. The request has no body.
//
// One exchange at a time has the connection; what the visitor sends meanwhile waits in the lane.

import { once } from "node:events";
import type { Socket } from "node:net";
import type { Field } from "../../../core/http/http-fields.ts";
import { stallMs } from "../doors/answer.ts";
import type { Carrier, VisitorRequest, VisitorResponse } from "../doors/carrier.ts";
import type { Connection } from "../doors/exchange.ts";
import { dateLine, hasField, headText, isLastAnswer, staysOpen } from "../doors/head-text.ts";
import type { PlainHead, PurgeHead } from "./head-scanner.ts";

export class LaneCarrier implements Carrier {
  readonly request: VisitorRequest;
  readonly response: LaneResponse;
  readonly fields: readonly Field[];
  readonly hasBody = false;
  readonly isReceived = true;
  readonly #connection: Connection;

  constructor(head: PlainHead | PurgeHead, connection: Connection, nowMs: () => number) {
    const { method, url, httpVersion } = head;
    this.request = { method, url, httpVersion };
    this.fields = head.fields;
    this.#connection = connection;
    this.response = new LaneResponse(connection, method === "HEAD", !head.said.isLast, nowMs);
  }

  get isGone(): boolean {
    return this.#connection.socket.destroyed;
  }

  get isComplete(): boolean {
    return this.response.isComplete;
  }

  get hasLeft(): boolean {
    return this.#connection.socket.writableLength === 0;
  }

  get isLast(): boolean {
    return !this.response.keepsOpen;
  }

  bytesSent(): number {
    return this.response.sent ?? this.#connection.takeBytesSent();
  }

  onClose(closed: () => void): void {
    this.response.onClose(closed);
  }

  endConnection(): void {
    this.response.keepsOpen = false;
  }

  /** Once the head is out HTTP/1 has no other way. */
  cut(): void {
    this.#connection.socket.destroy();
  }

  writeInterim(status: number, fields: readonly Field[]): void {
    this.#connection.socket.write(`${headText(status, fields.flat())}\r\n`, "latin1");
  }

  async drained(stallMs: number, stop: AbortSignal): Promise<void> {
    const { socket } = this.#connection;
    // Node renews this timer with each byte that the kernel takes; the lane destroys the socket when it fires.
    socket.setTimeout(stallMs);
    await once(socket, "drain", { signal: stop });
    socket.setTimeout(0);
  }
}

/** Bodies up to this size are copied into a text. */
const textBytesMax = 16_384;

function latin1({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

class LaneResponse implements VisitorResponse {
  keepsOpen: boolean;
  statusCode = 200;
  isComplete = false;
  /** The bytes of the whole answer; undefined while it has not ended. */
  sent: number | undefined;
  readonly #connection: Connection;
  readonly #isHead: boolean;
  readonly #nowMs: () => number;
  /** Undefined: not known yet. */
  #head: string | undefined;
  #isHeadOut = false;
  #isChunked = false;
  #hasBody = true;
  #isEnded = false;
  readonly #closed: (() => void)[] = [];
  #isOver = false;

  constructor(connection: Connection, isHead: boolean, keepsOpen: boolean, nowMs: () => number) {
    this.#connection = connection;
    this.#isHead = isHead;
    this.keepsOpen = keepsOpen;
    this.#nowMs = nowMs;
  }

  get headersSent(): boolean {
    return this.#head !== undefined;
  }

  writeHead(status: number, fields: string[]): void {
    if (this.#head !== undefined) throw new TypeError("the head was written already");
    const said = headText(status, fields);
    this.statusCode = status;
    this.#hasBody = !this.#isHead && status !== 204 && status !== 304;
    this.#isChunked = this.#hasBody && !hasField(fields, "content-length");
    const date = hasField(fields, "date") ? "" : dateLine(this.#nowMs());
    const connection = this.keepsOpen ? staysOpen : isLastAnswer;
    const coding = this.#isChunked ? "Transfer-Encoding: chunked\r\n" : "";
    this.#head = `${said}${date}${connection}${coding}\r\n`;
  }

  flushHeaders(): void {
    const { socket } = this.#connection;
    if (this.#isHeadOut || this.#head === undefined || socket.destroyed) return;
    this.#isHeadOut = true;
    socket.write(this.#head, "latin1");
  }

  write(chunk: Uint8Array): boolean {
    const { socket } = this.#connection;
    if (socket.destroyed || this.#isEnded) return true;
    const text = this.#textWith(chunk, false);
    if (text !== undefined) return socket.write(text, "latin1");
    socket.cork();
    this.flushHeaders();
    this.#writeBody(socket, chunk);
    socket.uncork();
    return !socket.writableNeedDrain;
  }

  end(chunk?: Uint8Array): void {
    const { socket } = this.#connection;
    if (this.#isEnded || socket.destroyed) return;
    this.#isEnded = true;
    const done = (error?: Error | null): void => {
      if (error === undefined || error === null) this.#complete();
    };
    const text = this.#textWith(chunk, true);
    if (text !== undefined) socket.write(text, "latin1", done);
    else this.#writeEnd(socket, chunk, done);
    // Renewed with each byte that the kernel takes; the lane destroys the socket when it fires.
    if (socket.writableNeedDrain) socket.setTimeout(stallMs);
  }

  #writeEnd(
    socket: Socket,
    chunk: Uint8Array | undefined,
    done: (error?: Error | null) => void,
  ): void {
    socket.cork();
    this.flushHeaders();
    if (chunk !== undefined && chunk.length > 0 && this.#hasBody && !this.#isChunked)
      socket.write(chunk, done);
    else {
      if (chunk !== undefined) this.#writeBody(socket, chunk);
      socket.write(this.#isChunked ? "0\r\n\r\n" : "", "latin1", done);
    }
    socket.uncork();
  }

  /** The head and a small body, or what is left to say, as one text: one write. Undefined where that is no gain. */
  #textWith(chunk: Uint8Array | undefined, isEnd: boolean): string | undefined {
    const size = this.#hasBody ? (chunk?.length ?? 0) : 0;
    if (size > textBytesMax || (this.#isHeadOut && size > 0 && !this.#isChunked)) return undefined;
    const head = this.#isHeadOut ? "" : (this.#head ?? "");
    this.#isHeadOut = true;
    const data = size === 0 || chunk === undefined ? "" : latin1(chunk);
    if (!this.#isChunked) return head + data;
    const framed = size === 0 ? "" : `${size.toString(16)}\r\n${data}\r\n`;
    return `${head}${framed}${isEnd ? "0\r\n\r\n" : ""}`;
  }

  /** A request without a body waits for nothing. */
  writeContinue(): void {}

  onClose(closed: () => void): void {
    if (this.#isOver) closed();
    else this.#closed.push(closed);
  }

  /** The answer has ended, or the connection has. */
  over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const closed of this.#closed) closed();
  }

  #writeBody(socket: Socket, chunk: Uint8Array): void {
    if (!this.#hasBody || chunk.length === 0) return;
    if (this.#isChunked) socket.write(`${chunk.length.toString(16)}\r\n`, "latin1");
    socket.write(chunk);
    if (this.#isChunked) socket.write("\r\n", "latin1");
  }

  #complete(): void {
    this.isComplete = true;
    this.#connection.socket.setTimeout(0);
    this.sent = this.#connection.takeBytesSent();
    this.over();
  }
}
