// One request and its answer as the protocol of their connection carries them: what HTTP/1.1 and HTTP/2 do differently, behind one face.
//
// `request` and `response` are what node:http gives, as far as the pipeline knows them; http2-carrier.ts gives the same for a stream.

import type { Duplex, Readable } from "node:stream";
import type { StopSignal } from "../../../base/stop.ts";
import type { Field } from "../../../core/http/http-fields.ts";

export interface VisitorRequest {
  readonly method?: string | undefined;
  /** The target as sent; "" where it is none. */
  readonly url?: string | undefined;
  /**
   * The version as the parser of HTTP/1 says it, or "2"; a request that claims 2.0 to that parser is not
   * HTTP/2.
   */
  readonly httpVersion: string;
}

export interface VisitorResponse {
  /** Chunks may be written over once they are taken. False or undefined: they have to stay as they are. */
  readonly copies?: boolean;
  readonly headersSent: boolean;
  readonly statusCode: number;
  /** Names and values in turn; a name may come several times. Throws only for fields that HTTP cannot carry. */
  writeHead(status: number, fields: string[]): unknown;
  /** Sends the head without waiting for the first byte of the body. */
  flushHeaders(): void;
  /** False: wait for the carrier's `drained`. */
  write(chunk: Uint8Array): boolean;
  end(chunk?: Uint8Array): unknown;
  /** 100. */
  writeContinue(): void;
}

/** The bytes of a body that have come or are announced, where they are announced bit by bit. */
export type PromisedBytes = {
  /** Tells now and at each further promise; undefined ends it. */
  follow(told: ((bytes: number) => void) | undefined): void;
};

/** Who has taken a connection over. */
export type Taker = {
  /** Closes the connection, with a word to the visitor where that is possible. */
  readonly part: () => void;
  /** The bytes written to the visitor so far. */
  readonly bytesSent: () => number;
};

export interface Carrier {
  readonly request: VisitorRequest;
  readonly response: VisitorResponse;
  readonly fields: readonly Field[];
  readonly hasBody: boolean;
  /** The body of the request, where its kind can have one. Whoever reads it must not destroy it: the answer still has to go out. */
  readonly body?: Readable | undefined;
  /** What is promised of the body beyond what has come. */
  readonly promised?: PromisedBytes | undefined;
  /** Nobody can be answered any more. */
  readonly isGone: boolean;
  /** The whole answer was handed to the system. */
  readonly isComplete: boolean;
  /** All that was written so far was handed to the system: its memory may be written over. */
  readonly hasLeft: boolean;
  /** The whole request has come. */
  readonly isReceived: boolean;
  /** Asked once, when the answer has ended, however it has. */
  bytesSent(): number;
  /** Calls back when the answer has ended, or never will. */
  onClose(closed: () => void): void;
  /** The visitor is, or will be, told to ask the next time on another connection: nothing that follows on this one is answered. */
  readonly isLast: boolean;
  /** The visitor is told to ask the next time on another connection. */
  endConnection(): void;
  /** The visitor has to see that the answer is broken. */
  cut(): void;
  /**
   * Writes the head of an answer that switches protocols, and gives the connection away: from now on the answer ends with it. Undefined where the protocol
   * cannot be switched on this connection.
   */
  takeOver?(fields: readonly Field[], taker: Taker): Duplex;
  /** Writes an interim answer (1xx) before the head; nothing if it is not this answer's turn yet. Throws only for fields that the protocol cannot carry. */
  writeInterim(status: number, fields: readonly Field[]): void;
  /** Resolves when more may be written. Who takes nothing for `stallMs` is cut off. Throws when `stop` aborts. */
  drained(stallMs: number, stop: StopSignal): Promise<void>;
}
