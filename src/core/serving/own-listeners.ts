// Tells whether an address and port are a listener of this agent. A backend that is the agent itself would
// ask itself until something gives way, and its metrics are nobody's site.

import { plainAddress } from "./backend-url.ts";

export type OwnListener = { readonly host: string; readonly port: number };

const anyHost: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);
const loopbacks = ["127.0.0.1", "::1"];

/**
 * `host` is an address, or a name that was not resolved. `localAddresses` returns those of this host's
 * interfaces, and is called only if the port matches.
 */
export function reachesOwn(
  host: string,
  port: number,
  own: readonly OwnListener[],
  localAddresses: () => readonly string[],
): boolean {
  const candidates = own.filter((listener) => listener.port === port);
  if (candidates.length === 0) return false;
  const asked = addressesOf(host);
  const isHere = (address: string): boolean =>
    address === "::1" ||
    address.startsWith("127.") ||
    localAddresses().some((local) => plainAddress(local) === address);
  return candidates.some((listener) => {
    const listening = addressesOf(listener.host);
    if (asked.some((address) => listening.includes(address))) return true;
    return listening.some((address) => anyHost.has(address)) && asked.some(isHere);
  });
}

/**
 * Returns the addresses of a host in their one spelling. A name other than the loopback's stands for itself:
 * it is judged again when it has been resolved.
 */
function addressesOf(host: string): readonly string[] {
  const bare = host
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
  if (bare === "localhost" || bare.endsWith(".localhost")) return loopbacks;
  return [plainAddress(bare) ?? bare];
}
