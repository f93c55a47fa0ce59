// Keeps the certificates of a site in shared memory, so that handing a state to a thread copies none of them.
//
//   u32 bytes of the index | index, UTF-8 JSON | PEM texts, UTF-8, one after the other
//
// The index is a list of {names, not before, not after, fingerprint, digest, at, chain bytes, key bytes}: a chain begins at `at`, counted from the end of the
// index, and its private key follows. The memory holds private keys: it goes to threads that serve, and nowhere else.

import { hash } from "node:crypto";
import type { CertificateFacts } from "./certificate-choice.ts";
import type { Sha256 } from "../ids.ts";

export type InstalledCertificate = CertificateFacts & {
  /** SHA-256 of the leaf as DER. */
  readonly fingerprint: Sha256;
  /** PEM, the leaf first. */
  readonly chain: string;
  /** PKCS#8 PEM. */
  readonly privateKey: string;
};

export type ListedCertificate = CertificateFacts & {
  readonly fingerprint: Sha256;
  /** SHA-256 of chain and private key, because the same leaf may come again with another chain. */
  readonly digest: string;
  readonly at: number;
  readonly chainBytes: number;
  readonly keyBytes: number;
};

/** `no` is different for each table: threads tell by it whether they have read the table already. */
export type CertificateTableRef = { readonly no: number; readonly bytes: SharedArrayBuffer };

const lengthBytes = 4;

/** `room` returns memory of at least so many bytes, all zero. */
export function encodeCertificates(
  no: number,
  certificates: readonly InstalledCertificate[],
  room = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes),
): CertificateTableRef {
  const encoder = new TextEncoder();
  const texts = certificates.map(({ chain, privateKey }) => ({
    chain: encoder.encode(chain),
    key: encoder.encode(privateKey),
  }));
  let at = 0;
  const listed = certificates.map((certificate, i): ListedCertificate => {
    const { names, notBeforeMs, notAfterMs, fingerprint } = certificate;
    const chainBytes = texts[i]?.chain.length ?? 0;
    const keyBytes = texts[i]?.key.length ?? 0;
    const facts = { names, notBeforeMs, notAfterMs, fingerprint };
    const digest = hash("sha256", `${certificate.chain}\n${certificate.privateKey}`);
    const entry = { ...facts, digest, at, chainBytes, keyBytes };
    at += chainBytes + keyBytes;
    return entry;
  });
  const index = encoder.encode(JSON.stringify(listed));
  const bytes = room(lengthBytes + index.length + at);
  new DataView(bytes).setUint32(0, index.length);
  const out = new Uint8Array(bytes);
  out.set(index, lengthBytes);
  let end = lengthBytes + index.length;
  for (const { chain, key } of texts) {
    out.set(chain, end);
    out.set(key, end + chain.length);
    end += chain.length + key.length;
  }
  return { no, bytes };
}

export class CertificateTable {
  readonly no: number;
  readonly certificates: readonly ListedCertificate[];
  readonly #bytes: Uint8Array;
  readonly #textsAt: number;

  constructor({ no, bytes }: CertificateTableRef) {
    this.no = no;
    this.#bytes = new Uint8Array(bytes);
    const indexBytes = new DataView(bytes).getUint32(0);
    this.#textsAt = lengthBytes + indexBytes;
    // encodeCertificates wrote it, in this process.
    this.certificates = JSON.parse(this.#text(lengthBytes, indexBytes)) as ListedCertificate[];
  }

  chainOf({ at, chainBytes }: ListedCertificate): string {
    return this.#text(this.#textsAt + at, chainBytes);
  }

  keyOf({ at, chainBytes, keyBytes }: ListedCertificate): string {
    return this.#text(this.#textsAt + at + chainBytes, keyBytes);
  }

  /** Copies before decoding, because decoders do not read shared memory. */
  #text(from: number, length: number): string {
    return new TextDecoder().decode(this.#bytes.slice(from, from + length));
  }
}
