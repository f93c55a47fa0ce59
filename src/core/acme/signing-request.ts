// The request for a certificate (CSR, RFC 2986), made of a public key and host names.
//
//   Request      SEQUENCE {Info, algorithm, BIT STRING}; signed is Info
//   Info         SEQUENCE {INTEGER 0, Name, public key, [0] {Attribute}}
//   Attribute    SEQUENCE {extensionRequest, SET {SEQUENCE of Extension}}
//   Extension    SEQUENCE {subjectAltName, OCTET STRING {SEQUENCE of [2] name}}
//
// The subject is empty: names stand in subjectAltName alone (RFC 8555 §7.4 allows it, and a common name is too short
// for many hosts).

import { derOf, derTags } from "../der.ts";

const { integer, bits, octets, oid, sequence, set } = derTags;
const attributesTag = 0xa0;
const dnsNameTag = 0x82;
/** 1.2.840.113549.1.9.14 */
const extensionRequest = Buffer.from("2a864886f70d01090e", "hex");
/** 2.5.29.17 */
const subjectAltName = Buffer.from("551d11", "hex");
/** 1.2.840.10045.4.3.2, ECDSA with SHA-256. */
const ecdsaWithSha256 = Buffer.from("2a8648ce3d040302", "hex");

/** Returns what is signed. `publicKey` is the SubjectPublicKeyInfo as DER, as node:crypto exports it. */
export function signingRequestInfo(publicKey: Uint8Array, names: readonly string[]): Buffer {
  const dnsNames = names.map((name) => derOf(dnsNameTag, Buffer.from(name, "ascii")));
  const extension = derOf(
    sequence,
    derOf(oid, subjectAltName),
    derOf(octets, derOf(sequence, ...dnsNames)),
  );
  const attribute = derOf(
    sequence,
    derOf(oid, extensionRequest),
    derOf(set, derOf(sequence, extension)),
  );
  return derOf(
    sequence,
    derOf(integer, Buffer.from([0])),
    derOf(sequence),
    publicKey,
    derOf(attributesTag, attribute),
  );
}

/** Returns the whole request. `signature` is ECDSA with SHA-256 as DER. */
export function signingRequest(info: Uint8Array, signature: Uint8Array): Buffer {
  return derOf(
    sequence,
    info,
    derOf(sequence, derOf(oid, ecdsaWithSha256)),
    derOf(bits, Buffer.from([0]), signature),
  );
}
