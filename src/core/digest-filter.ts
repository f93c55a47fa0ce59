// Remembers which digests were added, in two bytes each (a Bloom filter). It never forgets one, and takes at
// most about one in a thousand for added that was not. It is salted, so that another filter errs about other
// digests.
//
// A digest is random bits already: six places are taken from it without further hashing.

import type { Sha256 } from "./ids.ts";

const bitsEach = 16;
const places = 6;
/** The size of the smallest filter, 128 KiB. */
const bitsMin = 2 ** 20;
/** The size of the largest filter, 512 MiB; it errs more often with more than 250 million digests. */
const bitsMax = 2 ** 32;

export class DigestFilter {
  readonly #words: Uint32Array;
  readonly #mask: number;
  readonly #salt: number;

  /** `salt` is any 32 bits. */
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

  /**
   * Takes 32 bits of the digest and mixes them with the salt, so that other digests share a place under
   * another salt.
   */
  #place(digest: Sha256, i: number): number {
    const bits = Number.parseInt(digest.slice(8 * i, 8 * i + 8), 16);
    const mixed = Math.imul(bits ^ (this.#salt + i), 0x9e3779b1);
    return ((mixed ^ (mixed >>> 15)) & this.#mask) >>> 0;
  }
}
