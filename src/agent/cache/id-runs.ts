// A set of entry ids as bytes: what the matcher answers and what a clear keeps on disk until its entries are deleted.
//
// Ascending runs of consecutive ids, each as two unsigned LEB128 numbers: gap to the end of the run before (of the first: the id itself), length − 1.
// Everything of one domain is a few bytes; scattered ids cost about two bytes each.

import { idSpanMax } from "./servable-bits.ts";

/** The ids must ascend and be distinct. */
export function encodeIdRuns(ids: Iterable<number>): Uint8Array {
  const bytes: number[] = [];
  let from = -1;
  let to = -1;
  let before = 0;
  const flush = (): void => {
    if (from < 0) return;
    writeNumber(bytes, from - before);
    writeNumber(bytes, to - from);
    before = to;
  };
  for (const id of ids) {
    if (from >= 0 && id === to + 1) to = id;
    else {
      flush();
      from = id;
      to = id;
    }
  }
  flush();
  return Uint8Array.from(bytes);
}

/** Throws RangeError on bytes that no encoder wrote. */
export function* decodeIdRuns(bytes: Uint8Array): Iterable<number> {
  let at = 0;
  let before = 0;
  const readNumber = (): number => {
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
    const from = before + readNumber();
    const to = from + readNumber();
    if (to - from >= idSpanMax || to > Number.MAX_SAFE_INTEGER)
      throw new RangeError("id runs are longer than any index");
    for (let id = from; id <= to; id++) yield id;
    before = to;
  }
}

/** Arithmetic instead of shifts: ids may pass 2^32. */
function writeNumber(bytes: number[], value: number): void {
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}
