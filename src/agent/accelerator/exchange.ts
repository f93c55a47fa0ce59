// One request and its answer: what is known of it for its record, who may still abort it, and how it ends. Facts are filled in as it goes
// through the pipeline; `onEnd` is called exactly once.

import type { IncomingMessage, ServerResponse } from "node:http";
import { fieldsOfRaw, type Field } from "../../core/http-fields.ts";
import type { ClientAddress } from "../../core/client-address.ts";
import type { Verdict } from "../../core/verdict.ts";
import type { RequestRecord } from "../../wire/request-log.ts";
import type { Connection } from "./connection.ts";
import type { Clock } from "./ports.ts";

/** The visitor left before the answer was complete; after nginx's 499. */
const visitorGone = 499;

/** After an answer that did not wait for the whole request, the rest of it is taken in for this long before the connection is cut: cutting at once could destroy the answer on its way. */
const lingerMs = 2_000;

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
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
  originMs = 0;
  bytesSent = 0;
  /** Room was kept for its record. */
  hasRecordRoom = false;
  readonly #stop = new AbortController();
  readonly #onEnd: (exchange: Exchange, status: number) => void;
  #ended = false;
  #cut = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    options: {
      readonly clock: Clock;
      readonly awaitsContinue: boolean;
      readonly onEnd: (exchange: Exchange, status: number) => void;
    },
  ) {
    this.request = request;
    this.response = response;
    this.connection = connection;
    this.fields = fieldsOfRaw(request.rawHeaders);
    this.awaitsContinue = options.awaitsContinue;
    this.startedWallMs = options.clock.wallMs();
    this.startedMs = options.clock.steadyMs();
    this.#onEnd = options.onEnd;
    // A socket that goes away while something is written is no error of ours: both are told by their close.
    request.on("error", () => {});
    response.on("error", () => {});
    response.once("close", () => this.end());
    // Before Node's own listener, which writes the answer of the next pipelined request.
    response.prependOnceListener("finish", () => {
      this.bytesSent = connection.takeBytesSent();
      this.#linger();
    });
  }

  /** Aborts when the visitor has left or the request has turned out broken; not by a complete answer. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  get method(): string {
    return this.request.method ?? "";
  }

  get hasBody(): boolean {
    const { headers } = this.request;
    return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  }

  /** The visitor has to see that the answer is broken: HTTP has no other way once the head is out. */
  cut(): void {
    this.#cut = true;
    this.connection.socket.destroy();
  }

  /** Ends what waits for the rest of this request. The answer can still be given. */
  abandon(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** Also called when the socket closed under an answer that had not begun. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const complete = this.response.writableFinished;
    if (!complete) {
      this.bytesSent = this.connection.takeBytesSent();
      this.#stop.abort(new Error("the visitor left"));
    }
    this.#onEnd(this, complete || this.#cut ? this.response.statusCode : visitorGone);
  }

  #linger(): void {
    const { request, connection } = this;
    if (request.complete || connection.socket.destroyed) return;
    request.resume();
    const cut = setTimeout(() => connection.socket.destroy(), lingerMs);
    const over = (): void => clearTimeout(cut);
    request.once("end", over);
    connection.socket.once("close", over);
  }
}
