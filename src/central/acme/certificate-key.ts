// The keys of accounts and of certificates that are ordered: ECDSA over P-256, which every directory and browser takes.

import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { signingRequest, signingRequestInfo } from "../../core/acme/signing-request.ts";

/** Returns a new private key as PKCS#8 PEM. */
export function newPrivateKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" });
}

/** Returns a request for a certificate of this key with these names, as DER. */
export function requestFor(privateKeyPem: string, names: readonly string[]): Buffer {
  const publicKey = createPublicKey(privateKeyPem).export({ type: "spki", format: "der" });
  const info = signingRequestInfo(publicKey, names);
  return signingRequest(info, sign("sha256", info, privateKeyPem));
}
