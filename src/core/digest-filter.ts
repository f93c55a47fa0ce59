// Which digests were added, in two bytes each: it never forgets one, and takes one in some thousands for added that was not. Salted, so that it is another
// one the next time.
//
// A digest is random bits by itself: six places are taken from it, no hashing needed.

import type { Sha256 } from "./ids.ts";

const bitsEach = 16;
const places = 6;
/** 128 KiB. */
const bitsMin = 2 ** 20;
/** 512 MiB: more than 250 million digests are told apart less well. */
const bitsMax = 2 ** 32;

export class DigestFilter {
  readonly #words: Uint32Array;
  readonly #mask: number;
  readonly #salt: number;

  /** `salt`: any 32 bits. */
  constructor(expected: number, salt: number) {
    let bits = bitsMin;
    while (bits < expected * bitsEach && bits < bitsMax) bits *= 2;
    this.#words = new Uint32Array(bits / 32);
    this.#mask = bits - 1;
    this.#salt = salt;
  }

  add(digest: Sha256): void {
    for (let i = 0; i < places; i++) {
      const place = this.#place(digest, i);
      const word = place >>> 5;
      this.#words[word] = (this.#words[word] ?? 0) | (1 << (place & 31));
    }
  }

  has(digest: Sha256): boolean {
    for (let i = 0; i < places; i++) {
      const place = this.#place(digest, i);
      if (((this.#words[place >>> 5] ?? 0) & (1 << (place & 31))) === 0) return false;
    }
    return true;
  }

  /** 32 bits of the digest, mixed with the salt so that another salt gives other neighbours. */
  #place(digest: Sha256, i: number): number {
    const bits = Number.parseInt(digest.slice(8 * i, 8 * i + 8), 16);
    const mixed = Math.imul(bits ^ (this.#salt + i), 0x9e3779b1);
    return ((mixed ^ (mixed >>> 15)) & this.#mask) >>> 0;
  }
}
