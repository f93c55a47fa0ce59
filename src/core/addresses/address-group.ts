// Whose requests count together: those of an IPv4 address; in IPv6 those of a network, of its site, and of what one customer of a provider may have at most
// (RFC 6177: a site gets more than one /64, often a /56, at most a /48).

import { formatIp, parseIp } from "./ip.ts";

const groupBits = [64, 56, 48] as const;

/** As keys of limits, the narrowest first. What is no address is a key of its own. */
export function addressGroups(address: string): readonly [string, ...string[]] {
  const parsed = parseIp(address);
  if (parsed === undefined || parsed.family === 4) return [address];
  const [network, site, most] = groupBits.map((bits) => {
    const below = BigInt(128 - bits);
    return `${formatIp({ family: 6, value: (parsed.value >> below) << below })}/${bits}`;
  });
  return [network ?? address, site ?? address, most ?? address];
}
