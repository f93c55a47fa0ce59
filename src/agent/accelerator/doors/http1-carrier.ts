// HTTP/1: a request and its answer in their turn on a connection of its own.

import { once } from "node:events";
import { signalOf, type StopSignal } from "../../../base/stop.ts";
import {
  STATUS_CODES,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { fieldsOfRaw, type Field } from "../../../core/http/http-fields.ts";
import type { Carrier, PromisedBytes } from "./carrier.ts";
import type { Connection } from "./exchange.ts";

/** After an answer that did not wait for the whole request, the rest of it is taken in for this long before the connection is cut: cutting at once could destroy the answer on its way. */
const lingerMs = 2_000;

export function hasBodyOf(headers: IncomingHttpHeaders): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

export class Http1Carrier implements Carrier {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly fields: readonly Field[];
  readonly promised: PromisedBytes | undefined;
  readonly #connection: Connection;
  #sent: number | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    promised?: PromisedBytes,
  ) {
    this.promised = promised;
    this.request = request;
    this.response = response;
    this.#connection = connection;
    this.fields = fieldsOfRaw(request.rawHeaders);
    // A socket that goes away while something is written is no error of ours: both are told by their close.
    request.on("error", () => {});
    response.on("error", () => {});
    // Before Node's own listener, which writes the answer of the next pipelined request.
    response.prependOnceListener("finish", () => {
      this.#sent = connection.takeBytesSent();
      this.#linger();
    });
  }

  get body(): IncomingMessage {
    return this.request;
  }

  get hasBody(): boolean {
    return hasBodyOf(this.request.headers);
  }

  get isGone(): boolean {
    return this.#connection.socket.destroyed;
  }

  get isComplete(): boolean {
    return this.response.writableFinished;
  }

  get hasLeft(): boolean {
    return this.response.writableLength === 0;
  }

  get isReceived(): boolean {
    return this.request.complete;
  }

  bytesSent(): number {
    return this.#sent ?? this.#connection.takeBytesSent();
  }

  onClose(closed: () => void): void {
    this.response.once("close", closed);
  }

  get isLast(): boolean {
    return !this.response.shouldKeepAlive;
  }

  endConnection(): void {
    this.response.shouldKeepAlive = false;
  }

  writeInterim(status: number, fields: readonly Field[]): void {
    const { socket } = this.response;
    if (socket === null) return; // The answer before it is not out yet.
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n`;
    socket.write(head, "latin1");
  }

  /** Once the head is out HTTP/1 has no other way. */
  cut(): void {
    this.#connection.socket.destroy();
  }

  async drained(stallMs: number, stop: StopSignal): Promise<void> {
    const { socket } = this.#connection;
    // Node renews this timer with each byte that the kernel takes, and destroys the socket when it fires.
    socket.setTimeout(stallMs);
    await once(this.response, "drain", { signal: signalOf(stop) });
    socket.setTimeout(0);
  }

  #linger(): void {
    const { request } = this;
    const { socket } = this.#connection;
    if (request.complete || socket.destroyed) return;
    request.resume();
    const cut = setTimeout(() => socket.destroy(), lingerMs);
    const over = (): void => clearTimeout(cut);
    request.once("end", over);
    socket.once("close", over);
  }
}
