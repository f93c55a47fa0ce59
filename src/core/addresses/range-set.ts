// A bot set as sorted columns with their segments. Tables are planned from it, and small changes are applied
// to it. Immutable.
//
// Owner i is name i − 1; names ascend by their UTF-8 bytes. If two bots have the same range, the first by
// name holds it, so equal sets give equal tables whatever order their elements came in.

import { AddressReader } from "./address-reader.ts";
import { AddressTable, AddressTablePlan } from "./address-table.ts";
import { familyBits, parseRange, type IpFamily } from "./ip.ts";
import { sortRanges, type Ranges } from "./range-order.ts";
import { isPauseDue, noPause, type Pause } from "./range-pause.ts";
import { flattenSorted, type Segments } from "./range-segments.ts";
import { changeRanges, spliceSegments } from "./range-splice.ts";
import type { SetElement } from "./set-digest.ts";

type FamilySet = { readonly ranges: Ranges; readonly segments: Segments };

export type RangeSet = {
  readonly names: readonly string[];
  /** How many ranges each name has; at least one. */
  readonly counts: Uint32Array;
  readonly v4: FamilySet;
  readonly v6: FamilySet;
};

/** Takes elements in any order; a million of them a second. */
export class RangeSetBuilder {
  readonly #reader = new AddressReader();
  readonly #names: string[] = [];
  readonly #ids = new Map<string, number>();
  readonly #columns = { 4: new GrowingColumns(1), 6: new GrowingColumns(4) };
  #lastName: string | undefined;
  #lastId = 0;
  readonly #pause: Pause;

  constructor(pause: Pause = noPause) {
    this.#pause = pause;
  }

  /** Throws TypeError if `range` is no CIDR range; elements were validated where they came in. */
  add(bot: string, range: string): void {
    if (bot !== this.#lastName) {
      this.#lastName = bot;
      this.#lastId = this.#idOf(bot);
    }
    const slash = range.indexOf("/");
    const family = this.#reader.read(slash < 0 ? range : range.slice(0, slash));
    const prefix = family === 0 ? -1 : prefixOf(range, slash, family, this.#reader.words);
    if (family === 0 || prefix < 0) {
      const parsed = parseRange(range);
      throw new TypeError(parsed.ok ? `"${range}" is not understood` : parsed.reason);
    }
    this.#columns[family].push(this.#reader.words, prefix, this.#lastId);
  }

  ranges(): { readonly names: readonly string[]; readonly v4: Ranges; readonly v6: Ranges } {
    const names = this.#names.toSorted(compareUtf8);
    const ranks = new Uint32Array(names.length + 1);
    names.forEach((name, i) => (ranks[this.#ids.get(name) ?? 0] = i + 1));
    const [v4, v6] = [this.#columns[4].ranges(), this.#columns[6].ranges()];
    return {
      names,
      v4: sortRanges(renumbered(v4, ranks, this.#pause), this.#pause),
      v6: sortRanges(renumbered(v6, ranks, this.#pause), this.#pause),
    };
  }

  build(): RangeSet {
    const { names, v4, v6 } = this.ranges();
    const counts = new Uint32Array(names.length + 1);
    countOwners(counts, v4, 1, this.#pause);
    countOwners(counts, v6, 1, this.#pause);
    return {
      names,
      counts,
      v4: { ranges: v4, segments: flattenSorted(v4, this.#pause) },
      v6: { ranges: v6, segments: flattenSorted(v6, this.#pause) },
    };
  }

  #idOf(bot: string): number {
    const known = this.#ids.get(bot);
    if (known !== undefined) return known;
    this.#names.push(bot);
    this.#ids.set(bot, this.#names.length);
    return this.#names.length;
  }
}

/** Returns the changed set, or undefined if the change does not fit the set. */
export function changeRangeSet(
  set: RangeSet,
  added: readonly SetElement[],
  removed: readonly SetElement[],
  pause: Pause = noPause,
): RangeSet | undefined {
  const [more, less] = [rangesOf(added), rangesOf(removed)];
  const names = mergedNames(set.names, more.names);
  const before = numbered(set, names, pause);
  const [moreRanks, lessRanks] = [ranksIn(names, more.names), ranksIn(names, less.names)];
  const counts = before.counts;
  const change = (family: "v4" | "v6"): FamilySet | undefined => {
    const plus = renumbered(more[family], moreRanks, pause);
    const minus = renumbered(less[family], lessRanks, pause);
    if (plus.count === 0 && minus.count === 0) return before[family];
    const ranges = changeRanges(before[family].ranges, plus, minus, pause);
    if (ranges === undefined) return undefined;
    countOwners(counts, plus, 1, pause);
    countOwners(counts, minus, -1, pause);
    const segments = spliceSegments(before[family].segments, ranges, [plus, minus], pause);
    return { ranges, segments };
  };
  const v4 = change("v4");
  const v6 = change("v6");
  if (v4 === undefined || v6 === undefined) return undefined;
  const kept = names.filter((_, i) => counts[i + 1] !== 0);
  return numbered({ names, counts, v4, v6 }, kept, pause);
}

export function planTable({ names, v4, v6 }: RangeSet, pause: Pause = noPause): AddressTablePlan {
  return new AddressTablePlan({ names, v4: v4.segments, v6: v6.segments }, { pause });
}

/** Builds a small table in memory of its own. */
export function buildAddressTable(elements: Iterable<SetElement>): AddressTable {
  const builder = new RangeSetBuilder();
  for (const { bot, range } of elements) builder.add(bot, range);
  const plan = planTable(builder.build());
  const ref = { buffer: new SharedArrayBuffer(plan.bytes), at: 0 };
  plan.write(ref);
  return new AddressTable(ref);
}

function rangesOf(elements: readonly SetElement[]): ReturnType<RangeSetBuilder["ranges"]> {
  const builder = new RangeSetBuilder();
  for (const { bot, range } of elements) builder.add(bot, range);
  return builder.ranges();
}

class GrowingColumns {
  readonly #words: 1 | 4;
  #firsts: Uint32Array;
  #prefixes = new Uint8Array(16);
  #owners = new Uint32Array(16);
  #count = 0;

  constructor(words: 1 | 4) {
    this.#words = words;
    this.#firsts = new Uint32Array(16 * words);
  }

  push(first: Uint32Array, prefix: number, owner: number): void {
    if (this.#count === this.#owners.length) this.#grow();
    const at = this.#count++;
    for (let word = 0; word < this.#words; word++)
      this.#firsts[at * this.#words + word] = first[word] ?? 0;
    this.#prefixes[at] = prefix;
    this.#owners[at] = owner;
  }

  #grow(): void {
    const grown = 2 * this.#count;
    const [firsts, prefixes, owners] = [this.#firsts, this.#prefixes, this.#owners];
    (this.#firsts = new Uint32Array(grown * this.#words)).set(firsts);
    (this.#prefixes = new Uint8Array(grown)).set(prefixes);
    (this.#owners = new Uint32Array(grown)).set(owners);
  }

  ranges(): Ranges {
    return {
      words: this.#words,
      firsts: this.#firsts,
      prefixes: this.#prefixes,
      owners: this.#owners,
      count: this.#count,
    };
  }
}

/** Returns the length of the prefix, or -1 if it is no number in range, or bits are set below it. */
function prefixOf(range: string, slash: number, family: IpFamily, words: Uint32Array): number {
  const bits = familyBits[family];
  if (slash < 0) return bits;
  let prefix = 0;
  if (slash + 1 === range.length || range.length > slash + 4) return -1;
  for (let at = slash + 1; at < range.length; at++) {
    const digit = range.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return -1;
    prefix = prefix * 10 + digit;
  }
  if (prefix > bits) return -1;
  for (let word = prefix >>> 5; word < bits / 32; word++) {
    const fixed = Math.max(0, prefix - 32 * word);
    if (((words[word] ?? 0) & (0xffff_ffff >>> fixed)) !== 0) return -1;
  }
  return prefix;
}

function countOwners(
  counts: Uint32Array,
  { owners, count }: Ranges,
  by: 1 | -1,
  pause: Pause,
): void {
  for (let range = 0; range < count; range++) {
    if (isPauseDue(range)) pause();
    const owner = owners[range] ?? 0;
    counts[owner] = (counts[owner] ?? 0) + by;
  }
}

function renumbered<T extends { readonly owners: Uint32Array; readonly count: number }>(
  columns: T,
  ranks: Uint32Array,
  pause: Pause,
): T {
  const owners = new Uint32Array(columns.count);
  for (let at = 0; at < columns.count; at++) {
    if (isPauseDue(at)) pause();
    owners[at] = ranks[columns.owners[at] ?? 0] ?? 0;
  }
  return { ...columns, owners };
}

/**
 * Returns the set with its owners numbered by `names`, which may lack names without ranges. Its counts are a
 * copy that the caller may change.
 */
function numbered(set: RangeSet, names: readonly string[], pause: Pause): RangeSet {
  if (names.length === set.names.length) return { ...set, counts: set.counts.slice() };
  const ranks = ranksIn(names, set.names);
  const counts = new Uint32Array(names.length + 1);
  ranks.forEach((rank, owner) => (counts[rank] = rank === 0 ? 0 : (set.counts[owner] ?? 0)));
  const family = ({ ranges, segments }: FamilySet): FamilySet => ({
    ranges: renumbered(ranges, ranks, pause),
    segments: renumbered(segments, ranks, pause),
  });
  return { names, counts, v4: family(set.v4), v6: family(set.v6) };
}

function ranksIn(names: readonly string[], own: readonly string[]): Uint32Array {
  const ranks = new Uint32Array(own.length + 1);
  let at = 0;
  own.forEach((name, i) => {
    while (at < names.length && compareUtf8(names[at] ?? "", name) < 0) at++;
    ranks[i + 1] = names[at] === name ? at + 1 : 0;
  });
  return ranks;
}

function mergedNames(names: readonly string[], more: readonly string[]): readonly string[] {
  const known = new Set(names);
  const fresh = more.filter((name) => !known.has(name));
  return fresh.length === 0 ? names : [...names, ...fresh].sort(compareUtf8);
}

/** Compares by UTF-8 bytes, which is the order of code points: surrogates sort after all other units. */
function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [one, other] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (one !== other) return placed(one) - placed(other);
  }
  return a.length - b.length;
}

const placed = (unit: number): number =>
  unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
