// What a visitor of HTTP/2 sends beside requests and their bodies. Node's library reads WINDOW_UPDATE, PRIORITY, empty DATA and frames of unknown types by itself and tells nobody:
// they are seen only as bytes of the connection that no request and no body explains.
//
//   explained     each head, as if it were not compressed; each piece of a body with the most padding that its frame may have; what is on its way of a body
//                 that nobody wants any more; and 64 bytes for each KiB that was sent, where a visitor who grants a KiB at a time, to the stream and to the
//                 connection, needs 26
//   beyond that   a mebibyte, and half a mebibyte a second: 20,000 grants to stream and connection, and 2 ms of the processor. As much as a mebibyte of what was
//                 explained before it came is kept for it: what is on its way, and grants for what was sent
//
// Every error is in the visitor's favour, for one of these frames costs 50 ns: what has to be found is only who sends millions of them.

import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { BudgetRules } from "../../../core/budget.ts";

export const overheadDefault: BudgetRules = { burst: 2 ** 20, perSecond: 2 ** 19 };

const frameHeadBytes = 9;
/** Of a frame: its length, and that many bytes at most (RFC 9113 §6.1). */
const paddingBytesMax = 256;
/** Of a field that is not compressed: what it is, and two lengths (RFC 7541 §6.2). */
const fieldBytes = 7;
/** What a visitor may send of a body before he learns that its stream has ended. */
const windowBytes = 65_535;
/** One byte of every so many that were sent. */
const grantsShare = 16;

export class Http2Overhead {
  readonly #socket: Pick<Socket, "bytesRead" | "bytesWritten">;
  readonly #rules: BudgetRules;
  /** So many bytes may come, up to twice the burst; the time alone gives back no more than the burst. */
  #left: number;
  #atMs: number;
  #explained = 0;
  #read = 0;
  /** What was beside requests and bodies at the last look. */
  #seen = 0;

  constructor(
    socket: Pick<Socket, "bytesRead" | "bytesWritten">,
    rules: BudgetRules,
    nowMs: number,
  ) {
    this.#socket = socket;
    this.#rules = rules;
    this.#left = rules.burst;
    this.#atMs = nowMs;
  }

  /** Takes a stream in the step in which it is told. */
  take(stream: ServerHttp2Stream, raw: readonly string[]): void {
    this.#takeFields(raw);
    if (!stream.endAfterHeaders) this.#takeBody(stream);
  }

  /** To be asked from time to time. True: the visitor sends too much beside requests and bodies. */
  isTooMuch(nowMs: number): boolean {
    const { bytesRead, bytesWritten } = this.#socket;
    if (bytesRead === this.#read) return false;
    this.#read = bytesRead;
    const beside = bytesRead - this.#explained - bytesWritten / grantsShare;
    const { burst, perSecond } = this.#rules;
    const refilled = this.#left + (perSecond * (nowMs - this.#atMs)) / 1_000;
    this.#left = Math.max(this.#left, Math.min(burst, refilled));
    this.#left = Math.min(2 * burst, this.#left - (beside - this.#seen));
    this.#atMs = nowMs;
    this.#seen = beside;
    return this.#left < 0;
  }

  #takeFields(raw: readonly string[]): void {
    let bytes = frameHeadBytes + paddingBytesMax;
    for (const text of raw) bytes += text.length;
    this.#explained += bytes + (raw.length / 2) * fieldBytes;
  }

  /** By its `push`, which Node calls with each piece that comes, whether somebody reads it or not. */
  #takeBody(stream: ServerHttp2Stream): void {
    const push = stream.push.bind(stream);
    let hasEnded = false;
    stream.push = (piece: Uint8Array | null, encoding?: BufferEncoding): boolean => {
      if (piece !== null) this.#explained += piece.length + frameHeadBytes + paddingBytesMax;
      else if (!stream.closed) hasEnded = true;
      return push(piece, encoding);
    };
    stream.once("trailers", (_fields: unknown, _flags: number, raw: string[]) =>
      this.#takeFields(raw),
    );
    stream.once("close", () => {
      if (!hasEnded) this.#explained += windowBytes;
    });
  }
}
