// Canonical texts of addresses and CIDR ranges in order of address.

import { AddressReader } from "./address-reader.ts";
import { sortRanges, type Ranges } from "./range-order.ts";

/**
 * Sorts IPv4 before IPv6, then by first address, the larger of two that begin alike first. Leaves out texts
 * that are no range; they were validated where they came in.
 */
export function sortedRangeTexts(texts: readonly string[]): readonly string[] {
  const reader = new AddressReader();
  const [four, six] = [columns(1, texts.length), columns(4, texts.length)];
  texts.forEach((text, at) => {
    const slash = text.indexOf("/");
    const family = reader.read(slash < 0 ? text : text.slice(0, slash));
    if (family === 0) return;
    const { ranges, words } = family === 4 ? four : six;
    for (let word = 0; word < words; word++)
      ranges.firsts[ranges.count * words + word] = reader.words[word] ?? 0;
    ranges.prefixes[ranges.count] = slash < 0 ? words * 32 : Number(text.slice(slash + 1));
    ranges.owners[ranges.count++] = at;
  });
  return [four, six].flatMap(({ ranges }) =>
    ranges.count === 0 ? [] : Array.from(sortRanges(ranges).owners, (at) => texts[at] ?? ""),
  );
}

function columns(words: 1 | 4, size: number) {
  const ranges = {
    words,
    firsts: new Uint32Array(size * words),
    prefixes: new Uint8Array(size),
    owners: new Uint32Array(size),
    count: 0,
  } satisfies Ranges;
  return { words, ranges };
}
