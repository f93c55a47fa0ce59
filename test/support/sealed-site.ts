// Keys and certificates of a deployment site as central seals them, with secrets of the test's own.

import { randomBytes, X509Certificate } from "node:crypto";
import { sealPrivateKey, sealSymmetricKey } from "../../src/base/vault-seal.ts";
import { parseSha256, type Sha256 } from "../../src/core/ids.ts";
import type { CertificateState, SymmetricKeyState } from "../../src/wire/vault.ts";
import type { Issued } from "./x509.ts";

export function fingerprintOf(pem: string): Sha256 {
  const { fingerprint256 } = new X509Certificate(pem);
  const digest = parseSha256(fingerprint256.replaceAll(":", "").toLowerCase());
  if (digest === undefined) throw new TypeError("no fingerprint");
  return digest;
}

export class SealedSite {
  readonly name16 = "00112233445566aa";
  secret16 = "0123456789abcdef0123456789abcdef";
  /** By name, in order. */
  readonly keys = new Map<string, Uint8Array>();
  #version = 0;

  get site(): { readonly name16: string; readonly secret16: string } {
    return { name16: this.name16, secret16: this.secret16 };
  }

  addKey(): string {
    const name = `key-${this.name16}-${this.keys.size + 1}`;
    this.keys.set(name, new Uint8Array(randomBytes(32)));
    return name;
  }

  /** `key.changed`: sealed with the secret as it is now. */
  keysBody(names = [...this.keys.keys()]): { keys: SymmetricKeyState[] } {
    this.#version += 1;
    return {
      keys: names.map((name) => ({
        name,
        version: this.#version,
        sealed: sealSymmetricKey(this.#key(name), this.site, name),
      })),
    };
  }

  certificate(issued: Issued, id = 1, chain = issued.pem): CertificateState {
    const [name = "nameless"] = [...this.keys.keys()].slice(-1);
    const leaf = new X509Certificate(issued.pem);
    const fingerprint = fingerprintOf(issued.pem);
    const place = { name16: this.name16, fingerprint };
    return {
      id,
      names: (leaf.subjectAltName ?? "").split(", ").map((one) => one.replace("DNS:", "")),
      not_before: leaf.validFromDate.toISOString(),
      not_after: leaf.validToDate.toISOString(),
      fingerprint,
      chain,
      key_name: name,
      sealed_key: sealPrivateKey(issued.key, this.#key(name), place),
    };
  }

  #key(name: string): Uint8Array {
    const key = this.keys.get(name);
    if (key === undefined) throw new Error(`no key ${name}`);
    return key;
  }
}
