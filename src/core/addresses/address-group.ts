// Groups addresses whose requests count together. An IPv4 address is a group by itself. An IPv6 address
// counts in three: its network, its site, and the most that one customer of a provider may have (RFC 6177: a
// site gets more than one /64, often a /56, at most a /48).

import { formatIp, parseIp } from "./ip.ts";

const groupBits = [64, 56, 48] as const;

/**
 * Returns the groups of an address as keys of limits, narrowest first. Text that is no address is its own
 * key.
 */
export function addressGroups(address: string): readonly [string, ...string[]] {
  const parsed = parseIp(address);
  if (parsed === undefined || parsed.family === 4) return [address];
  const [network, site, most] = groupBits.map((bits) => {
    const below = BigInt(128 - bits);
    return `${formatIp({ family: 6, value: (parsed.value >> below) << below })}/${bits}`;
  });
  return [network ?? address, site ?? address, most ?? address];
}
