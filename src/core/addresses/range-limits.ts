// How large a range may be: everybody in a VIP bot's is let in, so none is large, and a list that somebody else writes must not shut everybody out.

import { familyBits, type IpRange } from "./ip.ts";
import type { ListedRange } from "./range-list.ts";

/** The shortest prefix of a VIP range. */
const vipPrefixMin = { 4: 24, 6: 48 } as const;
/** No network has more, and 0.0.0.0/0 is everybody. */
const fetchedPrefixMin = { 4: 8, 6: 16 } as const;
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

/** Says why a range is too large to be taken from a list that is fetched; whoever means it marks it. */
export function fetchedRefusal({ text, range }: ListedRange): string | undefined {
  const least = fetchedPrefixMin[range.family];
  return prefixLengthOf(range) < least
    ? `a range of a list that is fetched must be /${least} or longer, ${text} is larger`
    : undefined;
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
