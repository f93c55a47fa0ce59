// A connection of the lane as node:http sees it: given what is not plain, and nothing of what follows. The lane keeps the connection itself, and goes on with its
// next byte when what was lent has been answered.
//
// Where a request ends is said by node's parser alone. It is given the last byte of what has come by itself: if a request is complete with just this byte, then
// nothing stands behind it, and the parser is where it was before the first one. What came in one piece with the next request stays with node:http.

import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Connection, Exchange } from "../doors/exchange.ts";

type Written = (error?: Error | null) => void;
type Piece = { readonly chunk: string | Uint8Array; readonly encoding: BufferEncoding };

const nothing = Buffer.alloc(0);

export type LentSocketOptions = {
  /** It takes bytes again. */
  readonly onResume: () => void;
  /** The last answer is on its way: nothing that still comes is read. */
  readonly onLast: () => void;
};

export class LentSocket extends Duplex {
  readonly connection: Connection;
  readonly #socket: Socket;
  readonly #onLast: () => void;
  #isLast = false;
  /** The connection goes on without it. */
  #isParted = false;
  #isClean = true;
  #hasEnded = false;
  #before: Buffer = nothing;

  constructor(connection: Connection, { onResume, onLast }: LentSocketOptions) {
    super({ decodeStrings: false });
    this.connection = connection;
    this.#socket = connection.socket;
    this.#onLast = onLast;
    this.on("resume", onResume);
    this.on("error", () => {}); // Its close tells enough.
    this.read(0); // From now on what is pushed is read in the same step.
  }

  /** Every request that it was given is complete, and it was given nothing behind them. */
  get isClean(): boolean {
    return this.#isClean;
  }

  /** Whether bytes that are given now are read in the same step. */
  get takes(): boolean {
    return this.readableFlowing === true && this.readableLength === 0 && !this.#hasEnded;
  }

  /** From now on it is given requests. */
  begin(): void {
    this.#isClean = false;
  }

  /**
   * Gives it bytes of a request, which came with those `before`. Whether it is clean behind them can only be
   * told of a single byte.
   */
  give(bytes: Buffer, before: Buffer): void {
    const receivedBefore = this.#received();
    this.#isClean = false;
    this.#before = before;
    this.push(bytes);
    this.#before = nothing;
    const received = this.#received();
    this.#isClean = bytes.length === 1 && received !== undefined && received !== receivedBefore;
  }

  /** What came with the bytes that are read in this step, and was read before them. */
  get before(): Buffer {
    return this.#before;
  }

  /** The visitor sends nothing more. */
  giveEnd(): void {
    this.#isClean = false;
    this.#hasEnded = true;
    this.push(null);
  }

  /** Ends it; the connection stays as it is. */
  part(): void {
    this.#isParted = true;
    this.destroy();
  }

  /** As node's sockets have it. */
  destroySoon(): void {
    this.#isLast = true;
    this.end();
  }

  /** Returns the newest exchange if the whole request has come. */
  #received(): Exchange | undefined {
    const { newest } = this.connection;
    return newest?.isReceived === true ? newest : undefined;
  }

  override _read(): void {}

  override _write(
    chunk: string | Uint8Array,
    encoding: BufferEncoding,
    written: (error?: Error | null) => void,
  ): void {
    this.#writePiece({ chunk, encoding }, this.#onWritten(written));
  }

  override _writev(pieces: Piece[], written: Written): void {
    const last = pieces.length - 1;
    this.#socket.cork();
    for (const [at, piece] of pieces.entries())
      this.#writePiece(piece, at === last ? this.#onWritten(written) : undefined);
    this.#socket.uncork();
  }

  override _final(done: Written): void {
    if (this.#isLast) this.#onLast();
    else this.#socket.end();
    done();
  }

  override _destroy(error: Error | null, done: Written): void {
    if (!this.#isParted) this.#socket.destroy();
    done(error);
  }

  #writePiece({ chunk, encoding }: Piece, written: Written | undefined): void {
    if (typeof chunk === "string") this.#socket.write(chunk, encoding, written);
    else this.#socket.write(chunk, written);
  }

  /** Node tells a write that was under way when its socket was destroyed as one that succeeded. */
  #onWritten(written: Written): Written {
    return (error) => {
      const isCut = this.#socket.destroyed && (error === undefined || error === null);
      written(isCut ? new Error("the visitor left") : error);
    };
  }
}
