// When a certificate is renewed: at two thirds of its life, or when its directory wants it (ARI, RFC 9773).

import { certificateExtension, derContents, derTags } from "../der.ts";

const hourMs = 3_600_000;
const newForMs = 6 * hourMs;

/** The life of a certificate, ms since the epoch. */
export type Life = {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** When central got it, by central's clock: it may be another than the directory's, and directories backdate. */
  readonly issuedMs: number;
};

const renewedAfter = 2 / 3;
/** Of the life, before that: certificates that were issued together are not renewed together. */
const jitter = 1 / 30;

/** Returns when the certificate is renewed if its directory says nothing, ms since the epoch; not while it is new. */
export function renewalMs(life: Life, random: number): number {
  const { notBeforeMs, notAfterMs } = life;
  const lifeMs = notAfterMs - notBeforeMs;
  return Math.floor(
    Math.max(newUntilMs(life), notBeforeMs + lifeMs * (renewedAfter - jitter * random)),
  );
}

/**
 * A certificate that is new is not renewed yet: one that comes when its renewal is past already, because clocks differ,
 * its directory backdates, or gives the same window again, would be ordered without end.
 */
function newUntilMs({ notBeforeMs, notAfterMs, issuedMs }: Life): number {
  return issuedMs + Math.min(newForMs, (notAfterMs - notBeforeMs) / 10);
}

const dayMs = 24 * hourMs;

/**
 * Whether a renewal should long be done: a day after it was due, or a quarter of the time that was left then. What it
 * hangs on does not matter.
 */
export function isRenewalOverdue(renewMs: number, notAfterMs: number, nowMs: number): boolean {
  return nowMs >= renewMs + Math.min(dayMs, (notAfterMs - renewMs) / 4);
}

/** The time in which a directory wants a certificate to be renewed (RFC 9773 §4.2), ms since the epoch; NaN if it is not a time. */
export type RenewalWindow = { readonly startMs: number; readonly endMs: number };

/**
 * Returns a time in the window, each as likely as another, so that a directory's certificates are spread over it
 * (RFC 9773 §4.2); not while the certificate is new. Undefined where the window is none, or ends beyond the certificate.
 */
export function renewalWithinMs(
  { startMs, endMs }: RenewalWindow,
  life: Life,
  random: number,
): number | undefined {
  if (!(endMs > startMs) || endMs > life.notAfterMs) return undefined;
  return Math.floor(Math.max(newUntilMs(life), startMs + (endMs - startMs) * random));
}

const askedAgainMs = 6 * hourMs;

/** Returns after which time a directory is asked for the window again: what it says, between an hour and a day. */
export function renewalAskedAgainMs(retryAfterMs: number | undefined): number {
  return Math.min(24 * hourMs, Math.max(hourMs, retryAfterMs ?? askedAgainMs));
}

/** 2.5.29.35 */
const authorityKeyOid = Buffer.from([0x55, 0x1d, 0x23]);
/** The tag of keyIdentifier in AuthorityKeyIdentifier (RFC 5280 §4.2.1.1). */
const keyIdentifierTag = 0x80;

/**
 * Returns the name by which a directory knows a certificate (RFC 9773 §4.1). Undefined if the certificate does not
 * name its issuer's key.
 */
export function renewalName(certificate: Uint8Array): string | undefined {
  const [authority] = certificateExtension(certificate, authorityKeyOid);
  const [list] = authority === undefined ? [] : derContents(authority, derTags.sequence);
  const [keyId] = list === undefined ? [] : derContents(list, keyIdentifierTag);
  const serial = serialOf(certificate);
  if (keyId === undefined || serial === undefined) return undefined;
  return `${Buffer.from(keyId).toString("base64url")}.${Buffer.from(serial).toString("base64url")}`;
}

function serialOf(certificate: Uint8Array): Uint8Array | undefined {
  const [outer] = derContents(certificate, derTags.sequence);
  const [signed] = outer === undefined ? [] : derContents(outer, derTags.sequence);
  // The version stands before it in an element of another tag.
  return signed === undefined ? undefined : derContents(signed, derTags.integer)[0];
}
