// The names that a certificate is good for: DNS names and addresses of its subjectAltName (RFC 6125; browsers
// look at nothing else).

import type { X509Certificate } from "node:crypto";
import { parseDomainName } from "../../core/ids.ts";
import { formatIp, parseIp } from "../../core/addresses/ip.ts";

/**
 * Returns the names sorted, each once. Leaves out what is neither host name nor address (mail, URI, single
 * labels).
 */
export function certificateNames({ subjectAltName }: X509Certificate): readonly string[] {
  const names = new Set<string>();
  for (const { kind, value } of parts(subjectAltName ?? "")) {
    const name =
      kind === "DNS" ? hostName(value) : kind === "IP Address" ? address(value) : undefined;
    if (name !== undefined) names.add(name);
  }
  return [...names].toSorted();
}

/**
 * Splits `DNS:a.example, IP Address:192.0.2.1, DNS:"odd \\u002c name"`; values that could be misread are JSON
 * strings.
 */
function parts(text: string): readonly { readonly kind: string; readonly value: string }[] {
  return [...text.matchAll(/(?:^|, )([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)/g)].map((match) => ({
    kind: match[1] ?? "",
    value: match[2] ?? "",
  }));
}

/** Parses a host name, or a wildcard, which is the whole first label (RFC 6125 §6.4.3). */
function hostName(value: string): string | undefined {
  // Clients compare with names that have no dot at the end.
  if (value.endsWith(".")) return undefined;
  const isWildcard = value.startsWith("*.");
  const name = parseDomainName(isWildcard ? value.slice(2) : value);
  if (name === undefined) return undefined;
  return isWildcard ? `*.${name}` : name;
}

function address(value: string): string | undefined {
  const ip = parseIp(value);
  return ip && formatIp(ip);
}
