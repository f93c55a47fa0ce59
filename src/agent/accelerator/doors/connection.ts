// One visitor's TCP connection: its number, its peer, the exchanges that are under way on it.

import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import type { ClientAddress } from "../../../core/http/client-address.ts";
import type { Exchange } from "./exchange.ts";

export type Arrival = {
  readonly socket: Socket;
  /** Who connected, or whom a PROXY header names. Taken at once: a closed socket has forgotten it. */
  readonly peer: ClientAddress | undefined;
  /** That the visitor connected to. */
  readonly port: number | undefined;
  /** Of the PROXY header, before the first byte of a request. */
  readonly headerBytes: number;
};

export class Connection {
  readonly no: number;
  readonly socket: Socket;
  readonly peer: ClientAddress | undefined;
  readonly port: number | undefined;
  /** In order of arrival: HTTP/1.1 may be pipelined, answers go out in the same order. */
  readonly live = new Set<Exchange>();
  /** The exchange that began last, ended or not. */
  newest: Exchange | undefined;
  readonly #headerBytes: number;
  #bytesTold = 0;

  constructor(no: number, { socket, peer, port, headerBytes }: Arrival) {
    this.no = no;
    this.socket = socket;
    this.peer = peer;
    this.port = port;
    this.#headerBytes = headerBytes;
  }

  get isUnused(): boolean {
    return this.socket.bytesRead === this.#headerBytes;
  }

  /** Bytes written since the last call, heads included. */
  takeBytesSent(): number {
    const { bytesWritten } = this.socket;
    const sent = bytesWritten - this.#bytesTold;
    this.#bytesTold = bytesWritten;
    return sent;
  }
}

/** Resolves at its close, by whatever it ends; that it has not closed yet is the caller's to know. */
export async function closeOf(one: EventEmitter): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  one.once("close", resolve);
  return promise;
}
