// Resolves the names of URLs that customers wrote: none of them may lead into the network that the program stands in, unless its settings allow.
//
// A name may resolve to something else a second later, so the connection gets the very addresses that were judged.

import { lookup, type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { isPublicAddress } from "../core/addresses/public-address.ts";

export type ResolveName = (
  name: string,
  options: { readonly all: true },
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

export type Judging = {
  /** Whether a name may lead into private networks. */
  readonly mayBePrivate: boolean;
  /** Makes the error for a name that leads to a private address. */
  readonly refuse: (name: string, address: string) => Error;
  /** Replaces the system's resolver. */
  readonly resolve?: ResolveName;
};

/** Returns what a request resolves names with. An address in the URL itself is not resolved, and is judged where the URL is read. */
export function judgedLookup({ mayBePrivate, refuse, resolve = lookup }: Judging): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { all: true }, (error, addresses) => {
      const found = error === null ? addresses : [];
      const [first] = found;
      const inner = mayBePrivate
        ? undefined
        : found.find(({ address }) => !isPublicAddress(address));
      if (error !== null || first === undefined) callback(error ?? new Error("no address"), "", 0);
      // One private address is enough to refuse: whoever mixes them means harm, or has a broken zone.
      else if (inner !== undefined) callback(refuse(hostname, inner.address), "", 0);
      else if (options.all === true) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}
