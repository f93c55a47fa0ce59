// Whole numbers and texts as compact bytes: a number in groups of seven bits, the lowest first (LEB128), a text as its
// length in bytes and UTF-8. What does not read as it was written is refused.

/** Says that bytes are not what a writer made. */
export class PackedFault extends Error {}

/** The longest text that is read, in bytes: a path of 8 KiB with a status before it. */
const textBytesMax = 32 * 2 ** 10;

const shortTextBytes = 32;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class PackedWriter {
  #bytes = new Uint8Array(1_024);
  #used = 0;

  /** Writes a whole number from 0 to `Number.MAX_SAFE_INTEGER`. */
  number(value: number): void {
    this.#reserve(8);
    let left = value;
    while (left >= 128) {
      this.#bytes[this.#used++] = (left % 128) + 128;
      left = Math.floor(left / 128);
    }
    this.#bytes[this.#used++] = left;
  }

  text(value: string): void {
    const encoded = encoder.encode(value);
    this.number(encoded.byteLength);
    this.#reserve(encoded.byteLength);
    this.#bytes.set(encoded, this.#used);
    this.#used += encoded.byteLength;
  }

  /** Returns a copy of what was written. */
  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#used);
  }

  #reserve(count: number): void {
    if (this.#used + count <= this.#bytes.byteLength) return;
    const larger = new Uint8Array(2 * (this.#used + count));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

/** Reads what a `PackedWriter` wrote. Each method throws PackedFault for bytes that none wrote. */
export class PackedReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  number(max = Number.MAX_SAFE_INTEGER): number {
    let value = 0;
    // Most numbers have one byte.
    const only = this.#bytes[this.#at] ?? 128;
    if (only < 128 && only <= max) {
      this.#at++;
      return only;
    }
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined || factor > 2 ** 49) throw new PackedFault("a number is torn");
      value += (byte % 128) * factor;
      if (byte < 128) break;
    }
    if (value > max) throw new PackedFault(`a number is over ${max}`);
    return value;
  }

  text(): string {
    const length = this.skipText();
    const to = this.#at;
    const from = to - length;
    // Most texts are short and ASCII, for which a decoder, or a view of their bytes, costs several times as much.
    if (length <= shortTextBytes) {
      let text = "";
      for (let at = from; at < to; at++) {
        const byte = this.#bytes[at] ?? 128;
        text += byte < 128 ? String.fromCharCode(byte) : "";
      }
      if (text.length === length) return text;
    }
    try {
      return decoder.decode(this.#bytes.subarray(from, to));
    } catch {
      throw new PackedFault("a text is no UTF-8");
    }
  }

  /** Leaves a text out, and returns how many bytes it has. */
  skipText(): number {
    const length = this.number(textBytesMax);
    if (this.#at + length > this.#bytes.byteLength) throw new PackedFault("a text is torn");
    this.#at += length;
    return length;
  }

  /** Throws unless everything was read. */
  end(): void {
    if (this.#at !== this.#bytes.byteLength) throw new PackedFault("bytes are left over");
  }
}
