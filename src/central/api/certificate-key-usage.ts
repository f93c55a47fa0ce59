// What a certificate's key may be used for: its extension keyUsage (RFC 5280 §4.2.1.3). It is read from the
// DER, because node:crypto only shows the extended one.
//
//   Certificate   SEQUENCE {TBS, algorithm, signature}
//   TBS           SEQUENCE {…, [3] {SEQUENCE of Extension}}
//   Extension     SEQUENCE {OID, BOOLEAN or nothing, OCTET STRING}; that of keyUsage holds a BIT STRING, whose first bit is digitalSignature

import type { X509Certificate } from "node:crypto";

const tags = { bits: 0x03, octets: 0x04, oid: 0x06, sequence: 0x30, extensions: 0xa3 } as const;
/** 2.5.29.15 */
const keyUsageOid = Buffer.from([0x55, 0x1d, 0x0f]);
const digitalSignature = 0x80;

/** Returns whether the key may sign handshakes; it may if nothing is said. */
export function maySign({ raw }: X509Certificate): boolean {
  return keyUsages(raw).every((usage) => {
    // The first byte counts the unused bits of the last one.
    const [, first = 0] = contents(usage, tags.bits)[0] ?? [];
    return (first & digitalSignature) !== 0;
  });
}

function keyUsages(der: Uint8Array): readonly Uint8Array[] {
  return within(der, tags.sequence, tags.sequence, tags.extensions, tags.sequence)
    .flatMap((list) => contents(list, tags.sequence))
    .filter((extension) => contents(extension, tags.oid).some((oid) => keyUsageOid.equals(oid)))
    .flatMap((extension) => contents(extension, tags.octets));
}

/** Descends by tags: returns the first element of each tag in the one before it, none if one is missing. */
function within(der: Uint8Array, ...path: readonly number[]): readonly Uint8Array[] {
  let found = [der];
  for (const tag of path) found = found.flatMap((outer) => contents(outer, tag).slice(0, 1));
  return found;
}

/** Returns the contents of the elements with a tag of one byte, as far as they can be read. */
function contents(der: Uint8Array, wanted: number): readonly Uint8Array[] {
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
