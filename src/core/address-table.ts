// A bot set as one flat table in shared memory: which bot holds this address? The most specific range wins. Handing it to a thread copies nothing.
//
// Lies at a multiple of 8 bytes in a SharedArrayBuffer; everything is 32-bit words in the machine's order, but for the names:
//
//   header      12 words: words of the whole | IPv4 segments n4 | IPv4 index bits b | bytes an IPv4 owner takes (2 or 4) | IPv6 segments n6 |
//               IPv6 buckets k | names m | bytes of the names | base (float64) | scale (float64)
//   v4 starts   n4 words, ascending, the first 0
//   v4 index    2^b + 1 words: the segment that holds the first address of each bucket (the b highest bits); the last word: the last segment
//   v6 rows     n6 × 5 words: start, most significant word first, and owner, so that the last step of a search touches one cache line
//   v6 index    k + 1 words: by interpolation, the last segment that begins in an earlier bucket; the last word: the last segment
//   v4 owners   n4 of 2 or 4 bytes, padded
//   names       m + 1 offsets, then UTF-8, ascending by bytes. Owner i is name i − 1, owner 0 nobody
//
// 1,000,000 ranges that touch nowhere take 13 bytes each in IPv4 and 44 in IPv6.

import type { IpAddress, IpFamily } from "./ip.ts";
import type { Segments } from "./range-segments.ts";

export type AddressTableParts = {
  readonly v4: Segments;
  readonly v6: Segments;
  /** Distinct, ascending by their UTF-8 bytes: owners of the segments count on it. */
  readonly names: readonly string[];
};

/** Where a table lies. Travels to other threads as it is. */
export type AddressTableRef = { readonly buffer: SharedArrayBuffer; readonly at: number };

const headerWords = 12;
const baseAt = 8;
const rowWords = 5;
/** So few that a search takes a step or two; 1 byte of index a segment in IPv4, 2 in IPv6. */
const bucketSegments4 = 4;
const bucketSegments6 = 2;
/** 4 MiB of index. */
const indexBitsMax = 20;

type Layout = {
  readonly n4: number;
  readonly bits: number;
  readonly ownerBytes: 2 | 4;
  readonly n6: number;
  readonly buckets: number;
  readonly names: number;
  readonly nameBytes: number;
};

function sectionsOf({ n4, bits, ownerBytes, n6, buckets, names, nameBytes }: Layout) {
  const starts4 = headerWords;
  const index4 = starts4 + n4;
  const rows6 = index4 + 2 ** bits + 1;
  const index6 = rows6 + n6 * rowWords;
  const owners4 = index6 + buckets + 1;
  const offsets = owners4 + Math.ceil((n4 * ownerBytes) / 4);
  const text = offsets + names + 1;
  const words = text + Math.ceil(nameBytes / 4);
  return { starts4, index4, rows6, index6, owners4, offsets, text, words: words + (words % 2) };
}

/** Where the interpolation puts an address: its 53 highest bits, exact as a float64. */
const keyOf = (word0: number, word1: number): number => word0 * 2 ** 21 + (word1 >>> 11);

function bucketOf(key: number, base: number, scale: number, buckets: number): number {
  return Math.min(buckets - 1, Math.max(0, Math.floor((key - base) * scale)));
}

export class AddressTablePlan {
  readonly #parts: AddressTableParts;
  readonly #names: readonly Uint8Array[];
  readonly #layout: Layout;

  constructor(parts: AddressTableParts) {
    const encoder = new TextEncoder();
    this.#parts = parts;
    this.#names = parts.names.map((name) => encoder.encode(name));
    const { count: n4 } = parts.v4;
    this.#layout = {
      n4,
      bits: Math.max(0, Math.min(indexBitsMax, Math.floor(Math.log2(n4 / bucketSegments4)))),
      ownerBytes: parts.names.length < 65_536 ? 2 : 4,
      n6: parts.v6.count,
      buckets: Math.max(1, Math.floor(parts.v6.count / bucketSegments6)),
      names: this.#names.length,
      nameBytes: this.#names.reduce((sum, { length }) => sum + length, 0),
    };
  }

  /** A multiple of 8. */
  get bytes(): number {
    return sectionsOf(this.#layout).words * 4;
  }

  /** Overwrites `bytes` from `at`: nobody may be reading there. */
  write({ buffer, at }: AddressTableRef): void {
    const sections = sectionsOf(this.#layout);
    const words = new Uint32Array(buffer, at, sections.words);
    const { n4, bits, ownerBytes, n6, buckets, names, nameBytes } = this.#layout;
    words.set([sections.words, n4, bits, ownerBytes, n6, buckets, names, nameBytes]);
    this.#writeFour(words, sections, buffer, at);
    this.#writeSix(words, sections, new Float64Array(buffer, at + baseAt * 4, 2));
    let offset = 0;
    const text = new Uint8Array(buffer, at + sections.text * 4, nameBytes);
    this.#names.forEach((name, i) => {
      words[sections.offsets + i] = offset;
      text.set(name, offset);
      offset += name.length;
    });
    words[sections.offsets + names] = offset;
  }

  #writeFour(
    words: Uint32Array,
    { starts4, index4, owners4 }: ReturnType<typeof sectionsOf>,
    buffer: SharedArrayBuffer,
    at: number,
  ): void {
    const { n4, bits, ownerBytes } = this.#layout;
    const { starts, owners } = this.#parts.v4;
    words.set(starts.subarray(0, n4), starts4);
    const stored =
      ownerBytes === 2
        ? new Uint16Array(buffer, at + owners4 * 4, n4)
        : new Uint32Array(buffer, at + owners4 * 4, n4);
    stored.set(owners.subarray(0, n4));
    let segment = 0;
    for (let bucket = 0; bucket < 2 ** bits; bucket++) {
      const first = bucket * 2 ** (32 - bits);
      while (segment + 1 < n4 && (starts[segment + 1] ?? 0) <= first) segment++;
      words[index4 + bucket] = segment;
    }
    words[index4 + 2 ** bits] = n4 - 1;
  }

  #writeSix(
    words: Uint32Array,
    { rows6, index6 }: ReturnType<typeof sectionsOf>,
    interpolation: Float64Array,
  ): void {
    const { n6, buckets } = this.#layout;
    const { starts, owners } = this.#parts.v6;
    const keyAt = (segment: number): number =>
      keyOf(starts[segment * 4] ?? 0, starts[segment * 4 + 1] ?? 0);
    const base = n6 > 1 ? keyAt(1) : 0;
    const scale = n6 > 1 ? buckets / (keyAt(n6 - 1) - base + 1) : 0;
    interpolation.set([base, scale]);
    let filled = 0;
    for (let segment = 0; segment < n6; segment++) {
      const row = rows6 + segment * rowWords;
      for (let word = 0; word < 4; word++) words[row + word] = starts[segment * 4 + word] ?? 0;
      words[row + 4] = owners[segment] ?? 0;
      const bucket = segment === 0 ? 0 : bucketOf(keyAt(segment), base, scale, buckets);
      for (; filled <= bucket; filled++) words[index6 + filled] = Math.max(0, segment - 1);
    }
    for (; filled <= buckets; filled++) words[index6 + filled] = n6 - 1;
    words[index6 + buckets] = n6 - 1;
  }
}

/** Lookups in a table that lies in shared memory. Synchronous; must not be used after the table was rewritten. */
export class AddressTable {
  readonly count4: number;
  readonly #starts4: Uint32Array;
  readonly #index4: Uint32Array;
  readonly #shift4: number;
  readonly #owners4: Uint16Array | Uint32Array;
  readonly #rows6: Uint32Array;
  readonly #index6: Uint32Array;
  readonly #base: number;
  readonly #scale: number;
  readonly #offsets: Uint32Array;
  readonly #text: Uint8Array;
  /** Decoded when first asked for. */
  readonly #names: (string | undefined)[] = [];

  constructor({ buffer, at }: AddressTableRef) {
    const header = new Uint32Array(buffer, at, headerWords);
    const [, n4 = 0, bits = 0, ownerBytes, n6 = 0, buckets = 0, names = 0, nameBytes = 0] = header;
    const layout = { n4, bits, n6, buckets, names, nameBytes };
    const sections = sectionsOf({ ...layout, ownerBytes: ownerBytes === 2 ? 2 : 4 });
    const view = (word: number, length: number): Uint32Array =>
      new Uint32Array(buffer, at + word * 4, length);
    this.count4 = n4;
    this.#starts4 = view(sections.starts4, n4);
    this.#index4 = view(sections.index4, 2 ** bits + 1);
    this.#shift4 = 32 - bits;
    this.#owners4 =
      ownerBytes === 2
        ? new Uint16Array(buffer, at + sections.owners4 * 4, n4)
        : view(sections.owners4, n4);
    this.#rows6 = view(sections.rows6, n6 * rowWords);
    this.#index6 = view(sections.index6, buckets + 1);
    const [base = 0, scale = 0] = new Float64Array(buffer, at + baseAt * 4, 2);
    this.#base = base;
    this.#scale = scale;
    this.#offsets = view(sections.offsets, names + 1);
    this.#text = new Uint8Array(buffer, at + sections.text * 4, nameBytes);
  }

  /** Of the address in `words` (see AddressReader); 0: nobody's. */
  ownerOf(family: IpFamily, words: Uint32Array): number {
    return family === 4 ? this.#ownerOfFour(words[0] ?? 0) : this.#ownerOfSix(words);
  }

  /** The same for who has no words: slower, and not for every request. */
  ownerOfIp({ family, value }: IpAddress): number {
    const count = family === 4 ? 1 : 4;
    const words = Uint32Array.from({ length: count }, (_, word) =>
      Number((value >> BigInt(32 * (count - 1 - word))) & 0xffff_ffffn),
    );
    return this.ownerOf(family, words);
  }

  #ownerOfFour(address: number): number {
    const starts = this.#starts4;
    // A shift by 32 would be one by 0.
    const bucket = this.#shift4 === 32 ? 0 : address >>> this.#shift4;
    let low = this.#index4[bucket] ?? 0;
    let high = this.#index4[bucket + 1] ?? 0;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((starts[middle] ?? 0) <= address) low = middle;
      else high = middle - 1;
    }
    return this.#owners4[low] ?? 0;
  }

  #ownerOfSix(words: Uint32Array): number {
    const rows = this.#rows6;
    const [word0 = 0, word1 = 0, word2 = 0, word3 = 0] = [words[0], words[1], words[2], words[3]];
    const buckets = this.#index6.length - 1;
    const bucket = bucketOf(keyOf(word0, word1), this.#base, this.#scale, buckets);
    let low = this.#index6[bucket] ?? 0;
    let high = this.#index6[bucket + 1] ?? 0;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      const row = middle * rowWords;
      const start0 = rows[row] ?? 0;
      let isBefore = start0 < word0;
      if (start0 === word0) {
        const start1 = rows[row + 1] ?? 0;
        isBefore = start1 < word1;
        if (start1 === word1) {
          const start2 = rows[row + 2] ?? 0;
          isBefore = start2 === word2 ? (rows[row + 3] ?? 0) <= word3 : start2 < word2;
        }
      }
      if (isBefore) low = middle;
      else high = middle - 1;
    }
    return rows[low * rowWords + 4] ?? 0;
  }

  get names(): number {
    return this.#offsets.length - 1;
  }

  /** Of an owner that `ownerOf` gave, but 0. */
  name(owner: number): string {
    return (this.#names[owner] ??= new TextDecoder().decode(
      // A copy: decoders refuse shared memory.
      this.#text.slice(this.#offsets[owner - 1], this.#offsets[owner]),
    ));
  }

  /** 0: the bot holds no address. */
  ownerNamed(bot: string): number {
    let low = 1;
    let high = this.names;
    const want = new TextEncoder().encode(bot);
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const order = this.#compare(middle, want);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return 0;
  }

  #compare(owner: number, want: Uint8Array): number {
    const from = this.#offsets[owner - 1] ?? 0;
    const length = (this.#offsets[owner] ?? 0) - from;
    for (let i = 0; i < Math.min(length, want.length); i++) {
      const difference = (this.#text[from + i] ?? 0) - (want[i] ?? 0);
      if (difference !== 0) return difference;
    }
    return length - want.length;
  }
}
