// Seals keys and certificates on their way from central to an agent. Neither central's database nor a reader
// of a journal or a blob sees any of them in clear.
//
//   symmetric key   32 random bytes, sealed with HKDF-SHA-256(secret16 as text, salt name16 as text, info below); context "key.changed\n<name16>\n<key name>"
//   private key     PKCS#8 PEM, sealed with a symmetric key of the site; context "certificate.changed\n<name16>\n<fingerprint of the leaf>"
//
//   next secret16   sealed with HKDF-SHA-256(the secret16 before as text, salt name16, info below); context "secret16\n<name16>"
//
// The sealed form is that of seal.ts: base64url( nonce | tag | ciphertext ), AES-256-GCM.

import { hkdfSync } from "node:crypto";
import { AccelError } from "../core/faults.ts";
import { parseSecret16, type Secret16 } from "../core/ids.ts";
import { openBytes, sealBytes } from "./seal.ts";

export const symmetricKeyBytes = 32;
const info = "accel-agent symmetric key v1";
const nextSecretInfo = "accel-agent next secret16 v1";

/** Name and secret of a deployment site. */
export type SiteCredentials = { readonly name16: string; readonly secret16: string };

function siteKey({ name16, secret16 }: SiteCredentials, of = info): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret16, name16, of, symmetricKeyBytes));
}

const keyContext = (name16: string, keyName: string): string =>
  `key.changed\n${name16}\n${keyName}`;
const certificateContext = (name16: string, fingerprint: string): string =>
  `certificate.changed\n${name16}\n${fingerprint}`;

export function sealSymmetricKey(key: Uint8Array, site: SiteCredentials, keyName: string): string {
  return sealBytes(key, siteKey(site), keyContext(site.name16, keyName));
}

/** Throws SEAL_BROKEN if the key was sealed under another secret, for another site or under another name. */
export function openSymmetricKey(
  sealed: string,
  site: SiteCredentials,
  keyName: string,
): Uint8Array {
  let key: Uint8Array;
  try {
    key = openBytes(sealed, siteKey(site), keyContext(site.name16, keyName));
  } catch (error) {
    throw new AccelError(
      "SEAL_BROKEN",
      `the symmetric key ${keyName} does not open with the secret16 of ${site.name16}: it is sealed under another one`,
      { cause: error },
    );
  }
  if (key.length === symmetricKeyBytes) return key;
  throw new AccelError("SEAL_BROKEN", `the symmetric key ${keyName} has a wrong length`);
}

/** Where a private key belongs: a deployment site, and the SHA-256 of the leaf certificate. */
export type CertificatePlace = { readonly name16: string; readonly fingerprint: string };

export function sealPrivateKey(
  pem: string,
  key: Uint8Array,
  { name16, fingerprint }: CertificatePlace,
): string {
  return sealBytes(Buffer.from(pem), key, certificateContext(name16, fingerprint));
}

/** Throws SEAL_BROKEN if the key was sealed with another key or for another certificate. */
export function openPrivateKey(
  sealed: string,
  key: Uint8Array,
  { name16, fingerprint }: CertificatePlace,
): string {
  return openBytes(sealed, key, certificateContext(name16, fingerprint)).toString("utf8");
}

const secretContext = (name16: string): string => `secret16\n${name16}`;

/** Seals a new secret for hosts that have the one before. */
export function sealNextSecret(next: string, before: SiteCredentials): string {
  return sealBytes(
    Buffer.from(next),
    siteKey(before, nextSecretInfo),
    secretContext(before.name16),
  );
}

/** Throws SEAL_BROKEN if it was sealed for another site or for who has another secret. */
export function openNextSecret(sealed: string, before: SiteCredentials): Secret16 {
  const bytes = openBytes(sealed, siteKey(before, nextSecretInfo), secretContext(before.name16));
  const next = parseSecret16(bytes.toString("utf8"));
  if (next !== undefined) return next;
  throw new AccelError("SEAL_BROKEN", "what was sealed in place of a secret16 is none");
}
