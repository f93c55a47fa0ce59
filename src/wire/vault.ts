// What a deployment site needs for TLS: its symmetric keys and its certificates, whole states of the lane
// `certificates`. They are sealed as `base/vault-seal.ts` describes.
//
// An entry `key.changed` stands before the `certificate.changed` that needs it. If the certificates take more
// than `certificatesInlineBytesMax` as JSON, the entry names a blob instead: `GET
// /agent-api/v1/blobs/{sha256}`, UTF-8 JSON `{certificates: […]}`. It is given only to this site, and only
// while it is the site's state: 404 says that a later entry replaced it.

import { Type, type Static } from "typebox";
import { closed, decoder } from "./validate.ts";
import { Count, Sha256Text, Timestamp } from "./parts.ts";

/** `key-<name16 of the site it was made for>-<n>`; a key keeps its name when it goes to another site. */
export const KeyName = Type.String({ pattern: "^key-[0-9a-f]{16}-[1-9][0-9]{0,8}$" });
export const symmetricKeysMax = 100;

/** 12 bytes of nonce, 16 bytes of tag and 32 bytes of key, in base64url. */
const SealedKey = Type.String({ pattern: "^[A-Za-z0-9_-]{80}$" });

export const SymmetricKeyState = closed({
  name: KeyName,
  /** Counts how often the key was sealed; it grows with each change of secret16 or of the key's site. */
  version: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  sealed: SealedKey,
});
export type SymmetricKeyState = Static<typeof SymmetricKeyState>;

/** All keys of the site, the newest last. */
export const KeysChanged = closed({
  keys: Type.Array(SymmetricKeyState, { maxItems: symmetricKeysMax }),
});
export type KeysChanged = Static<typeof KeysChanged>;

/** Room for 10 certificates of up to 6 KiB. */
export const chainCharsMax = 65_536;
/** RSA of 16,384 bits is 12,700 characters as PKCS#8 PEM. */
export const privateKeyCharsMax = 16_384;
export const certificateNamesMax = 1_000;
export const certificatesMax = 2_000;
/** Room to spare: 1,000 certificates with chains of 4 KiB and keys of 2.3 KiB take 6.5 MiB. */
export const certificatesBytesMax = 32 * 2 ** 20;
export const certificatesInlineBytesMax = 65_536;

export const CertificateState = closed({
  id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  /** Host names in lower case, `*.` before those of wildcards, and addresses. */
  names: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    minItems: 1,
    maxItems: certificateNamesMax,
  }),
  not_before: Timestamp,
  not_after: Timestamp,
  /** SHA-256 of the leaf as DER. */
  fingerprint: Sha256Text,
  /** PEM, the leaf first. */
  chain: Type.String({ minLength: 1, maxLength: chainCharsMax }),
  /** The symmetric key of the site that `sealed_key` opens with. */
  key_name: KeyName,
  sealed_key: Type.String({ pattern: "^[A-Za-z0-9_-]{38,22000}$" }),
});
export type CertificateState = Static<typeof CertificateState>;

/** All certificates of the site in order of id. */
export const Certificates = closed({
  certificates: Type.Array(CertificateState, { maxItems: certificatesMax }),
});
export type Certificates = Static<typeof Certificates>;
export const decodeCertificates = decoder(Certificates);

export const CertificatesBlob = closed({ blob: Sha256Text, count: Count });

export const CertificatesChanged = Type.Union([Certificates, CertificatesBlob]);
export type CertificatesChanged = Static<typeof CertificatesChanged>;
