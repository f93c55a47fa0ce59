// HTTP/2: a stream that asks for a WebSocket (extended CONNECT, RFC 8441), in the terms of an upgrade of HTTP/1.1.

import type { ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { withoutFields, type Field } from "../../../core/http/http-fields.ts";
import type { Taker } from "./carrier.ts";
import { Http2Carrier } from "./http2-carrier.ts";

/** The proof that HTTP/1.1 asks for (RFC 8441 §5). */
const proof: ReadonlySet<string> = new Set(["sec-websocket-accept"]);

export class Http2ConnectCarrier extends Http2Carrier {
  readonly #stream: ServerHttp2Stream;
  #taker: Taker | undefined;

  /** `raw` is from webSocketHead. */
  constructor(stream: ServerHttp2Stream, raw: readonly string[]) {
    super(stream, raw, false);
    this.#stream = stream;
    stream.once("finish", () => {
      if (this.#taker === undefined && !stream.readableEnded) this.linger();
    });
  }

  override get isComplete(): boolean {
    return this.#taker !== undefined || super.isComplete;
  }

  override bytesSent(): number {
    return super.bytesSent() + (this.#taker?.bytesSent() ?? 0);
  }

  /** A plain answer has ended while the visitor's side of the stream is open. */
  override onClose(closed: () => void): void {
    const once = (): void => {
      this.#stream.off("finish", finished).off("close", once);
      closed();
    };
    const finished = (): void => {
      if (this.#taker === undefined) once();
    };
    this.#stream.once("finish", finished).once("close", once);
  }

  /** The visitor gets a 200; the record has the 101 that it stands for. */
  takeOver(fields: readonly Field[], taker: Taker): Duplex {
    this.#taker = taker;
    this.response.writeHead(200, withoutFields(fields, proof).flat());
    this.response.statusCode = 101;
    return this.#stream;
  }
}
