// Which ranges a VIP bot may have: everybody in them is let in, so none is large.

import { familyBits, type IpRange } from "./ip.ts";
import type { ListedRange } from "./range-list.ts";

/** The shortest prefix of a VIP range. */
const vipPrefixMin = { 4: 24, 6: 48 } as const;

/** Says why a range is too large to be a VIP bot's. */
export function vipRefusal({ text, range }: ListedRange): string | undefined {
  const prefixMin = vipPrefixMin[range.family];
  return prefixLengthOf(range) < prefixMin
    ? `a VIP range must be /${prefixMin} or longer, ${text} is larger`
    : undefined;
}

/** Returns the prefix length of a CIDR range. */
export function prefixLengthOf({ family, first, last }: IpRange): number {
  return familyBits[family] - ((last - first + 1n).toString(2).length - 1);
}
