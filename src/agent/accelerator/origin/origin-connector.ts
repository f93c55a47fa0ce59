// Connecting to an origin: what its name resolves to is judged at each connection, by the rules that its URL was judged by before.
//
// A harmless name may resolve to a metadata service, to this agent or to no host at all, and to something else a second later: the addresses that
// were judged are the ones that are connected to.

import { lookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { buildConnector } from "undici";
import { reachedAddressFault } from "../../../core/serving/backend-url.ts";
import { reachesOwn, type OwnListener } from "../../../core/serving/own-listeners.ts";

/** Finds every address of a name, in the system's order. */
export type Resolve = (
  name: string,
  options: { readonly all: true; readonly family?: number; readonly hints?: number },
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

export type OriginGuard = {
  /** The listeners of this agent itself. */
  readonly ownListeners: readonly OwnListener[];
  /** Used in the place of the system's. */
  readonly resolve?: Resolve;
  /** Used in the place of this host's addresses. */
  readonly localAddresses?: () => readonly string[];
};

export class OriginRefused extends Error {
  readonly code = "ERR_ORIGIN_REFUSED";
}

/** Creates the connector for connections to one origin. */
export function originConnector(
  origin: URL,
  timeoutMs: number,
  guard: OriginGuard,
): buildConnector.connector {
  const portOfScheme = origin.protocol === "https:" ? 443 : 80;
  const port = origin.port === "" ? portOfScheme : Number(origin.port);
  const refusal = (address: string): string | undefined =>
    reachedAddressFault(address) ??
    (reachesOwn(address, port, guard.ownListeners, guard.localAddresses ?? (() => localAddresses()))
      ? `points at a listener of this agent (${address}, port ${port})`
      : undefined);
  const connect = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    lookup: guardedLookup(guard.resolve ?? lookup, refusal),
  });
  // Addresses are not looked up. Names may be what the URL says (`[::1]`), brackets and all.
  const literal = origin.hostname.replace(/^\[(.*)\]$/, "$1");
  return (options, callback) => {
    const refused = isIP(literal) === 0 ? undefined : refusal(literal);
    if (refused !== undefined) {
      callback(new OriginRefused(`${origin.hostname} ${refused}`), null);
      return;
    }
    connect(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      const reached = ownEnd(socket, guard.ownListeners);
      if (reached === undefined) {
        callback(null, socket);
        return;
      }
      socket.destroy();
      const said = `points at a listener of this agent (${reached}, port ${port})`;
      callback(new OriginRefused(`${origin.hostname} ${said}`), null);
    });
  };
}

/**
 * The address of one of our own listeners that this connection leads to. Whoever connects to an address of the own host does so from that address, so this
 * also holds where the host's addresses cannot be listed.
 */
function ownEnd(
  { localAddress, remoteAddress, remotePort }: Socket,
  own: readonly OwnListener[],
): string | undefined {
  if (remoteAddress === undefined || remoteAddress !== localAddress) return undefined;
  const isOwn = reachesOwn(remoteAddress, remotePort ?? 0, own, () => [remoteAddress]);
  return isOwn ? remoteAddress : undefined;
}

function guardedLookup(
  resolve: Resolve,
  refusal: (address: string) => string | undefined,
): LookupFunction {
  return (hostname, options, callback) => {
    const { family, hints } = options;
    const asked = {
      all: true as const,
      ...(typeof family === "number" && { family }),
      ...(hints !== undefined && { hints }),
    };
    resolve(hostname, asked, (error, addresses) => {
      const found = error === null ? addresses : [];
      const [first] = found;
      const refused = found.map(({ address }) => refusal(address)).find(Boolean);
      if (error !== null || first === undefined) callback(error ?? new Error("no address"), "", 0);
      else if (refused !== undefined) callback(new OriginRefused(`${hostname} ${refused}`), "", 0);
      else if (options.all === true) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}

/**
 * Returns the addresses of this host, which change while it runs. There are none where the process may not ask for them (a sandbox without netlink): then an
 * address shows that it is this host's when it is connected to.
 */
export function localAddresses(
  list: typeof networkInterfaces = networkInterfaces,
): readonly string[] {
  let interfaces: ReturnType<typeof networkInterfaces>;
  try {
    interfaces = list();
  } catch {
    return [];
  }
  return Object.values(interfaces).flatMap(
    (addresses) => addresses?.map(({ address }) => address) ?? [],
  );
}
