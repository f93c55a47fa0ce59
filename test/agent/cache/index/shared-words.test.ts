// The words that threads share: each has a place of its own, and the bits of entries grow wherever the next one falls.

import { describe, expect, test } from "vitest";
import type { EntryKey } from "../../../../src/agent/cache/entry.ts";
import { EntryBits } from "../../../../src/agent/cache/index/entry-bits.ts";
import { keyPlace, SharedHeader } from "../../../../src/agent/cache/index/shared-header.ts";
import { keyOf } from "../rig.ts";

/** Places of the words of 32 bits that the writing changed. */
function changedBy(write: (header: SharedHeader) => void): readonly number[] {
  const buffer = SharedHeader.allocate();
  // No word is 0 before, so that it is seen when one becomes 0.
  const words = new Int32Array(buffer).fill(0x55_55_55_55);
  write(new SharedHeader(buffer));
  return [...words].flatMap((word, at) => (word === 0x55_55_55_55 ? [] : [at]));
}

const all = changedBy((header) => header.moveClearMark(null));
const domains = 256;
const keys = 16_384;

/** One domain for each place where the mark of a domain may stand. */
const domainAt = new Map<number, string>();
for (let no = 0; domainAt.size < domains; no++) {
  const [place = -1] = changedBy((header) => header.moveClearMark(`d${no}.test`));
  if (!domainAt.has(place)) domainAt.set(place, `d${no}.test`);
}
/** The same of keys: those that stand first and last, and some between. */
const keysAt = new Map<number, EntryKey>();
for (let no = 0; no < 200_000 && keysAt.size < keys; no++) {
  const key = keyOf({ path: `/${no}` });
  keysAt.set(keyPlace(key), key);
}
const places = [...keysAt.keys()].toSorted((a, b) => a - b);
const someKeys = [0, 1, 77, 8_191, 8_192, keys - 2, keys - 1].map(
  (at) => keysAt.get(places[at] ?? -1) ?? keyOf(),
);
const allDomains = [...domainAt.values()];

/** Everything that can be written: what may share a word with none of the others. */
const regions: Readonly<Record<string, (header: SharedHeader) => void>> = {
  incarnation: (header) => (header.incarnation = 7),
  openings: (header) => header.nextIncarnation(),
  confirmed: (header) => (header.confirmed = true),
  "clears asked": (header) => header.noteClearAsked(),
  "clear number": (header) => (header.clearNo = 2 ** 40),
  "last id": (header) => (header.lastId = 2 ** 41),
  "clear marks": (header) => header.moveClearMark(null),
  "key marks": (header) => places.forEach((place) => header.moveKeyMark(place)),
  unsure: (header) => header.setUnsure(allDomains),
  lookups: (header) => header.noteLookup(),
  "invalidation marks": (header) =>
    [...keysAt.values()].forEach((key) => header.moveInvalidationMark(key)),
  "stored bytes": (header) => (header.storedBytes = 2 ** 42),
  "bytes in flight": (header) => header.addInFlight(2 ** 43),
};

/** What each reads. */
function readAll(header: SharedHeader): Readonly<Record<string, unknown>> {
  return {
    incarnation: header.incarnation,
    confirmed: header.confirmed,
    "clears asked": header.clearsAsked,
    "clear number": header.clearNo,
    "last id": header.lastId,
    marks: [...allDomains.map((domain) => keyOf({ domain })), ...someKeys].map((key) =>
      header.clearMark(key),
    ),
    "key marks": someKeys.map((key) => header.keyMark(keyPlace(key))),
    unsure: allDomains.map((domain) => header.isUnsure(domain)),
    lookups: header.lookups,
    "stored bytes": header.storedBytes,
    "bytes in flight": header.inFlightBytes,
  };
}

/** What is read differently afterwards, where that is not the name of what is written. */
const readAs: Readonly<Record<string, string | undefined>> = {
  openings: undefined,
  "clear marks": "marks",
  "invalidation marks": "marks",
};

describe("the header", () => {
  test("has a word of its own for each domain and each key, as many as are said", () => {
    expect(domainAt.size).toBe(domains);
    expect(all.length).toBe(domains);
    expect(keysAt.size).toBe(keys);
    const sizes = Object.entries(regions).map(([name, write]) => [name, changedBy(write).length]);
    expect(Object.fromEntries(sizes)).toMatchObject({
      "clear marks": domains,
      unsure: domains,
      "key marks": keys,
      "invalidation marks": keys,
    });
  });

  test("is written in one place by each, and no two write the same", () => {
    const writers = new Map<number, string>();
    for (const [name, write] of Object.entries(regions))
      for (const place of changedBy(write)) {
        expect(writers.get(place), `${name} at ${place}`).toBeUndefined();
        writers.set(place, name);
      }
    expect(writers.size).toBeGreaterThan(2 * keys + 2 * domains);
  });

  test.each(Object.keys(regions))("%s written: everything else reads as before", (name) => {
    const header = new SharedHeader(SharedHeader.allocate());
    const before = readAll(header);
    regions[name]?.(header);
    const after = readAll(header);
    const changed = Object.keys(after).filter(
      (key) => JSON.stringify(after[key]) !== JSON.stringify(before[key]),
    );
    const expected = name in readAs ? readAs[name] : name;
    expect(changed).toEqual(expected === undefined ? [] : [expected]);
  });

  test("unsure are those domains that were told last, and no others", () => {
    const header = new SharedHeader(SharedHeader.allocate());
    const unsure = (): readonly string[] => allDomains.filter((domain) => header.isUnsure(domain));
    for (const some of [allDomains.slice(0, 3), allDomains.slice(2, 5), [], allDomains]) {
      header.setUnsure(some);
      expect(unsure()).toEqual(some);
    }
  });

  test("counts go up by one, bytes in flight by what they are", () => {
    const header = new SharedHeader(SharedHeader.allocate());
    for (const expected of [1, 2]) {
      header.noteLookup();
      header.noteClearAsked();
      expect([header.lookups, header.clearsAsked, header.nextIncarnation()]).toEqual([
        expected,
        expected,
        expected,
      ]);
    }
    expect(header.addInFlight(100)).toBe(100);
    expect(header.addInFlight(-30)).toBe(70);
    expect(header.inFlightBytes).toBe(70);
  });
});

describe("servable bits", () => {
  const base = 1_000;
  /** Of one piece by which they grow. */
  const pieceIds = 32_768;

  test("grow whenever the next id in sequence falls behind the end, over two ends", () => {
    const bits = EntryBits.allocate(base);
    for (let id = base; id < base + 2 * pieceIds + 40; id++) {
      expect(bits.has(id)).toBe(false);
      bits.set([id]);
      if (!bits.has(id) || bits.has(id + 1)) throw new Error(`${id} is not set alone`);
    }
    expect(bits.buffer.byteLength).toBeGreaterThanOrEqual((3 * pieceIds) / 8);
    const { first, words } = bits.snapshot();
    expect(first).toBe(base);
    expect(words.slice(0, (2 * pieceIds) / 32).every((word) => word === 0xff_ff_ff_ff)).toBe(true);
  });

  test.each([pieceIds - 1, pieceIds, pieceIds + 1, 2 * pieceIds - 1, 2 * pieceIds])(
    "of which %i is set first grow as far as it lies, and nothing else is set",
    (offset) => {
      const bits = EntryBits.allocate(base);
      bits.set([base + offset]);
      const set = Array.from({ length: 3 * pieceIds }, (_, at) => at).filter((at) =>
        bits.has(base + at),
      );
      expect(set).toEqual([offset]);
      expect(bits.buffer.byteLength * 8).toBe((Math.floor(offset / pieceIds) + 1) * pieceIds);
    },
  );

  test("that one thread grows are seen by others that knew them smaller, whatever they ask", () => {
    const bits = EntryBits.allocate(base);
    const others = Array.from({ length: 4 }, () => new EntryBits(bits.buffer, base));
    const id = base + 2 * pieceIds + 7;
    for (const other of others) expect(other.has(id)).toBe(false);
    bits.set([id]);
    const [asks, looks, copies, unsets] = others;
    expect(asks?.has(id)).toBe(true);
    expect(looks?.hasAnyUpTo(id)).toBe(true);
    expect(looks?.hasAnyUpTo(id - 1)).toBe(false);
    expect(copies?.snapshot().words.length).toBe(bits.buffer.byteLength / 4);
    unsets?.unset(id);
    expect(bits.has(id) || asks?.has(id)).toBe(false);
    bits.set([id]);
    expect([...new EntryBits(bits.buffer, base).take(Float64Array.of(id))]).toEqual([id]);
    expect(asks?.has(id)).toBe(false);
  });

  test("are asked, unset and taken at their end and behind it: nothing is there, and nothing grows", () => {
    const bits = EntryBits.allocate(base);
    const last = base + pieceIds - 1;
    bits.set([last]);
    for (const id of [last + 1, last + 32, last + 33, base - 1]) {
      expect(bits.has(id)).toBe(false);
      bits.unset(id);
      expect([...bits.take(Float64Array.of(id))]).toEqual([]);
    }
    expect(bits.buffer.byteLength).toBe(pieceIds / 8);
    expect([last - 1, last, last + 1].map((id) => bits.hasAnyUpTo(id))).toEqual([
      false,
      true,
      true,
    ]);
    expect([...bits.take(Float64Array.of(last, last + 1))]).toEqual([last]);
    expect(bits.hasAnyUpTo(last + 1)).toBe(false);
  });
});
