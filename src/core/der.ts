// DER, as far as certificates need it (X.690 §8): elements are written, and found by their tags.

export const derTags = {
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Writes one element of these contents. */
export function derOf(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...derLength(body.length)]), body]);
}

function derLength(length: number): readonly number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let left = length; left > 0; left = Math.floor(left / 256)) bytes.unshift(left % 256);
  return [0x80 + bytes.length, ...bytes];
}

/** Descends by tags: returns the first element of each tag in the one before it, none if one is missing. */
export function derWithin(der: Uint8Array, ...path: readonly number[]): readonly Uint8Array[] {
  let found = [der];
  for (const tag of path) found = found.flatMap((outer) => derContents(outer, tag).slice(0, 1));
  return found;
}

/** Returns the contents of the elements with a tag of one byte, as far as they can be read. */
export function derContents(der: Uint8Array, wanted: number): readonly Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let at = 0; at + 2 <= der.length;) {
    const [tag, short = 0] = der.subarray(at, at + 2);
    at += 2;
    let length = short;
    if (short >= 0x80) {
      const lengthBytes = short & 0x7f;
      length = der.subarray(at, at + lengthBytes).reduce((sum, byte) => sum * 256 + byte, 0);
      at += lengthBytes;
    }
    if (tag === wanted) found.push(der.subarray(at, at + length));
    at += length;
  }
  return found;
}

/** The tag of the extensions in the part of a certificate that is signed (RFC 5280 §4.1). */
const extensionsTag = 0xa3;

/** Returns the values of one extension of a certificate, by the bytes of its object identifier. */
export function certificateExtension(
  certificate: Uint8Array,
  oid: Uint8Array,
): readonly Uint8Array[] {
  const { sequence, oid: oidTag, octets } = derTags;
  return derWithin(certificate, sequence, sequence, extensionsTag, sequence)
    .flatMap((list) => derContents(list, sequence))
    .filter((extension) =>
      derContents(extension, oidTag).some((found) => Buffer.from(oid).equals(found)),
    )
    .flatMap((extension) => derContents(extension, octets));
}
