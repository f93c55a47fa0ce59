// Identifiers that cannot be mixed up: each has one parser, and nothing else makes one.

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

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Lower-cases, converts to A-labels and checks. Undefined for what is no host name below a dot: addresses and single labels included. */
export function parseDomainName(raw: unknown): DomainName | undefined {
  if (typeof raw !== "string" || raw.length === 0 || raw.length > 253) return undefined;
  // Only characters a host name can hold: the URL parser would cut at `/`, `?`, `@` or `:` and strip blanks.
  if (/[\s/?#@:\\%[\]<>^|]/.test(raw)) return undefined;
  let ascii: string;
  try {
    ascii = new URL(`http://${raw}`).hostname;
  } catch {
    return undefined;
  }
  const labels = ascii.split(".");
  if (ascii.length > 253 || labels.length < 2 || !labels.every((part) => label.test(part)))
    return undefined;
  if (/^\d+$/.test(labels.at(-1) ?? "")) return undefined; // An IPv4 address, not a name.
  return ascii as DomainName;
}

/** The host of an authority (`host[:port]`), lower-case, without a trailing dot. Undefined when it is none. */
export function hostOfAuthority(authority: string): string | undefined {
  const host = /^(\[[0-9a-fA-F:.]+\]|[^:@/\s]+)(?::\d{0,5})?$/.exec(authority)?.[1]?.toLowerCase();
  return host?.endsWith(".") ? host.slice(0, -1) : host;
}
