// Addresses as they stand in paths: `<address>`, `<address>_<prefix>`, and with the flag the custom
// `<start>_<n>`, the n+1 addresses from the start.

import {
  cidrCover,
  customRange,
  familyBits,
  formatIp,
  parseIp,
  parseRange,
  type IpAddress,
  type IpRange,
} from "../../core/addresses/ip.ts";
import { prefixLengthOf, vipRefusal } from "../../core/addresses/range-limits.ts";
import type { BotSet } from "../../wire/journal.ts";

export type BotRangeParsed =
  | {
      readonly ok: true;
      /** The whole range, from first to last. */
      readonly whole: IpRange;
      /** The elements of the bot that are attached or taken away. */
      readonly elements: readonly IpRange[];
      /** The range as it is shown back. */
      readonly text: string;
    }
  | { readonly ok: false; readonly reason: string };

/** The largest n of a custom range: 257 addresses for VIP, a /16 for bad bots. */
const customMax: Readonly<Record<BotSet, number>> = { vip: 256, bad: 65_535 };

type Meant = { readonly set: BotSet; readonly isCustom: boolean };

/** Parses a range for a mark, with the limits of marks. */
export function parseMarkedRange(text: string, meant: Meant): BotRangeParsed {
  const parsed = parseRemovedRange(text, meant);
  if (!parsed.ok || meant.set !== "vip" || meant.isCustom) return parsed;
  const refusal = vipRefusal({ text: parsed.text, range: parsed.whole });
  return refusal === undefined ? parsed : no(refusal);
}

/**
 * Parses a range for a removal. VIP ranges larger than those that may be marked come by the operator's
 * import, and can be taken away.
 */
export function parseRemovedRange(text: string, { set, isCustom }: Meant): BotRangeParsed {
  const [start, suffix] = split(text);
  if (suffix === undefined || !isCustom) return parsePlainRange(text);
  const address = parseIp(start);
  if (address === undefined) return no(`"${start}" is not an IPv4 or IPv6 address`);
  return parseCustom(address, suffix, set);
}

/** Parses a range as checks give it: an address or a CIDR range of any size. */
export function parsePlainRange(text: string): BotRangeParsed {
  const [start, suffix] = split(text);
  const parsed = parseRange(suffix === undefined ? start : `${start}/${suffix}`);
  if (!parsed.ok) return parsed;
  const { range } = parsed;
  const address = formatIp({ family: range.family, value: range.first });
  const shown = suffix === undefined ? address : `${address}/${prefixLengthOf(range)}`;
  return { ok: true, whole: range, elements: [range], text: shown };
}

function parseCustom(start: IpAddress, suffix: string, set: BotSet): BotRangeParsed {
  const most = customMax[set];
  if (!/^\d{1,6}$/.test(suffix) || Number(suffix) > most)
    return no(`the number after "_" must be 0 to ${most}`);
  const whole = customRange(start, Number(suffix));
  if (whole === undefined)
    return no(`the range runs past the last address of ${familyBits[start.family]} bits`);
  const elements = set === "vip" ? cidrCover(whole) : addressesOf(whole);
  return { ok: true, whole, elements, text: `${formatIp(start)}_${Number(suffix)}` };
}

function addressesOf({ family, first, last }: IpRange): readonly IpRange[] {
  const count = Number(last - first) + 1;
  return Array.from({ length: count }, (_, at) => {
    const value = first + BigInt(at);
    return { family, first: value, last: value };
  });
}

/** Splits off what stands behind the last underscore. A slash that was percent-encoded counts as one. */
function split(text: string): readonly [string, string | undefined] {
  const at = Math.max(text.lastIndexOf("_"), text.lastIndexOf("/"));
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function no(reason: string): BotRangeParsed {
  return { ok: false, reason };
}
