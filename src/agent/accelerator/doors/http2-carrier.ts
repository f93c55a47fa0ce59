// HTTP/2: a request and its answer as one stream, in the terms of HTTP/1.1.
//
// The head is handed to the session within `writeHead`: whatever is decided in the same step (whether an entry may be served) holds for it. Once it is out, an
// answer breaks by a reset of its stream, and other streams of the connection go on.

import { once } from "node:events";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";
import { signalOf, type StopSignal } from "../../../base/stop.ts";
import type { Field } from "../../../core/http/http-fields.ts";
import { readHttp2Request } from "../../../core/http/http2-request.ts";
import { connectionFields, headAlone, Http2Head } from "./http2-head.ts";
import type { Carrier, VisitorRequest, VisitorResponse } from "./carrier.ts";

/** The same time as with HTTP/1.1; see http1-carrier.ts. */
const lingerMs = 2_000;
/** How long the body of a request may take; 100 MiB at 350 KiB/s, as with HTTP/1.1. */
const requestMs = 300_000;

export class Http2Carrier implements Carrier {
  readonly request: VisitorRequest;
  readonly response: Http2Response;
  readonly fields: readonly Field[];
  readonly hasBody: boolean;
  readonly #stream: ServerHttp2Stream;

  /** `raw` is the header as it came, in Node's flat form. */
  constructor(
    stream: ServerHttp2Stream,
    raw: readonly string[],
    hasBody = !stream.endAfterHeaders,
  ) {
    const { method, target, fields } = readHttp2Request(raw);
    this.#stream = stream;
    this.fields = fields;
    this.hasBody = hasBody;
    this.request = {
      method,
      url: target,
      httpVersion: "2",
    };
    this.response = new Http2Response(stream, method === "HEAD");
    stream.on("error", () => {}); // Its close tells enough.
    stream.on("timeout", () => this.cut());
    if (this.hasBody) this.#expectBody();
  }

  get body(): Readable {
    return this.#stream;
  }

  get isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  /** The session keeps what was written until the visitor has room for it, and does not tell when it has gone. */
  readonly hasLeft = false;

  get isComplete(): boolean {
    if (this.#stream.rstCode !== constants.NGHTTP2_NO_ERROR) return false;
    return this.response.isHandedOver || this.#haveBothEnded;
  }

  /**
   * Node ends a stream whose request was read to its end as soon as both sides have ended, and does not tell any more that the last bytes of the answer were taken.
   * A visitor who takes his request back, a connection that breaks and one that is cut leave a code.
   */
  get #haveBothEnded(): boolean {
    const { closed, readableEnded, writableEnded, aborted } = this.#stream;
    return this.response.headersSent && closed && readableEnded && writableEnded && !aborted;
  }

  get isReceived(): boolean {
    return !this.hasBody || this.#stream.readableEnded;
  }

  bytesSent(): number {
    const { headBytes, bodyBytes } = this.response;
    const waiting = this.isComplete ? 0 : this.#stream.writableLength;
    return headBytes + Math.max(0, bodyBytes - waiting);
  }

  onClose(closed: () => void): void {
    const once = (): void => {
      this.#stream.off("finish", once).off("close", once);
      closed();
    };
    this.#stream.once("close", once);
    // A stream whose body still comes stays open when its answer has ended.
    if (this.hasBody) this.#stream.once("finish", once);
  }

  /** Streams beside it go on. */
  readonly isLast = false;

  endConnection(): void {
    this.#stream.session?.close();
  }

  writeInterim(status: number, fields: readonly Field[]): void {
    const head: Record<string, string | string[]> = { ":status": String(status) };
    const named = Map.groupBy(fields, ([name]) => name.toLowerCase());
    for (const [name, lines] of named)
      if (!connectionFields.has(name)) head[name] = lines.map(([, value]) => value);
    this.#stream.additionalHeaders(head);
  }

  /** Cuts the stream off. Closing it would send what is there, marked as a regular end. */
  cut(): void {
    this.#stream.destroy(new Error("the answer broke"));
  }

  async drained(stallMs: number, stop: StopSignal): Promise<void> {
    this.#stream.setTimeout(stallMs);
    await once(this.#stream, "drain", { signal: signalOf(stop) });
    this.#stream.setTimeout(0);
  }

  #expectBody(): void {
    const stream = this.#stream;
    const late = setTimeout(() => this.cut(), requestMs);
    const over = (): void => clearTimeout(late);
    stream.once("end", over);
    stream.once("close", over);
    stream.once("finish", () => {
      if (!stream.readableEnded) this.linger();
    });
  }

  /**
   * The answer did not wait for the whole request: after a while the visitor is told to keep the rest (RFC 9113 §8.1). Not at once: a reset overtakes an
   * answer that is not on its way yet.
   */
  protected linger(): void {
    const stream = this.#stream;
    stream.resume();
    const cut = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), lingerMs);
    stream.once("close", () => clearTimeout(cut));
  }
}

/** The time after the whole answer was handed over in which a visitor who takes nothing of it is cut off. */
export const takeMs = 60_000;

class Http2Response implements VisitorResponse {
  headersSent = false;
  statusCode = 200;
  headBytes = 0;
  bodyBytes = 0;
  readonly #stream: ServerHttp2Stream;
  readonly #isHead: boolean;
  #hasBody = true;

  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    this.#stream = stream;
    this.#isHead = isHead;
  }

  get isHandedOver(): boolean {
    return this.headersSent && this.#stream.writableFinished;
  }

  writeHead(status: number, fields: string[]): void {
    const head = new Http2Head(status, fields);
    this.#hasBody = !this.#isHead && status !== 204 && status !== 205 && status !== 304;
    this.statusCode = status;
    // As with HTTP/1.1: who has left is told nothing, and nobody is surprised.
    if (!this.#isGone) {
      this.#stream.respond(head.list, this.#hasBody ? undefined : headAlone);
      this.headBytes = head.bytes;
    }
    this.headersSent = true;
  }

  /** It is on its way already. */
  flushHeaders(): void {}

  write(chunk: Uint8Array): boolean {
    if (!this.#hasBody || this.#isGone) return true;
    this.bodyBytes += chunk.length;
    return this.#stream.write(chunk);
  }

  end(chunk?: Uint8Array): void {
    if (!this.#hasBody || this.#isGone) return;
    if (chunk !== undefined) this.bodyBytes += chunk.length;
    this.#stream.setTimeout(takeMs);
    this.#stream.end(chunk);
  }

  writeContinue(): void {
    if (!this.#isGone) this.#stream.additionalHeaders({ ":status": 100 });
  }

  get #isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }
}
