// Identifiers that cannot be mixed up: each has one parser, and nothing else makes one.

import { createHash } from "node:crypto";

declare const brand: unique symbol;
type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Public name of a deployment site: 16 lower-case hex characters. */
export type Name16 = Brand<string, "Name16">;
/** Secret of a deployment site: 32 lower-case hex characters, 128 bits. */
export type Secret16 = Brand<string, "Secret16">;
/** SHA-256 in 64 lower-case hex characters. */
export type Sha256 = Brand<string, "Sha256">;
/** Lower-case ASCII host name with at least one dot, no trailing dot (RFC 1123 §2.1, IDNA in its A-label form). */
export type DomainName = Brand<string, "DomainName">;

export function parseName16(raw: unknown): Name16 | undefined {
  return typeof raw === "string" && /^[0-9a-f]{16}$/.test(raw) ? (raw as Name16) : undefined;
}

export function parseSecret16(raw: unknown): Secret16 | undefined {
  return typeof raw === "string" && /^[0-9a-f]{32}$/.test(raw) ? (raw as Secret16) : undefined;
}

export function parseSha256(raw: unknown): Sha256 | undefined {
  return typeof raw === "string" && /^[0-9a-f]{64}$/.test(raw) ? (raw as Sha256) : undefined;
}

export function sha256Of(data: string | Uint8Array): Sha256 {
  return createHash("sha256").update(data).digest("hex") as Sha256; // The digest has this form by its making.
}

/** The longest name by RFC 1035 §2.3.4, without the dot at the end. */
const nameCharsMax = 253;
const labelCharsMax = 63;
const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Lower-cases, converts to A-labels, drops the dot of an absolute name (RFC 1034 §3.1) and checks. Returns
 * undefined for text that is no host name below a dot, which includes addresses and single labels.
 */
export function parseDomainName(raw: unknown): DomainName | undefined {
  if (typeof raw !== "string" || raw.length === 0 || raw.length > nameCharsMax + 1)
    return undefined;
  // Only characters that a host name can hold: the URL parser would cut at `/`, `?`, `@` or `:` and strip
  // blanks.
  if (/[\s/?#@:\\%[\]<>^|]/.test(raw)) return undefined;
  let ascii: string;
  try {
    ascii = new URL(`http://${raw}`).hostname.replace(/\.$/, "");
  } catch {
    return undefined;
  }
  const labels = ascii.split(".");
  if (ascii.length > nameCharsMax || labels.length < 2 || !labels.every((part) => label.test(part)))
    return undefined;
  if (/^\d+$/.test(labels.at(-1) ?? "")) return undefined; // An IPv4 address, not a name.
  return ascii as DomainName;
}

/**
 * Says why a text is no domain name, in words that follow the name of the field. Returns undefined if it is
 * one.
 */
export function namedDomainFault(raw: string): string | undefined {
  if (parseDomainName(raw) !== undefined) return undefined;
  if (/\s/.test(raw)) return "must be a host name, without blanks";
  if (/[/?#@\\]/.test(raw)) return "must be a host name alone, not a URL or an address of mail";
  if (raw.startsWith("*.")) return "must be a host name, not a wildcard";
  if (/^[\d.]+$|^\[|:.*:/.test(raw)) return "must be a host name, not an IP address";
  if (raw.includes(":")) return "must be a host name, without a port";
  const labels = raw.replace(/\.$/, "").split(".");
  if (raw.length > nameCharsMax) return `must be at most ${nameCharsMax} characters`;
  if (labels.length > 1 && labels.includes("")) return "must have no empty label between its dots";
  if (labels.some(({ length }) => length > labelCharsMax))
    return `must have labels of at most ${labelCharsMax} characters between its dots`;
  if (labels.length < 2) return "must be a host name with at least one dot";
  if (labels.some((part) => /^-|-$/.test(part)))
    return "must have no label that begins or ends with a hyphen";
  return "must be a host name: letters, digits and hyphens between dots";
}

/**
 * Returns the host of an authority (`host[:port]`) in lower case, without a trailing dot, or undefined if it
 * is no authority.
 */
export function hostOfAuthority(authority: string): string | undefined {
  const host = /^(\[[0-9a-fA-F:.]+\]|[^:@/\s]+)(?::\d{0,5})?$/.exec(authority)?.[1]?.toLowerCase();
  return host?.endsWith(".") ? host.slice(0, -1) : host;
}
