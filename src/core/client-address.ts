// Whose request is it? The peer's, unless the peer is a trusted proxy: then the rightmost address in X-Forwarded-For that is not one.

import { formatIp, parseIp, type IpAddress } from "./ip.ts";
import { buildRangeTable, lookupRange, type RangeTable } from "./range-table.ts";

/** Addresses and CIDR ranges that were validated where they came in. */
export function compileTrusted(ranges: readonly string[]): RangeTable {
  return buildRangeTable(ranges.map((range) => ({ bot: "proxy", range })));
}

export type ClientAddress = {
  readonly address: IpAddress;
  readonly text: string;
  /** Whether the peer's forwarding headers are believed. */
  readonly isProxied: boolean;
};

/** The peer of a socket as Node spells it; undefined for what is no address (a closed socket). A zone is dropped. */
export function parsePeer(remoteAddress: string | undefined): IpAddress | undefined {
  return remoteAddress === undefined ? undefined : parseIp(remoteAddress.replace(/%.*$/, ""));
}

/**
 * Walks the list from the right while the hop that said so is trusted. What is no address ends the walk: the last hop that is known
 * stands. A list of trusted addresses only gives the leftmost.
 */
export function clientAddress(
  peer: IpAddress,
  forwardedFor: string | undefined,
  trusted: RangeTable,
): ClientAddress {
  const isProxied = lookupRange(trusted, peer) !== undefined;
  let address = peer;
  if (isProxied && forwardedFor !== undefined) {
    for (const hop of forwardedFor.split(",").toReversed()) {
      const next = parseHop(hop.trim());
      if (next === undefined) break;
      address = next;
      if (lookupRange(trusted, next) === undefined) break;
    }
  }
  return { address, text: formatIp(address), isProxied };
}

/** Some proxies write a port: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function parseHop(text: string): IpAddress | undefined {
  const match = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/.exec(text);
  return parseIp(match?.[1] ?? match?.[2] ?? text);
}
