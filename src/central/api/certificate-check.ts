// Checks whether a certificate chain and a private key can be served: parsed, in order, in force, for names,
// and belonging together. Reasons never repeat what was sent, except for the label of a block.

import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { createSecureContext } from "node:tls";
import { messageOf } from "../../core/faults.ts";
import { certificateNamesMax } from "../../wire/vault.ts";
import { maySign } from "./certificate-key-usage.ts";
import { certificateNames } from "./certificate-names.ts";
import type { CheckedCertificate } from "../store/vault/certificates.ts";
import { sha256Of } from "../../core/ids.ts";

type Refused = {
  readonly ok: false;
  readonly field: "certificate" | "private_key";
  readonly reason: string;
};
export type CertificateChecked =
  | { readonly ok: true; readonly certificate: CheckedCertificate }
  | Refused;

const chainLengthMax = 10;
const rsaBitsMin = 2_048;
/**
 * The curves, by OpenSSL's names, for which TLS 1.3 has signatures and which clients offer (RFC 8446 §4.2.3).
 * With any other curve nobody can shake hands.
 */
const curves: ReadonlySet<string> = new Set(["prime256v1", "secp384r1", "secp521r1"]);
/**
 * The most that a certificate may begin in the future: it may have been made a moment ago by a clock that is
 * ahead.
 */
const aheadMaxMs = 300_000;
const serverAuth = "1.3.6.1.5.5.7.3.1";
const anyUsage = "2.5.29.37.0";

const certificate = (reason: string): Refused => ({ ok: false, field: "certificate", reason });
const privateKey = (reason: string): Refused => ({ ok: false, field: "private_key", reason });

export function checkCertificate(chainPem: string, keyPem: string, now: Date): CertificateChecked {
  const chain = parseChain(chainPem);
  if ("ok" in chain) return chain;
  const [leaf] = chain;
  const key = parseKey(keyPem);
  if ("ok" in key) return key;
  const fault =
    keyFault(chain, key) ?? orderFault(chain) ?? timeFault(chain, now) ?? usageFault(leaf);
  if (fault !== undefined) return fault;
  const names = certificateNames(leaf);
  if (names.length === 0)
    return certificate(
      "names no host: its subjectAltName has no host name with a dot and no address",
    );
  if (names.length > certificateNamesMax)
    return certificate(`has ${names.length} names, at most ${certificateNamesMax} are served`);
  const checked: CheckedCertificate = {
    names,
    notBefore: leaf.validFromDate.toISOString(),
    notAfter: leaf.validToDate.toISOString(),
    fingerprint: sha256Of(leaf.raw),
    chain: chain.map((one) => one.toString()).join(""),
    privateKey: key.export({ type: "pkcs8", format: "pem" }),
  };
  return contextFault(checked) ?? { ok: true, certificate: checked };
}

type Chain = readonly [X509Certificate, ...X509Certificate[]];

const block = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * Parses a chain. Text between the blocks is allowed (RFC 7468 §5.2) and dropped, but not text that was meant
 * for a block: the chain would lack it, and nobody would be told.
 */
function parseChain(pem: string): Chain | Refused {
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(pem))
    return certificate("holds a private key: send it as private_key");
  const blocks = pem.match(block) ?? [];
  if (blocks.length > chainLengthMax)
    return certificate(`has ${blocks.length} certificates, at most ${chainLengthMax} make a chain`);
  const stray = strayBoundary(pem);
  if (stray !== undefined) return certificate(stray);
  const chain: X509Certificate[] = [];
  for (const [at, block] of blocks.entries()) {
    try {
      chain.push(new X509Certificate(block));
    } catch {
      return certificate(`certificate ${at + 1} cannot be read`);
    }
  }
  const [leaf, ...rest] = chain;
  return leaf === undefined
    ? certificate("is not PEM: no -----BEGIN CERTIFICATE----- with its end was found")
    : [leaf, ...rest];
}

/**
 * Returns the first line of a block that is none: its other end is missing, it is of another kind, or
 * mistyped.
 */
function strayBoundary(pem: string): string | undefined {
  for (const [before, text] of pem.split(block).entries()) {
    const line = text.split(/[\r\n]+/).find(isLikeBoundary);
    if (line !== undefined) return boundaryFault(line, before + 1);
  }
  return undefined;
}

/**
 * Returns whether a line looks like a boundary: with fewer dashes, in small letters, or with the dashes that
 * text programs make of two.
 */
function isLikeBoundary(line: string): boolean {
  return (
    /-----(?:BEGIN|END) .{0,64}-----|\b(?:BEGIN|END)\b.{0,64}CERTIFICATE/.test(line) ||
    /^\s*[-\u2010-\u2015]+\s*(?:BEGIN|END)\b|\b(?:BEGIN|END)\b.{0,64}[-\u2010-\u2015]\s*$/i.test(
      line,
    )
  );
}

function boundaryFault(line: string, no: number): string {
  const [, word, label] = /-----(BEGIN|END) ([A-Z][A-Z0-9 ]{0,39})-----/.exec(line) ?? [];
  if (label === undefined)
    return /BEGIN/i.test(line)
      ? `certificate ${no} has a first line other than -----BEGIN CERTIFICATE-----`
      : `certificate ${no} has a last line other than -----END CERTIFICATE-----`;
  if (label !== "CERTIFICATE") return `block ${no} is ${label}, expected CERTIFICATE`;
  return `certificate ${no} has no ${word === "BEGIN" ? "end" : "beginning"}`;
}

function parseKey(pem: string): KeyObject | Refused {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(pem))
    return privateKey("is encrypted: remove its passphrase first");
  const blocks = pem.match(/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/g) ?? [];
  if (blocks.length === 0)
    return privateKey("is not PEM: no -----BEGIN PRIVATE KEY----- was found");
  if (blocks.length > 1) return privateKey(`has ${blocks.length} keys, one is needed`);
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return privateKey("cannot be read");
  }
  const type = key.asymmetricKeyType ?? "unknown";
  if (!["rsa", "ec", "ed25519"].includes(type))
    return privateKey(`is of type ${type}; RSA, EC and Ed25519 are served`);
  const { modulusLength: bits, namedCurve = "unnamed" } = key.asymmetricKeyDetails ?? {};
  if (type === "ec" && !curves.has(namedCurve))
    return privateKey(`has the curve ${namedCurve}; P-256, P-384 and P-521 are served`);
  return bits !== undefined && bits < rsaBitsMin
    ? privateKey(`has ${bits} bits; RSA keys need at least ${rsaBitsMin}`)
    : key;
}

function keyFault(chain: Chain, key: KeyObject): Refused | undefined {
  const owner = chain.findIndex((one) => one.checkPrivateKey(key));
  if (owner === 0) return undefined;
  return owner < 0
    ? privateKey("belongs to another certificate")
    : certificate(
        `is in the wrong order: the key belongs to certificate ${owner + 1}, which must be the first`,
      );
}

function orderFault(chain: Chain): Refused | undefined {
  for (const [at, one] of chain.entries()) {
    const issuer = chain[at + 1];
    if (issuer === undefined) return undefined;
    if (!one.checkIssued(issuer) || !one.verify(issuer.publicKey))
      return certificate(
        `is in the wrong order: certificate ${at + 2} did not sign certificate ${at + 1}`,
      );
  }
  return undefined;
}

function timeFault(chain: Chain, now: Date): Refused | undefined {
  for (const [at, { validFromDate: from, validToDate: to }] of chain.entries()) {
    const which = chain.length === 1 ? "" : `certificate ${at + 1} `;
    if (to <= now) return certificate(`${which}expired at ${to.toISOString()}`);
    if (from.getTime() > now.getTime() + aheadMaxMs)
      return certificate(`${which}is not valid before ${from.toISOString()}`);
  }
  return undefined;
}

/**
 * Checks what the key may be used for. `keyUsage` is Node's name for the extended usages; undefined allows
 * any. A server's key must be allowed to sign (RFC 8446 §4.4.2.2).
 */
function usageFault(leaf: X509Certificate): Refused | undefined {
  if (!maySign(leaf))
    return certificate("is not for servers: its key usage lacks digitalSignature");
  const usages: readonly string[] | undefined = leaf.keyUsage;
  return usages === undefined || usages.includes(serverAuth) || usages.includes(anyUsage)
    ? undefined
    : certificate("is not for servers: its extended key usage lacks serverAuth");
}

/** Returns what OpenSSL would refuse at the host, such as a signature by SHA-1. */
function contextFault({ chain, privateKey: key }: CheckedCertificate): Refused | undefined {
  try {
    createSecureContext({ cert: chain, key });
    return undefined;
  } catch (error) {
    return certificate(`cannot be served: ${messageOf(error)}`);
  }
}
