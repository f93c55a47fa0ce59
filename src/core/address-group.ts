// Whose requests count together: an IPv4 address, or the /64 that one IPv6 subscriber has all addresses of (RFC 6177).

import { formatIp, parseIp } from "./ip.ts";

const subscriberBits = 64n;

/** As a key of a limit. What is no address is a key of its own. */
export function addressGroup(address: string): string {
  const parsed = parseIp(address);
  if (parsed === undefined || parsed.family === 4) return address;
  const network = (parsed.value >> subscriberBits) << subscriberBits;
  return `${formatIp({ family: 6, value: network })}/64`;
}
