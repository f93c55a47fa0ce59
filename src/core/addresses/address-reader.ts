// Reads the text of an IP address into 32-bit words. Every verdict begins with this, so it allocates nothing
// (45 ns for IPv4, 75 to 100 ns for IPv6).
//
// It accepts what parseIp accepts: a dotted quad without leading zeros, or RFC 4291 text; no zone, no port.
// An IPv4-mapped address (::ffff:a.b.c.d) is the IPv4 address.
//
// Most of the time goes into reading characters and guessing how many digits follow, so each character is
// read once, and the digits of a group are read without a loop.

import type { IpFamily } from "./ip.ts";

const dot = 46;
const colon = 58;
const zero = 48;
/** The value that the dot, or the end of the text, has where a digit of an octet is expected. */
const octetEnd = dot - zero;
const quadCharsMax = 15;
/** Six groups of four with their colons, then a dotted quad. */
const textCharsMax = 45;
const groupsMax = 8;
/** The index within a word in memory of its more significant half. */
const halfFlip = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 1 : 0;

const digits = 16;
const kindOf = { colon: 16, dot: 17, other: 18, end: 19 } as const;
/** Maps a character code to the value of its hexadecimal digit, or to what else it stands for. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code === colon) return kindOf.colon;
  if (code === dot) return kindOf.dot;
  const text = String.fromCharCode(code);
  return /[0-9a-f]/i.test(text) ? Number.parseInt(text, 16) : kindOf.other;
});

export class AddressReader {
  /**
   * The address read last: one word (IPv4) or four, the most significant first (IPv6). The next reading
   * overwrites it.
   */
  readonly words = new Uint32Array(4);
  readonly #halves = new Uint16Array(this.words.buffer);
  /** The dotted quad at the end of an IPv6 text. */
  readonly #tail = new Uint32Array(1);

  /** Returns the family, or 0 if the text is no address. */
  read(text: string): IpFamily | 0 {
    const { length } = text;
    if (length < 2 || length > textCharsMax) return 0;
    if (length <= quadCharsMax && readQuad(text, 0, this.words)) return 4;
    return this.#readSix(text);
  }

  #readSix(text: string): IpFamily | 0 {
    const { length } = text;
    let count = 0;
    let gapAt = -1;
    let at = 0;
    if (text.charCodeAt(0) === colon) {
      if (text.charCodeAt(1) !== colon) return 0;
      gapAt = 0;
      at = 2;
    }
    while (at < length) {
      const from = at;
      let group = kindAt(text, at++);
      if (group >= digits || count === groupsMax) return 0;
      let kind = kindAt(text, at++);
      if (kind < digits) {
        group = (group << 4) | kind;
        kind = kindAt(text, at++);
        if (kind < digits) {
          group = (group << 4) | kind;
          kind = kindAt(text, at++);
          if (kind < digits) {
            group = (group << 4) | kind;
            kind = kindAt(text, at++);
          }
        }
      }
      if (kind === kindOf.dot) {
        if (count > groupsMax - 2 || !readQuad(text, from, this.#tail)) return 0;
        const [tail = 0] = this.#tail;
        this.#put(count++, tail >>> 16);
        this.#put(count++, tail & 0xffff);
        break;
      }
      this.#put(count++, group);
      if (kind === kindOf.end) break;
      if (kind !== kindOf.colon || at === length) return 0;
      if (text.charCodeAt(at) !== colon) continue;
      if (gapAt >= 0) return 0;
      gapAt = count;
      at++;
    }
    if (gapAt < 0 ? count < groupsMax : count === groupsMax) return 0;
    if (gapAt >= 0) this.#openGap(gapAt, count);
    return this.#family();
  }

  #put(group: number, value: number): void {
    this.#halves[group ^ halfFlip] = value;
  }

  /** Moves the words behind the `::` to the end and fills the gap with zeros. */
  #openGap(gapAt: number, count: number): void {
    let to = groupsMax - 1;
    for (let from = count - 1; from >= gapAt; from--)
      this.#put(to--, this.#halves[from ^ halfFlip] ?? 0);
    for (; to >= gapAt; to--) this.#put(to, 0);
  }

  #family(): IpFamily {
    const { words } = this;
    if (words[0] !== 0 || words[1] !== 0 || words[2] !== 0xffff) return 6;
    words[0] = words[3] ?? 0;
    return 4;
  }
}

function kindAt(text: string, at: number): number {
  if (at >= text.length) return kindOf.end;
  const code = text.charCodeAt(at);
  return code < 128 ? (kinds[code] ?? 0) : kindOf.other;
}

/**
 * Reads the dotted quad from `at` to the end of the text into the first word. Returns false if there is none;
 * the word may have been overwritten all the same.
 */
function readQuad(text: string, at: number, words: Uint32Array): boolean {
  const { length } = text;
  let value = 0;
  for (let octets = 1; ; octets++) {
    let octet = digitAt(text, at++);
    if (octet < 0 || octet > 9) return false;
    let digit = digitAt(text, at++);
    if (digit >= 0 && digit <= 9) {
      if (octet === 0) return false; // 01: octal or decimal? Ambiguous is refused.
      octet = octet * 10 + digit;
      digit = digitAt(text, at++);
      if (digit >= 0 && digit <= 9) {
        octet = octet * 10 + digit;
        if (octet > 255) return false;
        digit = digitAt(text, at++);
      }
    }
    if (digit !== octetEnd) return false;
    value = (value << 8) | octet;
    if (octets < 4) continue;
    // The end of the text was read as one more character, so `at` is one past it.
    words[0] = value;
    return at === length + 1;
  }
}

function digitAt(text: string, at: number): number {
  return at < text.length ? text.charCodeAt(at) - zero : octetEnd;
}
