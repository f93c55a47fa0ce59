// Applies a small change to a large set: only what lies around the changed ranges is flattened again, the
// rest is copied.
//
//   spliceSegments(flatten(A), A ± delta, delta) = flatten(A ± delta)

import { compareRanges, type RangeColumns, type Ranges } from "./range-order.ts";
import { copyColumn, isPauseDue, noPause, type Pause } from "./range-pause.ts";
import {
  compareWords,
  Flattening,
  increment,
  lastOf,
  SegmentWriter,
  type Segments,
} from "./range-segments.ts";

/**
 * Applies sorted changes to sorted ranges. Returns undefined if something added was there already, or
 * something removed was not.
 */
export function changeRanges(
  ranges: Ranges,
  added: Ranges,
  removed: Ranges,
  pause: Pause = noPause,
): Ranges | undefined {
  const { words } = ranges;
  const count = ranges.count + added.count - removed.count;
  if (count < 0) return undefined;
  const out = {
    words,
    firsts: new Uint32Array(count * words),
    prefixes: new Uint8Array(count),
    owners: new Uint32Array(count),
    count,
  };
  let from = 0;
  let to = 0;
  const copy = (source: Ranges, until: number): void => {
    const firsts = source.firsts.subarray(from * words, until * words);
    copyColumn(firsts, out.firsts, to * words, pause);
    copyColumn(source.prefixes.subarray(from, until), out.prefixes, to, pause);
    copyColumn(source.owners.subarray(from, until), out.owners, to, pause);
    to += until - from;
    from = until;
  };
  for (let add = 0, remove = 0; add < added.count || remove < removed.count;) {
    const isAdd =
      remove >= removed.count ||
      (add < added.count && compareRanges(added, add, removed, remove) < 0);
    const [change, no] = isAdd ? [added, add++] : [removed, remove++];
    const at = placeOf(ranges, change, no, from);
    const isThere = at < ranges.count && compareRanges(ranges, at, change, no) === 0;
    if (isThere === isAdd || to + at - from > count) return undefined;
    copy(ranges, at);
    if (!isAdd) {
      from++;
      continue;
    }
    if (to === count) return undefined;
    out.firsts.set(change.firsts.subarray(no * words, (no + 1) * words), to * words);
    out.prefixes[to] = change.prefixes[no] ?? 0;
    out.owners[to++] = change.owners[no] ?? 0;
  }
  if (to + ranges.count - from !== count) return undefined;
  copy(ranges, ranges.count);
  return out;
}

/**
 * `after` is the sorted ranges with the change; `changed` is what was added and removed, sorted. Owners are
 * numbered alike in `segments` and `after`.
 */
export function spliceSegments(
  segments: Segments,
  after: Ranges,
  changed: readonly RangeColumns[],
  pause: Pause = noPause,
): Segments {
  const { words } = after;
  // Room for two more segments than the result can have: what stands behind a changed range is begun before
  // it is known whether that changes too.
  const writer = new SegmentWriter(words, 2 * after.count + 3, pause);
  writer.first(segments.owners[0] ?? 0);
  const flattening = new Flattening(writer, after);
  const surroundings = new Surroundings(after, pause);
  const behind = new Uint32Array(words);
  const last = new Uint32Array(words);
  let from = 1; // Segment 0 stands.
  for (const { columns, at } of outermost(changed)) {
    const { firsts, prefixes } = columns;
    const first = firsts.subarray(at * words, (at + 1) * words);
    const prefix = prefixes[at] ?? 0;
    // Copies old segments up to the range, flattens what lies in it, and goes on with what was behind it.
    const until = segmentAfter(segments, first, from, false);
    if (until > from) writer.copy(segments, from, until);
    const around = surroundings.ownerAround(first, prefix);
    writer.begin(first, 0, around);
    lastOf(first, 0, prefix, last, 0, words);
    const inFrom = firstRange(after, first, prefix);
    const inTo = rangeAfter(after, last, inFrom);
    flattening.add(inFrom, inTo, around);
    behind.set(last);
    if (!increment(behind, 0, words)) return writer.segments();
    from = segmentAfter(segments, behind, until, true);
    writer.begin(behind, 0, segments.owners[from - 1] ?? 0);
  }
  if (segments.count > from) writer.copy(segments, from, segments.count);
  return writer.segments();
}

type Place = { readonly columns: RangeColumns; readonly at: number };

/** Yields the changed ranges that lie in no other changed range, in order. */
function* outermost(changed: readonly RangeColumns[]): Generator<Place> {
  const next = changed.map(() => 0);
  let inside: Place | undefined;
  for (;;) {
    let found: Place | undefined;
    let list = 0;
    changed.forEach((columns, i) => {
      const at = next[i] ?? 0;
      if (at >= columns.count || (found !== undefined && !isBefore({ columns, at }, found))) return;
      found = { columns, at };
      list = i;
    });
    if (found === undefined) return;
    next[list] = (next[list] ?? 0) + 1;
    if (inside !== undefined && holds(inside, found)) continue;
    inside = found;
    yield found;
  }
}

function isBefore(a: Place, b: Place): boolean {
  const { words } = a.columns;
  const order = compareWords(a.columns.firsts, a.at * words, b.columns.firsts, b.at * words, words);
  return order < 0 || (order === 0 && prefixAt(a) < prefixAt(b));
}

const prefixAt = ({ columns, at }: Place): number => columns.prefixes[at] ?? 0;

/** Returns whether the first range holds the second; the first begins no later. */
function holds(outer: Place, { columns, at }: Place): boolean {
  const { words } = columns;
  const last = new Uint32Array(words);
  lastOf(outer.columns.firsts, outer.at * words, prefixAt(outer), last, 0, words);
  return compareWords(columns.firsts, at * words, last, 0, words) <= 0;
}

/** Finds who owns the range around a range: for each prefix length that occurs, only one range can be it. */
class Surroundings {
  readonly #ranges: Ranges;
  readonly #lengths: readonly number[];

  constructor(ranges: Ranges, pause: Pause) {
    this.#ranges = ranges;
    const occurs = new Uint8Array(129);
    for (let range = 0; range < ranges.count; range++) {
      if (isPauseDue(range)) pause();
      occurs[ranges.prefixes[range] ?? 0] = 1;
    }
    this.#lengths = Array.from(occurs.keys())
      .filter((length) => occurs[length] === 1)
      .toReversed();
  }

  ownerAround(first: Uint32Array, prefix: number): number {
    const { words, firsts, prefixes, owners, count } = this.#ranges;
    const network = new Uint32Array(words);
    for (const length of this.#lengths) {
      if (length >= prefix) continue;
      for (let word = 0; word < words; word++) {
        const fixed = Math.min(32, Math.max(0, length - 32 * word));
        network[word] = (first[word] ?? 0) & (fixed === 0 ? 0 : 0xffff_ffff << (32 - fixed));
      }
      const at = firstRange(this.#ranges, network, length);
      if (at >= count || prefixes[at] !== length) continue;
      if (compareWords(firsts, at * words, network, 0, words) === 0) return owners[at] ?? 0;
    }
    return 0;
  }
}

/** Returns the first range at or behind the one that begins at `first` with `prefix`. */
function firstRange(ranges: Ranges, first: Uint32Array, prefix: number): number {
  const want = { words: ranges.words, firsts: first, prefixes: Uint8Array.of(prefix), count: 1 };
  return placeOf(ranges, { ...want, owners: Uint32Array.of(0) }, 0, 0);
}

/** Returns the first range from `from` on that begins after `last`. */
function rangeAfter({ words, firsts, count }: Ranges, last: Uint32Array, from: number): number {
  let low = from;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareWords(firsts, middle * words, last, 0, words) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Returns the first segment from `from` on that begins at or after the address, or after it if `isBehind`.
 */
function segmentAfter(
  { words, starts, count }: Segments,
  address: Uint32Array,
  from: number,
  isBehind: boolean,
): number {
  let low = from;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compareWords(starts, middle * words, address, 0, words);
    if (order < 0 || (isBehind && order === 0)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns where range `no` of `want` stands, or would stand, in `ranges`, searching from `from`. */
function placeOf(ranges: Ranges, want: Ranges, no: number, from: number): number {
  let low = from;
  let high = ranges.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareRanges(ranges, middle, want, no) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
