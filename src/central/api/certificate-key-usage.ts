// What a certificate's key may be used for: its extension keyUsage (RFC 5280 §4.2.1.3). It is read from the
// DER, because node:crypto only shows the extended one.
//
//   Certificate   SEQUENCE {TBS, algorithm, signature}
//   TBS           SEQUENCE {…, [3] {SEQUENCE of Extension}}
//   Extension     SEQUENCE {OID, BOOLEAN or nothing, OCTET STRING}; that of keyUsage holds a BIT STRING, whose first bit is digitalSignature

import type { X509Certificate } from "node:crypto";
import { certificateExtension, derContents, derTags } from "../../core/der.ts";

/** 2.5.29.15 */
const keyUsageOid = Buffer.from([0x55, 0x1d, 0x0f]);
const digitalSignature = 0x80;

/** Returns whether the key may sign handshakes; it may if nothing is said. */
export function maySign({ raw }: X509Certificate): boolean {
  return certificateExtension(raw, keyUsageOid).every((usage) => {
    // The first byte counts the unused bits of the last one.
    const [, first = 0] = derContents(usage, derTags.bits)[0] ?? [];
    return (first & digitalSignature) !== 0;
  });
}
