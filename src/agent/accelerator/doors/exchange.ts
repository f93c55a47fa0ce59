// One visitor's TCP connection with its number and its peer, and the exchanges on it. An exchange is one request and its answer: what is known of it
// for its record, who may still abort it, and how it ends. Facts are filled in as it goes through the pipeline; `onEnd` is called exactly once.

import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import type { Field } from "../../../core/http/http-fields.ts";
import type { ClientAddress } from "../../../core/http/client-address.ts";
import { Roster } from "../../../core/roster.ts";
import type { LimitVerdict } from "../../../core/limits/limit-verdict.ts";
import type { RequestHead } from "../../../core/serving/request-check.ts";
import type { Verdict } from "../../../core/serving/verdict.ts";
import type { RequestRecord } from "../../../wire/request-log.ts";
import { Stop, type StopSignal } from "../../../base/stop.ts";
import type { WorkerClock } from "../clock.ts";
import type { Carrier, PromisedBytes, Taker, VisitorRequest, VisitorResponse } from "./carrier.ts";
import type { Pacer } from "./pacer.ts";
import type { RequestWatch } from "./request-watch.ts";

export type Arrival = {
  readonly socket: Socket;
  /** Who connected, or whom a PROXY header names. Taken at once: a closed socket has forgotten it. */
  readonly peer: ClientAddress | undefined;
  /** The port that the visitor connected to. */
  readonly port: number | undefined;
  /** The bytes of the PROXY header, which comes before the first byte of a request. */
  readonly headerBytes: number;
};

export class Connection {
  readonly no: number;
  readonly socket: Socket;
  readonly peer: ClientAddress | undefined;
  readonly port: number | undefined;
  /** The exchanges in order of arrival: HTTP/1.1 may be pipelined, and answers go out in the same order. */
  readonly live = new Roster<Exchange>();
  /** The exchange that began last, ended or not. */
  newest: Exchange | undefined;
  /** Where node:http serves it. */
  watch: RequestWatch | undefined;
  /** A request was read that waits for its turn. */
  waitsForTurn = false;
  #hasParted = false;
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

  /** No request of it is known that would be answered. */
  get isIdle(): boolean {
    return this.live.size === 0 && !this.waitsForTurn;
  }

  /** It was ended while nothing was asked. */
  get hasParted(): boolean {
    return this.#hasParted;
  }

  /** Ends it while nothing is asked. A request that crosses that is not read any more: nobody could be answered, and its visitor may ask again elsewhere (RFC 9112 §9.6). */
  part(): void {
    this.#hasParted = true;
    this.socket.end();
  }

  /** Leaves bytes that were just written out of the next count. */
  tellBytesSent(bytes: number): void {
    this.#bytesTold += bytes;
  }

  /** Bytes written since the last call, heads included. */
  takeBytesSent(): number {
    const { bytesWritten } = this.socket;
    const sent = bytesWritten - this.#bytesTold;
    this.#bytesTold = bytesWritten;
    return sent;
  }
}

/** The visitor left before the answer was complete, or the grace of a drain was over; after nginx's 499. */
export const visitorGone = 499;

/** The most interim answers of a request: a visitor who takes nothing would have them pile up. */
const interimMax = 16;

export class Exchange implements RequestHead {
  readonly request: VisitorRequest;
  readonly response: VisitorResponse;
  readonly connection: Connection;
  readonly fields: readonly Field[];
  /** The visitor asked to be told before sending the body (Expect: 100-continue). */
  readonly awaitsContinue: boolean;
  readonly startedWallMs: number;
  readonly startedMs: number;
  client: ClientAddress | undefined;
  authority = "";
  domain: string | null = null;
  cache: RequestRecord["cache"] = "none";
  verdict: Verdict | undefined;
  /** The rule of `limits.requests` that was against it, be it in monitor mode. */
  limit: LimitVerdict | undefined;
  originMs = 0;
  bytesSent = 0;
  /** Room was kept for its record. */
  hasRecordRoom = false;
  /** The seconds for which the site wants to be asked by https only; 0 says nothing of it. */
  hstsS = 0;
  /** Sends the body of the answer, where a rule of `limits.bytes` says how fast. */
  pacer: Pacer | undefined;
  /** Who has taken its connection over. */
  taker: Taker | undefined;
  readonly #carrier: Carrier;
  readonly #stop = new Stop();
  readonly #onEnd: (exchange: Exchange, status: number) => void;
  #interim = 0;
  #ended = false;
  #cut = false;

  constructor(
    carrier: Carrier,
    connection: Connection,
    options: {
      readonly clock: WorkerClock;
      readonly awaitsContinue: boolean;
      readonly onEnd: (exchange: Exchange, status: number) => void;
    },
  ) {
    this.#carrier = carrier;
    this.request = carrier.request;
    this.response = carrier.response;
    this.connection = connection;
    this.fields = carrier.fields;
    this.awaitsContinue = options.awaitsContinue;
    this.startedWallMs = options.clock.wallMs();
    this.startedMs = options.clock.steadyMs();
    this.#onEnd = options.onEnd;
    carrier.onClose(() => this.end());
  }

  /** Aborts when the visitor has left or the request has turned out broken; not by a complete answer. */
  get stop(): StopSignal {
    return this.#stop;
  }

  get method(): string {
    return this.request.method ?? "";
  }

  /** The target as sent; "" where it is none. */
  get url(): string {
    return this.request.url ?? "";
  }

  get httpVersion(): string {
    return this.request.httpVersion;
  }

  get hasBody(): boolean {
    return this.#carrier.hasBody;
  }

  /** See Carrier. */
  get body(): Readable | undefined {
    return this.#carrier.body;
  }

  /** See Carrier. */
  get promised(): PromisedBytes | undefined {
    return this.#carrier.promised;
  }

  /** Nobody can be answered any more. */
  get isGone(): boolean {
    return this.#carrier.isGone;
  }

  /** All that was written so far was handed to the system: its memory may be written over. */
  get hasLeft(): boolean {
    return this.#carrier.hasLeft;
  }

  /** The whole request has come. */
  get isReceived(): boolean {
    return this.#carrier.isReceived;
  }

  /** Calls back when the answer has ended, or never will. */
  onClose(closed: () => void): void {
    this.#carrier.onClose(closed);
  }

  /** Nothing that follows it on its connection is answered. */
  get isLast(): boolean {
    return this.#carrier.isLast;
  }

  /** The visitor is told to ask the next time on another connection. */
  endConnection(): void {
    this.#carrier.endConnection();
  }

  /** The visitor has to see that the answer is broken. */
  cut(): void {
    this.#cut = true;
    this.#carrier.cut();
  }

  /** Resolves when more of the body may be written. Who takes nothing for `stallMs` is cut off. Throws when the visitor left. */
  async drained(stallMs: number): Promise<void> {
    await this.#carrier.drained(stallMs, this.stop);
  }

  /** Passes an interim answer of the origin on, unless the answer has begun. HTTP/1.0 knows none (RFC 9110 §15.2). */
  inform(status: number, fields: readonly Field[]): void {
    const knowsInterim = this.httpVersion !== "1.0" && !this.response.headersSent;
    if (!knowsInterim || this.isGone || ++this.#interim > interimMax) return;
    this.#carrier.writeInterim(status, fields);
  }

  /** Whether the connection can be given away, for another protocol. */
  get canSwitch(): boolean {
    return this.#carrier.takeOver !== undefined;
  }

  /**
   * Writes the head of an answer that switches protocols, and returns the connection to the visitor. Its end is
   * the exchange's. When a drain waits no longer, the taker is told to part, and has to see that it closes.
   */
  takeOver(fields: readonly Field[], taker: Taker): Duplex {
    const duplex = this.#carrier.takeOver?.(fields, taker);
    if (duplex === undefined) throw new TypeError("the connection cannot be given away");
    this.taker = taker;
    return duplex;
  }

  /** Ends what waits for the rest of this request. The answer can still be given. */
  abandon(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** Ends the exchange. Also called when the connection closed under an answer that had not begun. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const complete = this.#carrier.isComplete;
    this.bytesSent = this.#carrier.bytesSent();
    if (!complete) this.#stop.abort(new Error("the visitor left"));
    this.#onEnd(this, complete || this.#cut ? this.response.statusCode : visitorGone);
  }
}
