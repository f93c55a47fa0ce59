// HalfSipHash-2-4 with 64 bits of output (Aumasson and Bernstein), over whole words: a hash of which nobody who lacks
// the key can find inputs that meet. The 32-bit relative of SipHash is taken because numbers here have 32 bits.

/** Hashes words under one key. It allocates nothing. */
export class KeyedHash {
  /** The hash that was made last, its first word first. */
  readonly words = new Int32Array(2);
  #v0 = 0;
  #v1 = 0;
  #v2 = 0;
  #v3 = 0;

  /** Hashes one word or two. */
  of(key: Int32Array, first: number, second?: number): void {
    const [k0 = 0, k1 = 0] = key;
    this.#v0 = k0;
    this.#v1 = k1 ^ 0xee;
    this.#v2 = k0 ^ 0x6c796765;
    this.#v3 = k1 ^ 0x74656462;
    this.#take(first);
    if (second !== undefined) this.#take(second);
    this.#take((second === undefined ? 4 : 8) << 24);
    this.#v2 ^= 0xee;
    this.#mix(4);
    this.words[0] = this.#v1 ^ this.#v3;
    this.#v1 ^= 0xdd;
    this.#mix(4);
    this.words[1] = this.#v1 ^ this.#v3;
  }

  #take(word: number): void {
    this.#v3 ^= word;
    this.#mix(2);
    this.#v0 ^= word;
  }

  #mix(rounds: number): void {
    let v0 = this.#v0;
    let v1 = this.#v1;
    let v2 = this.#v2;
    let v3 = this.#v3;
    for (let round = 0; round < rounds; round++) {
      v0 = (v0 + v1) | 0;
      v1 = turned(v1, 5) ^ v0;
      v0 = turned(v0, 16);
      v2 = (v2 + v3) | 0;
      v3 = turned(v3, 8) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = turned(v3, 7) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = turned(v1, 13) ^ v2;
      v2 = turned(v2, 16);
    }
    this.#v0 = v0;
    this.#v1 = v1;
    this.#v2 = v2;
    this.#v3 = v3;
  }
}

function turned(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
