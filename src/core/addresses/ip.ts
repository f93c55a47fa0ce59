// IP addresses and ranges as numbers: parsing, canonical text, custom ranges, minimal CIDR cover.
//
// An IPv4-mapped IPv6 address (::ffff:a.b.c.d) is the IPv4 address. A range is [first, last], both in one family.

import ipaddr from "ipaddr.js";

export type IpFamily = 4 | 6;
export type IpAddress = { readonly family: IpFamily; readonly value: bigint };
export type IpRange = { readonly family: IpFamily; readonly first: bigint; readonly last: bigint };

export const familyBits = { 4: 32, 6: 128 } as const;
/** The bits before the IPv4 address in an IPv4-mapped one; a CIDR prefix of ::ffff:0:0 counts them too. */
const mappedBits = 96;

/** Parses a dotted quad without leading zeros, or RFC 4291 text; no zone, no port. */
export function parseIp(text: string): IpAddress | undefined {
  if (text.length > 45) return undefined;
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) {
    if (/(?:^|\.)0\d/.test(text)) return undefined; // Octal or decimal? Ambiguous is refused.
    return fromBytes(ipaddr.IPv4.parse(text).toByteArray());
  }
  if (!text.includes(":") || text.includes("%") || !ipaddr.IPv6.isValid(text)) return undefined;
  const six = ipaddr.IPv6.parse(text);
  return fromBytes(
    six.isIPv4MappedAddress() ? six.toIPv4Address().toByteArray() : six.toByteArray(),
  );
}

function fromBytes(bytes: readonly number[]): IpAddress {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return { family: bytes.length === 4 ? 4 : 6, value };
}

/** Writes RFC 5952 text for IPv6, a dotted quad for IPv4. */
export function formatIp({ family, value }: IpAddress): string {
  const bytes: number[] = [];
  for (let shift = familyBits[family] - 8; shift >= 0; shift -= 8)
    bytes.push(Number((value >> BigInt(shift)) & 0xffn));
  return family === 4 ? bytes.join(".") : new ipaddr.IPv6(bytes).toRFC5952String();
}

export type RangeParse =
  | { readonly ok: true; readonly range: IpRange }
  | { readonly ok: false; readonly reason: string };

/**
 * Parses `address` or `address/prefix`. The prefix of an IPv4-mapped address is /96 or longer. Host bits
 * below the prefix are an error that names the network meant.
 */
export function parseRange(text: string): RangeParse {
  const slash = text.indexOf("/");
  const address = parseIp(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined)
    return { ok: false, reason: `"${text}" is not an IPv4 or IPv6 address or CIDR range` };
  if (slash < 0)
    return {
      ok: true,
      range: { family: address.family, first: address.value, last: address.value },
    };
  const digits = text.slice(slash + 1);
  const bits = familyBits[address.family];
  const before = address.family === 4 && text.includes(":") ? mappedBits : 0;
  const prefix = Number(digits) - before;
  if (!/^\d{1,3}$/.test(digits) || prefix < 0 || prefix > bits) {
    const reason = `the prefix length of "${text}" must be ${before} to ${before + bits}`;
    return { ok: false, reason };
  }
  const hostMask = (1n << BigInt(bits - prefix)) - 1n;
  if ((address.value & hostMask) !== 0n) {
    const network = formatIp({ family: address.family, value: address.value & ~hostMask });
    return {
      ok: false,
      reason: `"${text}" has host bits set; the network is ${network}/${prefix}`,
    };
  }
  return {
    ok: true,
    range: { family: address.family, first: address.value, last: address.value | hostMask },
  };
}

/**
 * Returns the n+1 consecutive addresses from `start`, or undefined if they run past the end of the address
 * space.
 */
export function customRange(start: IpAddress, n: number): IpRange | undefined {
  const last = start.value + BigInt(n);
  if (last >> BigInt(familyBits[start.family]) !== 0n) return undefined;
  return { family: start.family, first: start.value, last };
}

/** Returns the fewest CIDR ranges that together are exactly the range, in address order. */
export function cidrCover({ family, first, last }: IpRange): readonly IpRange[] {
  const cover: IpRange[] = [];
  for (let at = first; at <= last;) {
    let size = 1n;
    while ((at & ((size << 1n) - 1n)) === 0n && at + (size << 1n) - 1n <= last) size <<= 1n;
    cover.push({ family, first: at, last: at + size - 1n });
    at += size;
  }
  return cover;
}

/** Returns where the CIDR ranges that hold this address begin, the largest range first, each start once. */
export function enclosingStarts({ family, value }: IpAddress): readonly bigint[] {
  const starts = new Set<bigint>();
  for (let bits = BigInt(familyBits[family]); bits >= 0n; bits--)
    starts.add((value >> bits) << bits);
  return [...starts];
}

/** Writes CIDR text if the range is one, a bare address if it is one address, otherwise `first-last`. */
export function formatRange({ family, first, last }: IpRange): string {
  if (first === last) return formatIp({ family, value: first });
  const size = last - first + 1n;
  const power = size.toString(2).length - 1;
  if (size === 1n << BigInt(power) && first % size === 0n)
    return `${formatIp({ family, value: first })}/${familyBits[family] - power}`;
  return `${formatIp({ family, value: first })}-${formatIp({ family, value: last })}`;
}

/** Whether the host of a request names the machine and no site: an address, localhost, or nothing. */
export function isHostItself(host: string): boolean {
  if (host === "" || host === "localhost") return true;
  return parseIp(host.startsWith("[") ? host.slice(1, -1) : host) !== undefined;
}
