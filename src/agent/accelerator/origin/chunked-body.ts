// A body in chunks (RFC 9112 §7.1), read as it comes. Extensions and trailers are read, bounded, and go no further.

import type { Field } from "../../../core/http/http-fields.ts";
import { readField } from "./response-head.ts";

/** The bytes of the lines of all chunks beyond their sizes, and those of the trailers. */
const extensionBytesMax = 16_384;
const trailerBytesMax = 16_384;
/** Sixteen digits are more than any body has. */
const sizeDigitsMax = 16;
const lineFeed = 10;
const carriageReturn = 13;
const controls = /[^\t\x20-\x7e\x80-\xff]/;
const sizeLine =
  /^([0-9A-Fa-f]{1,16})((?:;[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[\t \x21\x23-\x5b\x5d-\x7e]|\\[\t \x21-\x7e])*"))?)*)$/;

/** The bytes are no body in chunks. */
export class ChunksMalformed extends Error {}

type State = "size" | "data" | "data-end" | "trailers" | "over";

export class ChunkedBody {
  #state: State = "size";
  /** Of the chunk that is being read. */
  #left = 0;
  /** The beginning of a line whose end has not come. */
  #line = "";
  #extensionBytes = 0;
  #trailerBytes = 0;

  /**
   * Reads on from `at`, and gives out what is data. Returns the place behind the end of the body; undefined while it has not come. Throws
   * ChunksMalformed.
   */
  read(bytes: Buffer, at: number, onData: (data: Buffer) => void): number | undefined {
    let from = at;
    while (from < bytes.length) {
      if (this.#state === "data") {
        const data = bytes.subarray(from, from + this.#left);
        this.#left -= data.length;
        from += data.length;
        onData(data);
        if (this.#left === 0) this.#state = "data-end";
        continue;
      }
      const end = bytes.indexOf(lineFeed, from);
      this.#line += bytes.toString("latin1", from, end < 0 ? bytes.length : end);
      if (end < 0) {
        this.#checkBegun();
        return undefined;
      }
      from = end + 1;
      const line = this.#line;
      this.#line = "";
      if (line.charCodeAt(line.length - 1) !== carriageReturn) throw broken("a line has no CR");
      this.#take(line.slice(0, -1));
      if (this.#state === "over") return from;
    }
    return undefined;
  }

  #take(line: string): void {
    if (controls.test(line)) throw broken("a line of a chunk has a control character");
    switch (this.#state) {
      case "size":
        this.#beginChunk(line);
        return;
      case "data-end":
        if (line !== "") throw broken("a chunk is longer than its size");
        this.#state = "size";
        return;
      default:
        if (line === "") {
          this.#state = "over";
          return;
        }
        this.#trailerBytes += line.length;
        if (this.#trailerBytes > trailerBytesMax) throw broken("its trailers are too large");
        if (!isTrailer(readField(line))) throw broken("a trailer is malformed");
    }
  }

  #beginChunk(line: string): void {
    const [, digits = "", extensions = ""] = sizeLine.exec(line) ?? [];
    const size = Number.parseInt(digits, 16);
    if (!Number.isSafeInteger(size)) throw broken("the size of a chunk is malformed");
    this.#extensionBytes += extensions.length;
    if (this.#extensionBytes > extensionBytesMax)
      throw broken("its chunk extensions are too large");
    this.#left = size;
    this.#state = size === 0 ? "trailers" : "data";
  }

  /** A line without end is none at its limit. */
  #checkBegun(): void {
    const { length } = this.#line;
    const isTooLong =
      this.#state === "size"
        ? length > sizeDigitsMax + extensionBytesMax
        : length > (this.#state === "data-end" ? 1 : trailerBytesMax);
    if (isTooLong) throw broken("a line of a chunk is too long");
  }
}

/** What says where a body ends comes before it (RFC 9110 §6.5.1). */
function isTrailer(field: Field | undefined): boolean {
  return field !== undefined && !/^(?:content-length|transfer-encoding)$/i.test(field[0]);
}

function broken(reason: string): ChunksMalformed {
  return new ChunksMalformed(reason);
}
