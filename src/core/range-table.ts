// A bot set compiled for lookup: which bot holds this address? The most specific range wins.
//
// Elements are addresses and CIDR ranges, so any two nest or are disjoint. They are flattened into consecutive segments:
//
//   starts[i]   first address of segment i, ascending; starts[0] = 0          (IPv6: two 64-bit words, high then low)
//   owners[i]   index into `names` + 1, or 0 where no element covers the segment
//
// All numbers lie in SharedArrayBuffers, so handing a table to another thread copies only the names.

import { familyBits, parseRange, type IpAddress, type IpFamily, type IpRange } from "./ip.ts";
import type { SetElement } from "./set-digest.ts";

export type RangeTable = {
  readonly names: readonly string[];
  readonly v4: { readonly starts: Uint32Array; readonly owners: Uint32Array };
  readonly v6: { readonly starts: BigUint64Array; readonly owners: Uint32Array };
};

type Owned = IpRange & { readonly owner: number };
type Segment = { readonly start: bigint; readonly owner: number };

/** Elements that are no CIDR range are the caller's defect: they were validated where they came in. */
export function buildRangeTable(elements: Iterable<SetElement>): RangeTable {
  const names: string[] = [];
  const indexOf = new Map<string, number>();
  const owned: Record<IpFamily, Owned[]> = { 4: [], 6: [] };
  for (const { bot, range } of elements) {
    const parsed = parseRange(range);
    if (!parsed.ok) throw new TypeError(parsed.reason);
    let owner = indexOf.get(bot);
    if (owner === undefined) {
      names.push(bot);
      owner = names.length;
      indexOf.set(bot, owner);
    }
    owned[parsed.range.family].push({ ...parsed.range, owner });
  }
  const four = flatten(owned[4], 4);
  const six = flatten(owned[6], 6);
  const v4 = {
    starts: new Uint32Array(shared(four.length * 4)),
    owners: new Uint32Array(shared(four.length * 4)),
  };
  four.forEach(({ start, owner }, i) => {
    v4.starts[i] = Number(start);
    v4.owners[i] = owner;
  });
  const v6 = {
    starts: new BigUint64Array(shared(six.length * 16)),
    owners: new Uint32Array(shared(six.length * 4)),
  };
  six.forEach(({ start, owner }, i) => {
    v6.starts[2 * i] = start >> 64n;
    v6.starts[2 * i + 1] = start & 0xffff_ffff_ffff_ffffn;
    v6.owners[i] = owner;
  });
  return { names, v4, v6 };
}

function shared(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(bytes);
}

/** Outer ranges first, then a stack of what is open: each begin and end of a range starts a segment. */
function flatten(ranges: Owned[], family: IpFamily): readonly Segment[] {
  ranges.sort((a, b) => compare(a.first, b.first) || compare(b.last, a.last) || a.owner - b.owner);
  const segments: Segment[] = [{ start: 0n, owner: 0 }];
  const open: Owned[] = [];
  const begin = (start: bigint, owner: number): void => {
    const last = segments.at(-1);
    if (last?.start === start) segments[segments.length - 1] = { start, owner };
    else if (last?.owner !== owner) segments.push({ start, owner });
  };
  const closeBefore = (address: bigint): void => {
    for (let top = open.at(-1); top !== undefined && top.last < address; top = open.at(-1)) {
      open.pop();
      const after = top.last + 1n;
      if (after >> BigInt(familyBits[family]) === 0n) begin(after, open.at(-1)?.owner ?? 0);
    }
  };
  for (const range of ranges) {
    closeBefore(range.first);
    const inside = open.at(-1);
    if (inside?.first === range.first && inside.last === range.last) continue; // The same range twice: the bot named first keeps it.
    open.push(range);
    begin(range.first, range.owner);
  }
  closeBefore(1n << BigInt(familyBits[family]));
  return segments;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The bot whose most specific range holds the address. */
export function lookupRange(table: RangeTable, address: IpAddress): string | undefined {
  const owner =
    address.family === 4
      ? ownerOfV4(table, Number(address.value))
      : ownerOfV6(table, address.value);
  return owner === 0 ? undefined : table.names[owner - 1];
}

function ownerOfV4({ v4 }: RangeTable, address: number): number {
  let low = 0;
  let high = v4.starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((v4.starts[middle] ?? 0) <= address) low = middle;
    else high = middle - 1;
  }
  return v4.owners[low] ?? 0;
}

function ownerOfV6({ v6 }: RangeTable, address: bigint): number {
  const wantHigh = address >> 64n;
  const wantLow = address & 0xffff_ffff_ffff_ffffn;
  let low = 0;
  let high = v6.owners.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    const startHigh = v6.starts[2 * middle] ?? 0n;
    const atOrBefore =
      startHigh < wantHigh ||
      (startHigh === wantHigh && (v6.starts[2 * middle + 1] ?? 0n) <= wantLow);
    if (atOrBefore) low = middle;
    else high = middle - 1;
  }
  return v6.owners[low] ?? 0;
}
