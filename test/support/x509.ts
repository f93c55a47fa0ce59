// X.509 certificates made on the spot: what tests need of RFC 5280, in DER by hand, signed by node:crypto. Nothing here is fit for use beyond tests.

import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";

const tag = (code: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([code, ...size]), body]);
};
const sequence = (...parts: readonly Uint8Array[]): Buffer => tag(0x30, ...parts);
const text = (code: number, value: string): Buffer => tag(code, Buffer.from(value));
const integer = (value: bigint): Buffer => {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return tag(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
};
const oid = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tag(0x06, Buffer.from(bytes));
};
const bits = (bytes: Uint8Array): Buffer => tag(0x03, Buffer.of(0), bytes);
/** GeneralizedTime is allowed for every year by what reads it here. */
const time = (at: Date): Buffer =>
  text(0x18, `${at.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`);
const name = (commonName: string): Buffer =>
  sequence(tag(0x31, sequence(oid("2.5.4.3"), text(0x0c, commonName))));
const extension = (id: string, value: Uint8Array, critical = false): Buffer =>
  sequence(oid(id), ...(critical ? [tag(0x01, Buffer.of(0xff))] : []), tag(0x04, value));

function alternative(value: string): Buffer {
  const four = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(value);
  if (four !== null) return tag(0x87, Buffer.from(four.slice(1).map(Number)));
  if (value === "::1") return tag(0x87, Buffer.from([...new Uint8Array(15), 1]));
  return value.includes("@") ? text(0x81, value) : text(0x82, value);
}

const curves = { ec: "P-256", "P-384": "P-384", "P-521": "P-521", secp256k1: "secp256k1" } as const;
export type KeyType = keyof typeof curves | "rsa" | "rsa-1024" | "ed25519";

/** Their bits, from the first byte's highest on (RFC 5280 §4.2.1.3). */
const keyUsageBits = { digitalSignature: 0, keyEncipherment: 2, keyAgreement: 4, keyCertSign: 5 };
export type KeyUsage = keyof typeof keyUsageBits;

export function makeKeys(type: KeyType = "ec"): {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
} {
  if (type === "ed25519") return generateKeyPairSync("ed25519");
  if (type === "rsa" || type === "rsa-1024")
    return generateKeyPairSync("rsa", { modulusLength: type === "rsa" ? 2_048 : 1_024 });
  return generateKeyPairSync("ec", { namedCurve: curves[type] });
}

const algorithms: Readonly<Record<string, Buffer>> = {
  ec: sequence(oid("1.2.840.10045.4.3.2")),
  rsa: sequence(oid("1.2.840.113549.1.1.11"), tag(0x05)),
  ed25519: sequence(oid("1.3.101.112")),
};

export type Issued = {
  readonly subject: string;
  /** One certificate. */
  readonly pem: string;
  /** PKCS#8. */
  readonly key: string;
  readonly privateKey: KeyObject;
};

export type CertificateWanted = {
  readonly subject?: string;
  /** DNS names, IPv4 addresses, `::1`, mail addresses. */
  readonly names?: readonly string[];
  readonly from?: Date;
  readonly to?: Date;
  /** Undefined: signed by itself. */
  readonly issuer?: Issued;
  readonly isAuthority?: boolean;
  readonly keyType?: KeyType;
  /** Of another key than that which is made. */
  readonly publicKey?: KeyObject;
  /** What names the issuer's key; undefined: no such extension. */
  readonly issuerKeyId?: Buffer;
  /** Extended key usages; none: no such extension. */
  readonly usages?: readonly string[];
  /** Who is asked whether it was revoked. */
  readonly ocspUrl?: string;
  /** Not to be accepted without an answer of OCSP (RFC 7633). */
  readonly isMustStaple?: boolean;
  /** Undefined: no such extension. */
  readonly keyUsages?: readonly KeyUsage[];
};

function keyUsage(usages: readonly KeyUsage[]): Buffer {
  const byte = usages.reduce((sum, usage) => sum | (0x80 >> keyUsageBits[usage]), 0);
  const unused = byte === 0 ? 0 : Math.log2(byte & -byte);
  return tag(0x03, Buffer.from(byte === 0 ? [0] : [unused, byte]));
}

/** Authority Information Access (RFC 5280 §4.2.2.1). */
const responder = (url: string): Buffer =>
  extension("1.3.6.1.5.5.7.1.1", sequence(sequence(oid("1.3.6.1.5.5.7.48.1"), text(0x86, url))));

let serial = 1n;

export function makeCertificate(wanted: CertificateWanted = {}): Issued {
  const {
    names = [],
    issuer,
    isAuthority = false,
    usages = [],
    keyUsages,
    keyType = "ec",
  } = wanted;
  const subject = wanted.subject ?? names[0] ?? "nameless";
  const { publicKey, privateKey } = makeKeys(keyType);
  const signer = issuer?.privateKey ?? privateKey;
  const algorithm = algorithms[signer.asymmetricKeyType ?? ""];
  if (algorithm === undefined) throw new TypeError("no such signature");
  const extensions = [
    extension("2.5.29.19", sequence(...(isAuthority ? [tag(0x01, Buffer.of(0xff))] : [])), true),
    ...(names.length > 0 ? [extension("2.5.29.17", sequence(...names.map(alternative)))] : []),
    ...(keyUsages === undefined ? [] : [extension("2.5.29.15", keyUsage(keyUsages), true)]),
    ...(wanted.ocspUrl === undefined ? [] : [responder(wanted.ocspUrl)]),
    ...(wanted.isMustStaple === true
      ? [extension("1.3.6.1.5.5.7.1.24", sequence(integer(5n)))]
      : []),
    ...(wanted.issuerKeyId === undefined
      ? []
      : [extension("2.5.29.35", sequence(tag(0x80, wanted.issuerKeyId)))]),
    ...(usages.length > 0 ? [extension("2.5.29.37", sequence(...usages.map(oid)))] : []),
  ];
  const body = sequence(
    tag(0xa0, integer(2n)),
    integer((serial += 1n)),
    algorithm,
    name(issuer?.subject ?? subject),
    sequence(
      time(wanted.from ?? new Date("2020-01-01T00:00:00Z")),
      time(wanted.to ?? new Date("2099-01-01T00:00:00Z")),
    ),
    name(subject),
    (wanted.publicKey ?? publicKey).export({ type: "spki", format: "der" }),
    tag(0xa3, sequence(...extensions)),
  );
  const hash = signer.asymmetricKeyType === "ed25519" ? null : "sha256";
  const der = sequence(body, algorithm, bits(sign(hash, body, signer)));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    subject,
    pem: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
    privateKey,
  };
}

/** A root and an intermediate that signs leaves; `chain` leads from a leaf to the root. */
export function makeAuthority(): {
  readonly root: Issued;
  readonly intermediate: Issued;
  readonly issue: (wanted: CertificateWanted) => Issued & { readonly chain: string };
} {
  const root = makeCertificate({ subject: "Test Root", isAuthority: true });
  const intermediate = makeCertificate({
    subject: "Test Intermediate",
    isAuthority: true,
    issuer: root,
  });
  return {
    root,
    intermediate,
    issue: (wanted) => {
      const leaf = makeCertificate({ issuer: intermediate, ...wanted });
      return { ...leaf, chain: leaf.pem + intermediate.pem };
    },
  };
}
