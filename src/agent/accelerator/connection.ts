// One visitor's TCP connection: its number, its peer, the exchanges that are under way on it.

import type { Socket } from "node:net";
import { parsePeer } from "../../core/client-address.ts";
import type { IpAddress } from "../../core/ip.ts";
import type { Exchange } from "./exchange.ts";

export class Connection {
  readonly no: number;
  readonly socket: Socket;
  /** Taken at once: a closed socket has forgotten it. */
  readonly peer: IpAddress | undefined;
  /** In order of arrival: HTTP/1.1 may be pipelined, answers go out in the same order. */
  readonly live = new Set<Exchange>();
  /** The exchange that began last, ended or not. */
  newest: Exchange | undefined;
  #bytesTold = 0;

  constructor(no: number, socket: Socket) {
    this.no = no;
    this.socket = socket;
    this.peer = parsePeer(socket.remoteAddress);
  }

  /** Bytes written since the last call, heads included. */
  takeBytesSent(): number {
    const { bytesWritten } = this.socket;
    const sent = bytesWritten - this.#bytesTold;
    this.#bytesTold = bytesWritten;
    return sent;
  }
}
