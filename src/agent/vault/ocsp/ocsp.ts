// OCSP (RFC 6960): the question about one certificate, and what an answer is worth. An answer is stapled only if it is about this certificate, says that it is good,
// is signed by the issuer or by whom the issuer has named for it, and is of now.

import { hash, verify, X509Certificate, type KeyObject } from "node:crypto";
import { der, inside, readAll, readDer, readTime, type DerValue } from "./der.ts";

export type OcspSubject = {
  readonly leaf: X509Certificate;
  readonly issuer: X509Certificate;
  /** The first responder that the certificate names, of http. */
  readonly url: string;
  /** Browsers refuse it without an answer of OCSP (RFC 7633). */
  readonly isMustStaple: boolean;
  /** CertID, with SHA-1: the only one that every responder knows. */
  readonly certId: Uint8Array;
};

export type OcspJudged =
  | {
      readonly kind: "good";
      readonly thisUpdateMs: number;
      readonly nextUpdateMs: number;
    }
  | { readonly kind: "revoked" }
  | { readonly kind: "unusable"; readonly reason: string };

const sha1 = Buffer.from("300906052b0e03021a0500", "hex");
const mustStapleOid = Buffer.from("06082b06010505070118", "hex");
const basicOid = Buffer.from("06092b0601050507300101", "hex");
const ocspSigning = "1.3.6.1.5.5.7.3.9";
/** Hash by signature algorithm: RSA and ECDSA with SHA-2, and Ed25519, which has its own. */
const hashes: Readonly<Record<string, string | null>> = {
  "06092a864886f70d01010b": "sha256",
  "06092a864886f70d01010c": "sha384",
  "06092a864886f70d01010d": "sha512",
  "06082a8648ce3d040302": "sha256",
  "06082a8648ce3d040303": "sha384",
  "06082a8648ce3d040304": "sha512",
  "06032b6570": null,
};
/** Clocks of responders may be ahead of ours by so much. */
const skewMs = 300_000;
/** An answer without nextUpdate, or one that would hold for longer, is believed for so long. */
const longestMs = 10 * 86_400_000;

/** Returns what to ask about the certificate whose chain this is; undefined where nobody can be asked. */
export function ocspSubject(chain: string): OcspSubject | undefined {
  try {
    return readSubject(chain);
  } catch {
    return undefined; // What this library does not read is served without an answer.
  }
}

function readSubject(chain: string): OcspSubject | undefined {
  const [leafPem, issuerPem] =
    chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END [A-Z ]+-----/g) ?? [];
  if (leafPem === undefined || issuerPem === undefined) return undefined;
  const [leaf, issuer] = [new X509Certificate(leafPem), new X509Certificate(issuerPem)];
  if (!leaf.checkIssued(issuer) || !leaf.verify(issuer.publicKey)) return undefined;
  const url = /^OCSP - URI:(http:\/\/\S+)$/im.exec(leaf.infoAccess ?? "")?.[1];
  if (url === undefined || !URL.canParse(url)) return undefined;
  const certId = certIdOf(leaf, issuer);
  if (certId === undefined) return undefined;
  const isMustStaple = Buffer.from(leaf.raw).includes(mustStapleOid);
  return { leaf, issuer, url, isMustStaple, certId };
}

function certIdOf(leaf: X509Certificate, issuer: X509Certificate): Uint8Array | undefined {
  const body = inside(inside(readDer(leaf.raw))?.[0]);
  // [0] version, which is left out in version 1.
  const at = body?.[0]?.tag === 0xa0 ? 1 : 0;
  const [serial, name] = [body?.[at], body?.[at + 2]];
  const spki = inside(readDer(issuer.publicKey.export({ type: "spki", format: "der" })));
  const key = spki?.[1]?.content.subarray(1); // Behind the count of unused bits.
  if (serial?.tag !== 0x02 || name === undefined || key === undefined) return undefined;
  const digest = (bytes: Uint8Array): Buffer => der(0x04, hash("sha1", bytes, "buffer"));
  return der(0x30, sha1, digest(name.whole), digest(key), serial.whole);
}

/** Without a nonce, so that responders may answer with what they have signed before. */
export function ocspRequest({ certId }: OcspSubject): Uint8Array {
  return der(0x30, der(0x30, der(0x30, der(0x30, certId))));
}

export function judgeOcsp(subject: OcspSubject, bytes: Uint8Array, nowMs: number): OcspJudged {
  const whole = readDer(bytes);
  const [status, held] = inside(whole) ?? [];
  if (whole?.whole.length !== bytes.length || status?.tag !== 0x0a)
    return unusable("is no answer of OCSP");
  if (status.content[0] !== 0) return unusable(`says that it failed (${status.content[0]})`);
  const [type, octets] = inside(inside(held, 0xa0)?.[0]) ?? [];
  if (type === undefined || !basicOid.equals(type.whole) || octets?.tag !== 0x04)
    return unusable("is of no known type");
  const [data, algorithm, signature, certificates] = inside(readDer(octets.content)) ?? [];
  if (data === undefined || algorithm === undefined || signature?.tag !== 0x03)
    return unusable("cannot be read");
  if (!isSigned({ subject, data, algorithm, signature, certificates, nowMs }))
    return unusable("is not signed by the issuer or for it");
  return judgeData(subject, data, nowMs);
}

function judgeData({ certId }: OcspSubject, data: DerValue, nowMs: number): OcspJudged {
  // version [0], responder [1] or [2], producedAt, responses
  const responses = inside(data)?.find(({ tag }) => tag === 0x30);
  for (const single of inside(responses) ?? []) {
    const [id, status, thisUpdate, more] = inside(single) ?? [];
    if (id === undefined || !isSameId(id, certId)) continue;
    if (status?.tag === 0xa1) return { kind: "revoked" };
    if (status?.tag !== 0x80) return unusable("does not know the certificate");
    const thisUpdateMs = readTime(thisUpdate);
    const saidMs = more?.tag === 0xa0 ? readTime(readDer(more.content)) : undefined;
    if (thisUpdateMs === undefined) return unusable("has no time");
    const nextUpdateMs = Math.min(saidMs ?? Infinity, thisUpdateMs + longestMs);
    if (thisUpdateMs > nowMs + skewMs) return unusable("is of the future");
    if (nextUpdateMs <= nowMs) return unusable("is out of date");
    return { kind: "good", thisUpdateMs, nextUpdateMs };
  }
  return unusable("is about another certificate");
}

/** The parameters of SHA-1 may be left out. */
function isSameId(id: DerValue, certId: Uint8Array): boolean {
  const [theirs, ours] = [inside(id), inside(readDer(certId))];
  if (theirs?.length !== 4 || ours === undefined) return false;
  const names = [inside(theirs[0])?.[0], inside(ours[0])?.[0]];
  const pairs = [names, ...[1, 2, 3].map((at) => [theirs[at], ours[at]])];
  return pairs.every(
    ([one, other]) =>
      one !== undefined && other !== undefined && Buffer.from(one.whole).equals(other.whole),
  );
}

type Signed = {
  readonly subject: OcspSubject;
  readonly data: DerValue;
  readonly algorithm: DerValue;
  readonly signature: DerValue;
  readonly certificates: DerValue | undefined;
  readonly nowMs: number;
};

function isSigned(signed: Signed): boolean {
  const { subject, data, algorithm, signature } = signed;
  const name = Buffer.from(inside(algorithm)?.[0]?.whole ?? []).toString("hex");
  const digest = hashes[name];
  if (digest === undefined) return false;
  const isBy = (key: KeyObject): boolean => {
    try {
      return verify(digest, data.whole, key, signature.content.subarray(1));
    } catch {
      return false; // The key is of another kind than the signature.
    }
  };
  return isBy(subject.issuer.publicKey) || delegates(signed).some((key) => isBy(key));
}

/** The keys of those whom the issuer has named for its answers (RFC 6960 §4.2.2.2). */
function delegates({ subject, certificates, nowMs }: Signed): readonly KeyObject[] {
  const { issuer } = subject;
  const listed = certificates?.tag === 0xa0 ? readDer(certificates.content) : undefined;
  const keys: KeyObject[] = [];
  for (const { whole } of readAll(listed?.content ?? Buffer.alloc(0))?.slice(0, 4) ?? []) {
    try {
      const one = new X509Certificate(whole);
      const isOfNow =
        Date.parse(one.validFrom) <= nowMs + skewMs && Date.parse(one.validTo) > nowMs;
      const mayAnswer = one.keyUsage?.includes(ocspSigning) ?? false;
      if (isOfNow && mayAnswer && one.checkIssued(issuer) && one.verify(issuer.publicKey))
        keys.push(one.publicKey);
    } catch {
      // No certificate.
    }
  }
  return keys;
}

const unusable = (reason: string): OcspJudged => ({ kind: "unusable", reason });
