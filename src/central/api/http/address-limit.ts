// A limit by address that nobody multiplies by having many addresses: an IPv6 site may do twice what one of
// its networks may, and a /48 four times.

import { addressGroups } from "../../../core/addresses/address-group.ts";
import type { RateLimit } from "../../agents/rate-limit.ts";
import type { ResourceDeps } from "../deps.ts";

export type AddressLimit = {
  /** Takes one, or returns how many milliseconds to wait until there is one. */
  take(address: string): number;
  /** Gives back what was taken by a request that the limit is not meant for. */
  give(address: string): void;
  /** Returns the wait of a `take`, without taking. */
  waitMs(address: string): number;
};

const shares = [1, 2, 4];

export function createAddressLimit(
  rateLimit: ResourceDeps["rateLimit"],
  limit: { readonly burst: number; readonly perSecond: number; readonly keysMax: number },
): AddressLimit {
  const levels = shares.map((share) =>
    rateLimit({ ...limit, burst: share * limit.burst, perSecond: share * limit.perSecond }),
  );
  const of = (address: string): readonly { readonly level: RateLimit; readonly key: string }[] => {
    const groups = addressGroups(address);
    return levels.flatMap((level, at) => {
      const key = groups[at];
      return key === undefined ? [] : [{ level, key }];
    });
  };
  const waitMs = (address: string): number =>
    Math.max(...of(address).map(({ level, key }) => level.waitMs(key)));
  return {
    waitMs,
    take(address) {
      const wait = waitMs(address);
      if (wait === 0) for (const { level, key } of of(address)) level.take(key);
      return wait;
    },
    give(address) {
      for (const { level, key } of of(address)) level.give(key);
    },
  };
}
