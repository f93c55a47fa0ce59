// The text of an IP address as 32-bit words: what every verdict begins with, so it allocates nothing (60 ns IPv4, 110 ns IPv6).
//
// Accepted is what parseIp accepts: dotted quad without leading zeros, RFC 4291 text, no zone, no port; an IPv4-mapped address (::ffff:a.b.c.d) is
// the IPv4 address.

import type { IpFamily } from "./ip.ts";

const dot = 46;
const colon = 58;
/** Six groups of four with their colons, then a dotted quad. */
const textCharsMax = 45;
const groupsMax = 8;
/** Which half of a word in memory is the more significant one. */
const halfFlip = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 1 : 0;
/** By character code: the value of a hexadecimal digit, -1 for anything else. */
const hexValues = Int8Array.from({ length: 128 }, (_, code) =>
  /[0-9a-f]/i.test(String.fromCharCode(code)) ? Number.parseInt(String.fromCharCode(code), 16) : -1,
);

export class AddressReader {
  /** Of the address read last: one word (IPv4) or four, most significant first (IPv6). Overwritten by the next. */
  readonly words = new Uint32Array(4);
  readonly #halves = new Uint16Array(this.words.buffer);

  /** The family, 0 where the text is no address. */
  read(text: string): IpFamily | 0 {
    if (text.length > textCharsMax) return 0;
    // A colon stands within the first five characters of every IPv6 text and in no IPv4 text.
    for (let at = 0; at < 5; at++) if (text.charCodeAt(at) === colon) return this.#readSix(text);
    const quad = readQuad(text, 0);
    if (quad < 0) return 0;
    this.words[0] = quad;
    return 4;
  }

  #readSix(text: string): IpFamily | 0 {
    const { length } = text;
    let count = 0;
    let group = 0;
    let digits = 0;
    let gapAt = -1;
    let at = 0;
    if (text.charCodeAt(0) === colon) {
      if (text.charCodeAt(1) !== colon) return 0;
      gapAt = 0;
      at = 2;
    }
    for (; at < length; at++) {
      const code = text.charCodeAt(at);
      const digit = code < 128 ? (hexValues[code] ?? -1) : -1;
      if (digit >= 0) {
        if (++digits > 4) return 0;
        group = group * 16 + digit;
      } else if (code === colon) {
        if (digits === 0 || at + 1 === length || count === groupsMax) return 0;
        this.#put(count++, group);
        group = 0;
        digits = 0;
        if (text.charCodeAt(at + 1) !== colon) continue;
        if (gapAt >= 0) return 0;
        gapAt = count;
        at++;
      } else {
        const quad = code === dot && count <= 6 ? readQuad(text, at - digits) : -1;
        if (quad < 0) return 0;
        this.#put(count++, quad >>> 16);
        group = quad & 0xffff;
        digits = 1; // The last group, put below.
        break;
      }
    }
    if (digits > 0) {
      if (count === groupsMax) return 0;
      this.#put(count++, group);
    }
    if (gapAt < 0 ? count < groupsMax : count === groupsMax) return 0;
    if (gapAt >= 0) this.#openGap(gapAt, count);
    return this.#family();
  }

  #put(group: number, value: number): void {
    this.#halves[group ^ halfFlip] = value;
  }

  /** What stands behind the `::` moves to the end; the gap is filled with zeros. */
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

/** The dotted quad from `at` to the end of the text; -1 where there is none. */
function readQuad(text: string, at: number): number {
  let value = 0;
  let octet = 0;
  let digits = 0;
  let dots = 0;
  for (let i = at; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === dot) {
      if (digits === 0 || ++dots > 3) return -1;
      value = value * 256 + octet;
      octet = 0;
      digits = 0;
      continue;
    }
    const digit = code - 48;
    if (digit < 0 || digit > 9 || (digits > 0 && octet === 0)) return -1; // 01: octal or decimal? Ambiguous is refused.
    octet = octet * 10 + digit;
    if (++digits > 3 || octet > 255) return -1;
  }
  return dots === 3 && digits > 0 ? value * 256 + octet : -1;
}
