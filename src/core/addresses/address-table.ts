// A bot set as one flat table in shared memory: which bot holds this address? The most specific range wins. Handing it to a thread copies nothing.
//
// A table lies at a multiple of 8 bytes in a SharedArrayBuffer. All but the names is 32-bit words in the
// machine's byte order:
//
//   header      14 words: words of the whole | IPv4: segments, index bits, bytes an owner takes | IPv6: rows, buckets, words of the runs | names m |
//               bytes of the names | 0 | interpolation (2 × float64)
//   IPv4        see address-four.ts
//   IPv6        see address-six.ts
//   names       m + 1 offsets, then UTF-8, ascending by bytes. Owner i is name i − 1, owner 0 nobody
//
// 1,000,000 ranges that touch nowhere take 9 bytes each in IPv4, 28 in IPv6 as networks and 42 as single addresses.

import {
  FourColumns,
  layoutFour,
  packedSegmentsLeast,
  wordsOfFour,
  writeFour,
  type FourLayout,
} from "./address-four.ts";
import { layoutSix, SixColumns, wordsOfSix, writeSix, type SixLayout } from "./address-six.ts";
import type { IpFamily } from "./ip.ts";
import { noPause, type Pause } from "./range-pause.ts";
import type { Segments } from "./range-segments.ts";

export type AddressTableParts = {
  readonly v4: Segments;
  readonly v6: Segments;
  /** Distinct names, ascending by their UTF-8 bytes; owner i of a segment is name i − 1. */
  readonly names: readonly string[];
};

/** The place of a table in shared memory. It is posted to other threads as it is. */
export type AddressTableRef = { readonly buffer: SharedArrayBuffer; readonly at: number };

const headerWords = 14;
const interpolationAt = 10;

type Layout = {
  readonly v4: FourLayout;
  readonly v6: SixLayout;
  readonly names: number;
  readonly nameBytes: number;
};

function sectionsOf({ v4, v6, names, nameBytes }: Layout) {
  const four = headerWords;
  const six = four + wordsOfFour(v4);
  const offsets = six + wordsOfSix(v6);
  const text = offsets + names + 1;
  const words = text + Math.ceil(nameBytes / 4);
  return { four, six, offsets, text, words: words + (words % 2) };
}

export class AddressTablePlan {
  readonly #parts: AddressTableParts;
  readonly #names: readonly Uint8Array[];
  readonly #layout: Layout;
  readonly #pause: Pause;

  /** `packedLeast` is the number of IPv4 segments from which a key also holds its owner. */
  constructor(
    parts: AddressTableParts,
    {
      packedLeast = packedSegmentsLeast,
      pause = noPause,
    }: { readonly packedLeast?: number | undefined; readonly pause?: Pause } = {},
  ) {
    this.#pause = pause;
    const encoder = new TextEncoder();
    this.#parts = parts;
    this.#names = parts.names.map((name) => encoder.encode(name));
    this.#layout = {
      v4: layoutFour(parts.v4, parts.names.length, packedLeast),
      v6: layoutSix(parts.v6, pause),
      names: this.#names.length,
      nameBytes: this.#names.reduce((sum, { length }) => sum + length, 0),
    };
  }

  /** The size of the table, a multiple of 8. */
  get bytes(): number {
    return sectionsOf(this.#layout).words * 4;
  }

  /** Writes the table over `bytes` bytes from `at`; nobody may be reading there. */
  write({ buffer, at }: AddressTableRef): void {
    const sections = sectionsOf(this.#layout);
    const words = new Uint32Array(buffer, at, sections.words);
    const { v4, v6, names, nameBytes } = this.#layout;
    const { rows, buckets, runWords } = v6;
    words.set([sections.words, v4.count, v4.bits, v4.ownerBytes, rows, buckets, runWords]);
    words.set([names, nameBytes, 0], 7);
    const four = words.subarray(sections.four, sections.six);
    writeFour(this.#parts.v4, v4, four, this.#pause);
    const six = words.subarray(sections.six, sections.offsets);
    const interpolation = new Float64Array(buffer, at + interpolationAt * 4, 2);
    writeSix(this.#parts.v6, v6, six, interpolation, this.#pause);
    let offset = 0;
    const text = new Uint8Array(buffer, at + sections.text * 4, nameBytes);
    this.#names.forEach((name, i) => {
      words[sections.offsets + i] = offset;
      text.set(name, offset);
      offset += name.length;
    });
    words[sections.offsets + names] = offset;
  }
}

/** Lookups in a table that lies in shared memory. Synchronous; must not be used after the table was rewritten. */
export class AddressTable {
  readonly #four: FourColumns;
  readonly #six: SixColumns;
  readonly #offsets: Uint32Array;
  readonly #text: Uint8Array;
  /** Names are decoded when first asked for. */
  readonly #names: (string | undefined)[] = [];

  constructor({ buffer, at }: AddressTableRef) {
    const header = new Uint32Array(buffer, at, headerWords);
    const [size = 0, count = 0, bits = 0, bytes, rows = 0, buckets = 0, runWords = 0] = header;
    const [names = 0, nameBytes = 0] = header.subarray(7);
    const v4: FourLayout = { count, bits, ownerBytes: bytes === 0 ? 0 : bytes === 2 ? 2 : 4 };
    const v6: SixLayout = { rows, buckets, runWords };
    const { four, six, offsets, text } = sectionsOf({ v4, v6, names, nameBytes });
    const words = new Uint32Array(buffer, at, size);
    const interpolation = new Float64Array(buffer, at + interpolationAt * 4, 2);
    this.#four = new FourColumns(v4, words.subarray(four, six));
    this.#six = new SixColumns(v6, words.subarray(six, offsets), interpolation);
    this.#offsets = words.subarray(offsets, offsets + names + 1);
    this.#text = new Uint8Array(buffer, at + text * 4, nameBytes);
  }

  /** Returns the owner of the address in `words` (see AddressReader), or 0 if nobody owns it. */
  ownerOf(family: IpFamily, words: Uint32Array): number {
    return family === 4 ? this.#four.ownerOf(words) : this.#six.ownerOf(words);
  }

  get names(): number {
    return this.#offsets.length - 1;
  }

  /** Returns the name of an owner that `ownerOf` returned. The owner must not be 0. */
  name(owner: number): string {
    return (this.#names[owner] ??= new TextDecoder().decode(
      // A copy: decoders refuse shared memory.
      this.#text.slice(this.#offsets[owner - 1], this.#offsets[owner]),
    ));
  }

  /** Returns the owner of that name, or 0 if the bot holds no address. */
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
