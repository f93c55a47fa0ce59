// One domain that stores without end takes room that nobody else uses, and no other's: neither of what is stored nor of what is on its way in.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { DiskRoom } from "../../../../src/agent/cache/index/disk-room.ts";
import {
  DomainBytes,
  domainBytesLength,
  sharedPlace,
} from "../../../../src/agent/cache/index/domain-bytes.ts";
import type { CommitOutcome } from "../../../../src/agent/cache/entry.ts";
import type { OpenIndex } from "../../../../src/agent/cache/index/open-index.ts";
import { SharedHeader } from "../../../../src/agent/cache/index/shared-header.ts";
import type { Write } from "../../../../src/agent/cache/index/writes.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { isHit, keyOf, metaOf, openedRig, store } from "../rig.ts";
import { openIndexIn } from "../still-index.ts";

const mib = 2 ** 20;
const numbers = (count: number): number[] => Array.from({ length: count }, (_, no) => no);

test("a domain that stores ten times the disk, and asks for all of it again, leaves another's set alone", async () => {
  using dir = tempDir();
  const diskMax = mib;
  await using rig = await openedRig(dir.path, { diskMax });
  // Stored once and never asked for again: nothing but its domain's share protects it.
  const modest = numbers(200).map((no) => keyOf({ domain: "b.test", path: `/page/${no}` }));
  for (const key of modest) expect((await store(rig.cache, key)).kind).toBe("stored");
  const body = "x".repeat(8_000);
  for (let at = 0; at < (10 * diskMax) / body.length; at += 20)
    await Promise.all(
      numbers(20).map(async (no) => {
        const key = keyOf({ query: `x=${at + no}` });
        await store(rig.cache, key, body);
        await store(rig.cache, key, body); // Asked for again, it counts as used now.
      }),
    );
  await until("there is room", async () => (await rig.client.stats()).bytes <= 0.95 * diskMax);
  expect(modest.filter((key) => !isHit(rig.cache, key))).toEqual([]);
  // What they leave of their share is the other's: with what is on its way in, which is a lot for so small a disk.
  const { bytes } = await rig.client.stats();
  expect(bytes).toBeGreaterThan(0.65 * diskMax);
});

test("a domain's share is lent while it is not used, and given back as it is", async () => {
  using dir = tempDir();
  const diskMax = mib;
  await using opened = await openIndexIn(dir.path, { diskMax });
  const { index } = opened;
  const fill = (domain: string, from: number, count: number): void => {
    index.write(numbers(count).map((no) => commitOf(index, domain, from + no, 4_000)));
    while (index.step());
  };
  for (let at = 0; at < 400; at += 50) fill("greedy.test", at, 50);
  expect(bytesOf(index, "greedy.test")).toBeGreaterThan(0.85 * diskMax);
  for (let at = 0; at < 400; at += 50) fill("late.test", at, 50);
  const both = [bytesOf(index, "greedy.test"), bytesOf(index, "late.test")] as const;
  expect(Math.abs(both[0] - both[1])).toBeLessThan(60 * 5_000);
  for (const bytes of both) expect(bytes).toBeGreaterThan(0.35 * diskMax);
});

/** Of 6,000 bytes, coded as well. */
const entryMax = 16_000;
const walk = fc.array(
  fc.record({
    domain: fc.nat(5),
    count: fc.integer({ min: 1, max: 40 }),
    size: fc.integer({ min: 0, max: 6_000 }),
    /** Of the domain, on its way in while eviction goes on. */
    inFlight: fc.nat(20_000),
    coded: fc.boolean(),
    isCleared: fc.boolean(),
  }),
  { minLength: 5, maxLength: 30 },
);

test("whatever is stored, no domain loses anything while another holds more, or has more than its share", async () => {
  await fc.assert(
    fc.asyncProperty(walk, async (moves) => {
      using dir = tempDir();
      const diskMax = 300_000;
      await using opened = await openIndexIn(dir.path, { diskMax });
      const { index, header } = opened;
      let next = 0;
      for (const { domain: no, count, size, inFlight, coded, isCleared } of moves) {
        const domain = `d${no}.test`;
        const place = header.domains.placeOf(domain);
        const commits = numbers(count).map((i) => commitOf(index, domain, next + i, size));
        next += count;
        const stored = index.write(commits);
        if (coded) index.write(commits.flatMap((commit, at) => codedOf(commit, stored[at])));
        if (isCleared) clear(index, domain);
        header.domains.addInFlight(place, inFlight);
        header.addInFlight(inFlight);
        evictAll(index, header, diskMax);
        header.domains.addInFlight(place, -inFlight);
        header.addInFlight(-inFlight);
        expectCounted(index, header);
      }
    }),
    { numRuns: 15 },
  );
}, 120_000);

/** Step by step, each held against what the document promises. */
function evictAll(index: OpenIndex, header: SharedHeader, diskMax: number): void {
  for (;;) {
    const before = totals(index, header);
    const isDeletion = index.unfinishedClears > 0;
    if (!index.step()) return;
    if (isDeletion) continue;
    const after = totals(index, header);
    const limit = 0.9 * diskMax;
    for (const [domain, bytes] of before) {
      const left = after.get(domain) ?? 0;
      if (left === bytes) continue;
      expect(bytes).toBeGreaterThan((limit - header.inFlightBytes) / before.size);
      // The last that went of it, with what was coded of it, was no larger than that.
      for (const [, others] of after) expect(others).toBeLessThanOrEqual(left + entryMax);
    }
  }
}

/** With what is on its way in, of those that have anything stored. */
function totals(index: OpenIndex, header: SharedHeader): Map<string, number> {
  const { domains } = header;
  return new Map(
    Array.from(index.entries.byDomain(), ({ domain, bytes }) => [
      domain,
      bytes + domains.inFlight(domains.placeOf(domain)),
    ]),
  );
}

/** What workers see is what is stored. */
function expectCounted(index: OpenIndex, { domains, storedBytes }: SharedHeader): void {
  let sum = 0;
  let holders = 0;
  for (const { domain, bytes } of index.entries.byDomain()) {
    expect(domains.stored(domains.placeOf(domain))).toBe(bytes);
    sum += bytes;
    holders++;
  }
  expect([storedBytes, domains.holders]).toEqual([sum, holders]);
}

function clear(index: OpenIndex, domain: string): void {
  const scope = { domain, host: null };
  const clearNo = index.record({
    ...scope,
    clearId: `${index.clears.newest}`,
    seq: 0,
    patterns: null,
  });
  const ids = index.hideAll(index.servableIds(scope));
  index.apply(clearNo, 0, { ids, widened: false, invisibleMs: 0 });
}

function commitOf(index: OpenIndex, domain: string, no: number, size: number): Write {
  const body = size === 0 ? null : ({ kind: "inline", bytes: Buffer.alloc(size) } as const);
  const meta = metaOf({ sourceNo: index.clears.newest });
  return {
    kind: "commit",
    candidate: {
      key: keyOf({ domain, query: `x=${no}` }),
      meta,
      body,
      size,
      invalidationMark: null,
    },
  };
}

/** A coded form of what was stored, as large as that. */
function codedOf(commit: Write, outcome: CommitOutcome | null | undefined): readonly Write[] {
  if (commit.kind !== "commit" || outcome?.kind !== "stored") return [];
  const { key, body, size } = commit.candidate;
  if (body === null) return [];
  return [{ kind: "variant", baseId: outcome.id, key, form: "br", body, size }];
}

function bytesOf(index: OpenIndex, wanted: string): number {
  return Array.from(index.entries.byDomain()).find(({ domain }) => domain === wanted)?.bytes ?? 0;
}

test("what is counted by domain is right after a restart, and of an index that is made anew nothing is left", async () => {
  using dir = tempDir();
  let opening: string;
  {
    await using opened = await openIndexIn(dir.path);
    const domains = ["a.test", "b.test", "b.test"];
    opened.index.write(domains.map((domain, no) => commitOf(opened.index, domain, no, 100)));
    ({ opening } = opened);
  }
  await using again = await openIndexIn(dir.path, { opening });
  expect(again.header.domains.holders).toBe(2);
  expectCounted(again.index, again.header);
  const anew = await again.makeAnew();
  expect(again.header.domains.holders).toBe(0);
  expectCounted(anew, again.header);
  expect(again.header.domains.stored(again.header.domains.placeOf("b.test"))).toBe(0);
});

test("bodies of one domain that never end leave room for another's, however many there are of either", () => {
  const header = new SharedHeader(SharedHeader.allocate());
  const diskMax = 64 * mib;
  const room = new DiskRoom(header, DiskRoom.allocateShare(), diskMax);
  /** As much as there is room for, in pieces of 64 KiB. */
  const takeAll = (domain: string, isSmall: boolean): number => {
    const place = room.placeOf(domain);
    let taken = 0;
    while (room.take(65_536, { place, isSmall })) taken += 65_536;
    return taken;
  };
  expect(takeAll("greedy.test", false)).toBe(diskMax / 4);
  expect(takeAll("another.test", false)).toBe(diskMax / 16);
  expect(takeAll("third.test", false)).toBeGreaterThan(diskMax / 100);
  const large = header.inFlightBytes;
  expect(large).toBeLessThan(diskMax / 3);
  // Small ones have room beside them, for each domain.
  for (const domain of ["greedy.test", "another.test", "fourth.test"])
    expect(takeAll(domain, true)).toBeGreaterThan(diskMax / 100);
  expect(header.inFlightBytes).toBeLessThan(diskMax / 2);
  room[Symbol.dispose]();
  expect(header.inFlightBytes).toBe(0);
  for (const domain of ["greedy.test", "another.test", "third.test", "fourth.test"])
    expect(header.domains.inFlight(header.domains.placeOf(domain))).toBe(0);
});

test("the last of the disk is for domains that have less than their share", () => {
  const header = new SharedHeader(SharedHeader.allocate());
  const room = new DiskRoom(header, DiskRoom.allocateShare(), 10_000);
  const [greedy, modest] = [room.placeOf("greedy.test"), room.placeOf("modest.test")];
  const has = (place: number): boolean => {
    const took = room.take(100, { place, isSmall: true });
    if (took) room.give(100, place);
    return took;
  };
  header.domains.addStored(greedy, 9_700);
  header.storedBytes = 9_700;
  header.domains.holders = 1;
  expect(has(greedy)).toBe(true); // Nobody else is there.
  header.domains.addStored(greedy, -100);
  header.domains.addStored(modest, 100);
  header.domains.holders = 2;
  expect([has(greedy), has(modest)]).toEqual([false, true]);
});

test("a large body that comes faster than eviction begins is stored when it is asked for again", async () => {
  using dir = tempDir();
  const diskMax = 4 * mib;
  await using opened = await openIndexIn(dir.path, { diskMax });
  const { index, header } = opened;
  index.write(numbers(94).map((no) => commitOf(index, "a.test", no, 37_000)));
  expect(header.storedBytes).toBeGreaterThan(0.93 * diskMax);
  expect(header.storedBytes).toBeLessThan(0.95 * diskMax);
  let called = 0;
  const options = { onShort: () => void called++ };
  const room = new DiskRoom(header, DiskRoom.allocateShare(), diskMax, options);
  const place = room.placeOf("a.test");
  /** Whole, before the index thread does anything. */
  const come = (): boolean => {
    let size = 0;
    while (size < room.objectBytesMax) {
      size += 65_536;
      if (room.take(65_536, { place, isSmall: false })) continue;
      room.give(size - 65_536, place);
      return false;
    }
    room.give(size, place);
    return true;
  };
  let tries = 1;
  for (; !come(); tries++) {
    while (index.step());
    expect(tries).toBeLessThan(4);
  }
  expect(tries).toBeGreaterThan(1);
  expect(called).toBeGreaterThan(1); // The index thread is told at once.
  while (index.step());
  expect(header.wantedBytes).toBe(0);
});

test("domains have places of their own, the same for everybody; those that find none share the last", () => {
  const buffer = new SharedArrayBuffer(domainBytesLength + 16);
  const [one, other] = [new DomainBytes(buffer, 16), new DomainBytes(buffer, 16)];
  const names = numbers(4_096).map((no) => `d${no}.test`);
  const places = names.map((name, no) => (no % 2 === 0 ? one : other).placeOf(name));
  expect(new Set(places).size).toBe(4_096);
  expect(names.map((name) => other.placeOf(name))).toEqual(places);
  expect(places).not.toContain(sharedPlace);
  expect([one.placeOf("more.test"), other.placeOf("more still.test")]).toEqual([
    sharedPlace,
    sharedPlace,
  ]);
  expect(one.placeOf("d7.test")).toBe(places[7]);
});
