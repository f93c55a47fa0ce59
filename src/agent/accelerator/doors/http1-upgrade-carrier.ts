// HTTP/1.1: a request that may take its connection over, and its answer. Node has let go of the connection by then: whatever the answer is, it is the last one.

import { ServerResponse, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Field } from "../../../core/http/http-fields.ts";
import type { Connection } from "./exchange.ts";
import { Http1Carrier } from "./http1-carrier.ts";

/** The time for the visitor to take a plain answer before the connection is cut. */
const takeMs = 60_000;

export class Http1UpgradeCarrier extends Http1Carrier {
  readonly #connection: Connection;
  readonly #early: Uint8Array;
  #isTaken = false;

  /** `early`: what the visitor said behind the head of its request already. */
  constructor(request: IncomingMessage, early: Uint8Array, connection: Connection) {
    const { socket } = connection;
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    super(request, response, connection);
    this.#connection = connection;
    this.#early = early;
    socket.setTimeout(0); // Of the time between requests.
    response.once("finish", () => this.#close());
  }

  override get isComplete(): boolean {
    return this.#isTaken || super.isComplete;
  }

  takeOver(fields: readonly Field[]): Duplex {
    const { socket } = this.#connection;
    this.#isTaken = true;
    this.response.sendDate = false;
    this.response.writeHead(101, fields.flat());
    this.response.flushHeaders();
    if (this.#early.length > 0) socket.unshift(this.#early);
    return socket;
  }

  /** What still arrives is read and thrown away: unread bytes at the close would make the kernel destroy the answer on its way. */
  #close(): void {
    const { socket } = this.#connection;
    socket.end();
    socket.resume();
    const cut = setTimeout(() => socket.destroy(), takeMs);
    socket.once("close", () => clearTimeout(cut));
  }
}
