// Stores a manifest as a flat sorted table in shared memory: path → digest, size, mime type. Handing it to a
// thread copies nothing.
//
// All integers little-endian. One SharedArrayBuffer:
//   u32 count n | u32 generation | n × entry (56 bytes), ascending by the UTF-8 bytes of the path | mime texts | path texts
//   entry: u32 path offset | u32 path length | u32 mime offset | u32 mime length | u64 size (2 × u32) | 32 bytes SHA-256
//
// The memory may be written again for another table once no state refers to this one. A look-up that is still
// under way then fails instead of returning a mixture: the generation changes first, and is compared last.
//
// A path is relative to the viewset's root, without a leading slash, exactly as in the manifest. It never
// becomes a file name.

import { AccelError } from "../faults.ts";
import { parseSha256, type Sha256 } from "../ids.ts";

export type ManifestFile = {
  readonly path: string;
  readonly sha256: Sha256;
  readonly size: number;
  readonly mime: string;
};

const headerBytes = 8;
const generationAt = 1; // In words of four bytes.
const entryBytes = 56;
const digestAt = 24;
const nothing = new Uint8Array();

/** `memory` returns at least so many bytes, whatever they contain. */
export function encodeManifestTable(
  files: readonly ManifestFile[],
  memory = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes),
): SharedArrayBuffer {
  const text = new TextEncoder();
  const rows = files.map((file) => ({ file, bytes: text.encode(file.path) }));
  // Most manifests are in order already, because importers write them so.
  const isOrdered = rows.every(
    ({ bytes }, i) => compareBytes(rows[i - 1]?.bytes ?? nothing, bytes) <= 0,
  );
  if (!isOrdered) rows.sort((a, b) => compareBytes(a.bytes, b.bytes));
  const mimes = new Map<string, { at: number; bytes: Uint8Array }>();
  let at = headerBytes + rows.length * entryBytes;
  for (const { file } of rows) {
    if (mimes.has(file.mime)) continue;
    const bytes = text.encode(file.mime);
    mimes.set(file.mime, { at, bytes });
    at += bytes.length;
  }
  const table = memory(at + rows.reduce((sum, { bytes }) => sum + bytes.length, 0));
  Atomics.add(new Uint32Array(table, 0, 2), generationAt, 1);
  const view = new DataView(table);
  const all = new Uint8Array(table);
  view.setUint32(0, rows.length, true);
  for (const { at: offset, bytes } of mimes.values()) all.set(bytes, offset);
  rows.forEach(({ file: { mime, size, sha256 }, bytes }, i) => {
    const entry = headerBytes + i * entryBytes;
    const type = mimes.get(mime);
    view.setUint32(entry, at, true);
    view.setUint32(entry + 4, bytes.length, true);
    view.setUint32(entry + 8, type?.at ?? 0, true);
    view.setUint32(entry + 12, type?.bytes.length ?? 0, true);
    view.setUint32(entry + 16, size % 2 ** 32, true);
    view.setUint32(entry + 20, Math.floor(size / 2 ** 32), true);
    all.subarray(entry + digestAt, entry + entryBytes).setFromHex(sha256);
    all.set(bytes, at);
    at += bytes.length;
  });
  return table;
}

/** Look-ups in a table that `encodeManifestTable` made. It holds no copy. */
export class ManifestTable {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  readonly #head: Uint32Array;
  readonly #generation: number;
  readonly count: number;

  constructor(table: SharedArrayBuffer) {
    this.#view = new DataView(table);
    this.#bytes = new Uint8Array(table);
    this.#head = new Uint32Array(table, 0, 2);
    this.#generation = Atomics.load(this.#head, generationAt);
    this.count = this.#view.getUint32(0, true);
  }

  /** Throws MANIFEST_GONE if the memory holds another table by now. */
  find(path: string): ManifestFile | undefined {
    const found = this.#isThere ? this.#search(path) : undefined;
    if (this.#isThere) return found;
    throw new AccelError("MANIFEST_GONE", "another table of files took the place of this one");
  }

  get #isThere(): boolean {
    return Atomics.load(this.#head, generationAt) === this.#generation;
  }

  #search(path: string): ManifestFile | undefined {
    const want = encoded(path);
    let low = 0;
    let high = this.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const order = this.#compare(middle, want);
      if (order === 0) return this.#file(middle, path);
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return undefined;
  }

  /** Returns the file at a place in the order of paths. */
  at(i: number): ManifestFile | undefined {
    return i >= 0 && i < this.count ? this.#file(i, decode(this.#pathBytes(i))) : undefined;
  }

  /** Returns the places of the paths that begin with `prefix`: from `first` to before `end`. */
  range(prefix: string): { readonly first: number; readonly end: number } {
    const bytes = new TextEncoder().encode(prefix);
    const begins = (i: number): number => {
      const path = this.#pathBytes(i);
      return compareBytes(path.subarray(0, bytes.length), bytes);
    };
    const search = (isBefore: (i: number) => boolean): number => {
      let [low, high] = [0, this.count];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (isBefore(middle)) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return { first: search((i) => begins(i) < 0), end: search((i) => begins(i) <= 0) };
  }

  /** Returns the place of the largest file between these, or `first` if all are empty. */
  largest(first: number, end: number): number {
    let [found, most] = [first, 0];
    for (let i = first; i < end; i++) {
      const size = this.#size(i);
      if (size > most) [found, most] = [i, size];
    }
    return found;
  }

  *files(): Iterable<ManifestFile> {
    for (let i = 0; i < this.count; i++) yield this.#file(i, decode(this.#pathBytes(i)));
  }

  /** Compares the path at a place with another one, without a view of it. */
  #compare(i: number, want: Uint8Array): number {
    const field = headerBytes + i * entryBytes;
    const from = this.#view.getUint32(field, true);
    const length = this.#view.getUint32(field + 4, true);
    const shorter = Math.min(length, want.length);
    for (let at = 0; at < shorter; at++) {
      const difference = (this.#bytes[from + at] ?? 0) - (want[at] ?? 0);
      if (difference !== 0) return difference;
    }
    return length - want.length;
  }

  #pathBytes(i: number): Uint8Array {
    return this.#text(headerBytes + i * entryBytes);
  }

  #text(field: number): Uint8Array {
    const offset = this.#view.getUint32(field, true);
    return this.#bytes.subarray(offset, offset + this.#view.getUint32(field + 4, true));
  }

  #file(i: number, path: string): ManifestFile {
    const entry = headerBytes + i * entryBytes;
    const sha256 = parseSha256(this.#bytes.subarray(entry + digestAt, entry + entryBytes).toHex());
    if (sha256 === undefined) throw new TypeError("manifest table without a digest");
    return { path, sha256, size: this.#size(i), mime: decode(this.#text(entry + 8)) };
  }

  #size(i: number): number {
    const at = headerBytes + i * entryBytes + 16;
    return this.#view.getUint32(at, true) + this.#view.getUint32(at + 4, true) * 2 ** 32;
  }
}

const encoder = new TextEncoder();
const encoderMemory = new Uint8Array(1_024);

/** Returns the bytes of a path, in memory that the next call writes again where they are few. */
function encoded(path: string): Uint8Array {
  if (3 * path.length > encoderMemory.length) return encoder.encode(path);
  return encoderMemory.subarray(0, encoder.encodeInto(path, encoderMemory).written);
}

/** Copies before decoding, because TextDecoder refuses views of shared memory. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.slice());
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
