// The words that all threads of the agent share about the cache. Made by main, so that they outlive an index thread that is replaced.
//
//   int32 0   incarnation   which open index.db the bitmap, ids in hand and connections belong to; 0: none, nothing is servable
//   int32 1   confirmed     1: stored responses may be used (the journal's head is applied, or the settings say so)
//   int32 6   openings      how often an index was opened: each gets the next number as its incarnation
//   int32 7   asked         how many clears main has asked for: background work that sees it move makes way
//   int64 1   clear_no      number of the newest clear
//   int64 2   last_id       newest entry id ever given out in this process
//   int32 8…  clear marks   256 words, one by hash of the domain: moves with each clear that may concern it
//   int32 264… key marks    16,384 words, one by hash of the key: moves after each commit that changed an entry of it
//   then       unsure       256 words, one by hash of the domain: not 0 while its stored responses must be confirmed by the origin
//   then       lookups      how often workers looked an entry up: background work that sees it move makes way for visitors
//   then       invalidation marks   16,384 words, one by hash of the key: moves with each invalidation of it, and once more where the index is asked
//   then       stored       int64: bytes that the index counts
//   then       in_flight    int64: bytes of bodies that workers are writing (disk-room.ts)
//   then       wanted       int64: what was in flight when a body found no room; eviction makes room for as much
//   then       withheld     int64: bytes of disk_max that may not be used now, because the disk has to keep room for others (disk-shortage.ts)
//   then       soft_since   int64: when the oldest soft clear was given of which not all ids are in the table `softened` yet, s of the wall clock; 0: none
//   then       domains      what of stored and in_flight is each domain's (domain-bytes.ts)
//
// Written by the index thread, but for `confirmed`, `asked` and `unsure`, which main writes, and `lookups`, `in_flight` and `wanted`, which workers do. Clear marks are moved by the
// index thread after each number, invalidation marks also by a worker before it asks. A mark that moved without need costs a fetch or a look-up.

import { DomainBytes, domainBytesLength } from "./domain-bytes.ts";
import type { EntryKey } from "../entry.ts";

const clearMarksAt = 8;
const clearMarks = 256;
const keyMarksAt = clearMarksAt + clearMarks;
/** 64 KiB: at 1,000 commits a second a key that nobody touches seems to move once in 16 s. */
const keyMarks = 16_384;
const unsureAt = keyMarksAt + keyMarks;
const lookupsAt = unsureAt + clearMarks;
const invalidationsAt = lookupsAt + 2; // Of whole 64-bit words.
/** The place of the first counter, in 64-bit words. */
const storedAt = (invalidationsAt + keyMarks) / 2;
const inFlightAt = storedAt + 1;
const wantedAt = inFlightAt + 1;
const withheldAt = wantedAt + 1;
const softSinceAt = withheldAt + 1;
const domainsFrom = (softSinceAt + 1) * 8;
const headerBytes = domainsFrom + domainBytesLength;

export class SharedHeader {
  readonly #words: Int32Array;
  readonly #numbers: BigInt64Array;
  readonly domains: DomainBytes;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
    this.#numbers = new BigInt64Array(buffer);
    this.domains = new DomainBytes(buffer, domainsFrom);
  }

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer(headerBytes);
  }

  get incarnation(): number {
    return Atomics.load(this.#words, 0);
  }
  set incarnation(value: number) {
    Atomics.store(this.#words, 0, value);
  }

  nextIncarnation(): number {
    return Atomics.add(this.#words, 6, 1) + 1;
  }

  get confirmed(): boolean {
    return Atomics.load(this.#words, 1) === 1;
  }
  set confirmed(value: boolean) {
    Atomics.store(this.#words, 1, value ? 1 : 0);
  }

  isUnsure(domain: string): boolean {
    return Atomics.load(this.#words, unsureAt + domainPlace(domain)) !== 0;
  }
  /** Makes these domains unsure and no others, but for those that share a word. */
  setUnsure(domains: readonly string[]): void {
    const places = new Set(domains.map(domainPlace));
    for (let place = 0; place < clearMarks; place++)
      Atomics.store(this.#words, unsureAt + place, places.has(place) ? 1 : 0);
  }

  get clearsAsked(): number {
    return Atomics.load(this.#words, 7);
  }
  /** Notes a clear before the index thread is told. */
  noteClearAsked(): void {
    Atomics.add(this.#words, 7, 1);
  }

  /** The number of look-ups, which wraps around. */
  get lookups(): number {
    return Atomics.load(this.#words, lookupsAt);
  }
  noteLookup(): void {
    Atomics.add(this.#words, lookupsAt, 1);
  }

  /** Returns the mark of clears and invalidations. Both only ever grow (and wrap): while their sum is the same, neither has moved. */
  clearMark(key: EntryKey): number {
    const cleared = Atomics.load(this.#words, clearMarkOf(key.domain));
    return cleared + Atomics.load(this.#words, invalidationMarkOf(key));
  }

  /** Returns the mark of invalidations alone. What was fetched before it moved is not stored. */
  invalidationMark(key: EntryKey): number {
    return Atomics.load(this.#words, invalidationMarkOf(key));
  }

  /** Shows a clear. The number comes first: who reads the mark and then the number has no number of before under the new mark. `domain` null: every domain. */
  noteClear(clearNo: number, domain: string | null): void {
    this.clearNo = clearNo;
    this.moveClearMark(domain);
  }

  /** Shows an invalidation, the number first as well: that of the newest that was committed. */
  noteInvalidation(clearNo: number, key: EntryKey): void {
    this.clearNo = clearNo;
    this.moveInvalidationMark(key);
  }

  /** Moves the mark of a key; other fetches of the domain may still be shared. */
  moveInvalidationMark(key: EntryKey): void {
    Atomics.add(this.#words, invalidationMarkOf(key), 1);
  }

  moveClearMark(domain: string | null): void {
    if (domain !== null) Atomics.add(this.#words, clearMarkOf(domain), 1);
    else
      for (let at = clearMarksAt; at < clearMarksAt + clearMarks; at++)
        Atomics.add(this.#words, at, 1);
  }

  /** `place` comes from `keyPlace`. */
  keyMark(place: number): number {
    return Atomics.load(this.#words, place);
  }

  /** Moves the mark of a key, after the commit. */
  moveKeyMark(place: number): void {
    Atomics.add(this.#words, place, 1);
  }

  get storedBytes(): number {
    return Number(Atomics.load(this.#numbers, storedAt));
  }
  set storedBytes(value: number) {
    Atomics.store(this.#numbers, storedAt, BigInt(value));
  }

  get inFlightBytes(): number {
    return Number(Atomics.load(this.#numbers, inFlightAt));
  }
  /** Adds bytes in flight and returns the sum of all. */
  addInFlight(bytes: number): number {
    return Number(Atomics.add(this.#numbers, inFlightAt, BigInt(bytes))) + bytes;
  }

  get wantedBytes(): number {
    return Number(Atomics.load(this.#numbers, wantedAt));
  }
  /** Asks for bytes. Of two that ask at once either is heard. */
  set wantedBytes(bytes: number) {
    Atomics.store(this.#numbers, wantedAt, BigInt(bytes));
  }

  /** How much of disk_max may not be used now. */
  get withheldBytes(): number {
    return Number(Atomics.load(this.#numbers, withheldAt));
  }
  set withheldBytes(bytes: number) {
    Atomics.store(this.#numbers, withheldAt, BigInt(bytes));
  }

  /** Since when soft clears are in force of which the table `softened` does not tell all, s of the wall clock; 0: it tells all. */
  get softSinceS(): number {
    return Number(Atomics.load(this.#numbers, softSinceAt));
  }
  set softSinceS(value: number) {
    Atomics.store(this.#numbers, softSinceAt, BigInt(value));
  }

  get clearNo(): number {
    return Number(Atomics.load(this.#numbers, 1));
  }
  set clearNo(value: number) {
    Atomics.store(this.#numbers, 1, BigInt(value));
  }

  get lastId(): number {
    return Number(Atomics.load(this.#numbers, 2));
  }
  set lastId(value: number) {
    Atomics.store(this.#numbers, 2, BigInt(value));
  }
}

/** Returns the place of a key's mark. */
export function keyPlace(key: EntryKey): number {
  return keyMarksAt + (keyHash(key) % keyMarks);
}

function invalidationMarkOf(key: EntryKey): number {
  return invalidationsAt + (keyHash(key) % keyMarks);
}

function keyHash({ domain, host, kind, path, query }: EntryKey): number {
  return hashed(query, hashed(path, hashed(kind, hashed(host, hashed(domain, fnvBasis)))));
}

function clearMarkOf(domain: string): number {
  return clearMarksAt + domainPlace(domain);
}

/** The most domains whose places are remembered: a hit asks for its own each time. */
const placesMax = 4_096;
const domainPlaces = new Map<string, number>();

function domainPlace(domain: string): number {
  const known = domainPlaces.get(domain);
  if (known !== undefined) return known;
  const place = hashed(domain, fnvBasis) % clearMarks;
  if (domainPlaces.size >= placesMax) domainPlaces.clear();
  domainPlaces.set(domain, place);
  return place;
}

const fnvBasis = 0x81_1c_9d_c5;

/** FNV-1a over UTF-16 units: nobody gains by collisions but an extra look-up. */
function hashed(text: string, basis: number): number {
  let hash = basis;
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01_00_01_93) >>> 0;
  return hash;
}
