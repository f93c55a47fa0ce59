// Which ranges a VIP bot may have: everybody in them is let in, so none is large.

import { familyBits, type IpRange } from "./ip.ts";
import type { ListedRange } from "./range-list.ts";

/** The shortest prefix of a VIP range. */
const vipPrefixMin = { 4: 24, 6: 48 } as const;
/** Owners of large crawlers publish larger ones. */
const publishedPrefixMin = { 4: 16, 6: 32 } as const;

/** Says why a range is too large to be a VIP bot's. */
export function vipRefusal(listed: ListedRange): string | undefined {
  return refusalOf(listed, vipPrefixMin);
}

/** Says why a range is too large to be taken from the list of a crawler's owner. */
export function publishedRefusal(listed: ListedRange): string | undefined {
  return refusalOf(listed, publishedPrefixMin);
}

function refusalOf(
  { text, range }: ListedRange,
  prefixMin: Readonly<Record<IpRange["family"], number>>,
): string | undefined {
  const least = prefixMin[range.family];
  return prefixLengthOf(range) < least
    ? `a VIP range must be /${least} or longer, ${text} is larger`
    : undefined;
}

/** Returns the prefix length of a CIDR range. */
export function prefixLengthOf({ family, first, last }: IpRange): number {
  return familyBits[family] - ((last - first + 1n).toString(2).length - 1);
}
