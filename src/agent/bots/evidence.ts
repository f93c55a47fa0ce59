// What speaks for and against a visitor on a host: the sets that hold the address, the name the user agent claims.

import { parseIp, type IpAddress } from "../../core/ip.ts";
import { lookupRange, type RangeTable } from "../../core/range-table.ts";
import type { HostBots } from "../../core/serving-state.ts";
import { decide, type Evidence, type Verdict } from "../../core/verdict.ts";

/** `clientIp` that is no address (a unix socket, a spoof) is in no set. Synchronous. */
export function judgeVisitor(
  bots: HostBots,
  clientIp: string,
  claimed: string | undefined,
): Verdict {
  return decide(bots, gather(bots, parseIp(clientIp), claimed));
}

function gather(
  bots: HostBots,
  address: IpAddress | undefined,
  claimed: string | undefined,
): Evidence {
  return {
    vip: address === undefined ? undefined : firstOwner(bots.vip, address),
    bad: address === undefined ? undefined : firstOwner(bots.bad, address),
    claimed,
    claimHasAddresses:
      claimed !== undefined &&
      [...bots.vip, ...bots.bad].some(({ names }) => names.includes(claimed)),
  };
}

/** The host's own set speaks before the main domain's. */
function firstOwner(tables: readonly RangeTable[], address: IpAddress): string | undefined {
  for (const table of tables) {
    const owner = lookupRange(table, address);
    if (owner !== undefined) return owner;
  }
  return undefined;
}
