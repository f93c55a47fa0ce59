// A set of entry ids as bytes: what the matcher answers and what a clear keeps on disk until its entries are deleted.
//
// Ascending runs of consecutive ids, each as two unsigned LEB128 numbers: gap to the end of the run before (of the first: the id itself), length − 1.
// Everything of one domain is a few bytes; scattered ids cost about two bytes each. In memory a set is an ascending Float64Array: half a million ids
// are 4 MB and no garbage.

import { idSpanMax } from "../index/entry-bits.ts";

/** A number of 53 bits takes eight bytes of seven. */
const numberBytesMax = 8;

/** The ids must ascend and be distinct. */
export function encodeIdRuns(ids: ArrayLike<number>): Uint8Array {
  let bytes = new Uint8Array(64);
  let at = 0;
  const write = (value: number): void => {
    let rest = value; // Arithmetic instead of shifts: ids may pass 2^32.
    while (rest >= 128) {
      bytes[at++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    bytes[at++] = rest;
  };
  let before = 0;
  for (let i = 0; i < ids.length;) {
    const from = ids[i] ?? 0;
    let to = from;
    while (++i < ids.length && ids[i] === to + 1) to++;
    if (at + 2 * numberBytesMax > bytes.length) bytes = grown(bytes);
    write(from - before);
    write(to - from);
    before = to;
  }
  return bytes.slice(0, at);
}

/** Throws RangeError on bytes that no encoder wrote. */
export function decodeIdRuns(bytes: Uint8Array): Float64Array {
  let count = 0;
  for (const [from, to] of runs(bytes)) count += to - from + 1;
  if (count > idSpanMax) throw new RangeError("id runs are longer than any index");
  const ids = new Float64Array(count);
  let at = 0;
  for (const [from, to] of runs(bytes)) for (let id = from; id <= to; id++) ids[at++] = id;
  return ids;
}

function* runs(bytes: Uint8Array): Iterable<readonly [from: number, to: number]> {
  let at = 0;
  let before = 0;
  const read = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined || scale > 2 ** 49)
        throw new RangeError("id runs end within a number");
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const from = before + read();
    const to = from + read();
    if (to - from >= idSpanMax || to > Number.MAX_SAFE_INTEGER)
      throw new RangeError("id runs are longer than any index");
    yield [from, to];
    before = to;
  }
}

function grown(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(bytes.length * 2);
  larger.set(bytes);
  return larger;
}
