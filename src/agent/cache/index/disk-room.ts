// Room on disk for bodies that are on their way in: counted over all workers while they are written, until the index counts them or they are gone.
//
// The larger ones may take a part of disk_max; eviction makes room for them beside what is stored. Where there is none, because eviction cannot keep up or too much is
// on its way already, a body is not taken: visitors get it uncached. However much one domain has on its way, another finds room: the fuller the part is, the less of it
// may be one domain's (`inFlightWeight`), and the last of the disk is for those that have less than their share of it.

import { domainPlaces, sharedPlace } from "./domain-bytes.ts";
import type { SharedHeader } from "./shared-header.ts";

/**
 * The largest share of disk_max that one response may take, so that none empties the cache for the others.
 */
const objectShare = 1 / 8;
/**
 * The weight by which the bytes in flight are bounded: those of a domain and this many times those of all are
 * at most disk_max. So one domain alone takes a quarter, two of the largest bodies, and leaves room for
 * others. The more domains, the less each takes, and together never a third. Origins that never come to an
 * end can keep no more than that from being used.
 */
const inFlightWeight = 3;
/** Small ones find room where the large ones have theirs: a third for one domain alone, together never half. */
const smallInFlightWeight = 2;
/** The share of disk_max at which eviction begins, so that bodies find room while it is at work. */
const spareShare = 1 / 20;
/**
 * The share of disk_max kept for domains with less than an equal share of it: a domain that stores faster
 * than eviction works does not keep them out.
 */
const reservedShare = 1 / 40;

type Words = Pick<
  SharedHeader,
  "storedBytes" | "inFlightBytes" | "addInFlight" | "wantedBytes" | "withheldBytes" | "domains"
>;

/** Returns how much of disk_max may be used now. */
export function usableBytes(header: Pick<Words, "withheldBytes">, diskMax: number): number {
  return Math.max(0, diskMax - header.withheldBytes);
}

/**
 * Returns by how much the stored bytes and those on their way (also those that found no room) exceed what
 * there should be with so much to use. It is negative if they do not.
 */
export function shortBytes(header: Words, usable: number): number {
  const { storedBytes, inFlightBytes, wantedBytes } = header;
  return storedBytes + Math.max(inFlightBytes, wantedBytes) - usable * (1 - spareShare);
}

export function isShort(header: Words, usable: number): boolean {
  return shortBytes(header, usable) > 0;
}

/** The body for which room is asked. */
export type RoomFor = {
  /** The place of its domain (`DomainBytes.placeOf`). */
  readonly place: number;
  /** One that the few large ones which come slowly are not to keep out. */
  readonly isSmall: boolean;
};

export type DiskRoomOptions = {
  /** Called when eviction is to begin, without waiting for anything else to bring the index thread to it. */
  readonly onShort?: () => void;
};

/**
 * The room as one worker sees it, which alone writes to its share. When the worker has died, main gives back
 * what it had taken.
 */
export class DiskRoom implements Disposable {
  readonly #header: Words;
  readonly #share: SharedArrayBuffer;
  /** The bytes taken, by the place of the domain. */
  readonly #taken: BigInt64Array;
  readonly #diskMax: number;
  readonly #onShort: () => void;
  #isEnded = false;

  constructor(
    header: Words,
    share: SharedArrayBuffer,
    diskMax: number,
    { onShort = () => undefined }: DiskRoomOptions = {},
  ) {
    this.#header = header;
    this.#share = share;
    this.#taken = new BigInt64Array(share);
    this.#diskMax = diskMax;
    this.#onShort = onShort;
  }

  static allocateShare(): SharedArrayBuffer {
    return new SharedArrayBuffer(domainPlaces * 8);
  }

  get objectBytesMax(): number {
    return Math.floor(this.#usable * objectShare);
  }

  get isShort(): boolean {
    return isShort(this.#header, this.#usable);
  }

  get #usable(): number {
    return usableBytes(this.#header, this.#diskMax);
  }

  placeOf(domain: string): number {
    return this.#header.domains.placeOf(domain);
  }

  /** Takes room. False: there is none, and nothing is taken. Where eviction can help it is called. */
  take(
    bytes: number,
    { place, isSmall }: RoomFor = { place: sharedPlace, isSmall: false },
  ): boolean {
    if (this.#isEnded) return false;
    const wasShort = this.isShort;
    const all = this.#add(place, bytes);
    const own = this.#header.domains.inFlight(place);
    const weight = isSmall ? smallInFlightWeight : inFlightWeight;
    const mayFly = own + weight * all <= this.#usable;
    const hasRoom = all + this.#header.storedBytes <= this.#maxFor(place);
    if (!mayFly || !hasRoom) this.#add(place, -bytes);
    else Atomics.add(this.#taken, place, BigInt(bytes));
    // Eviction goes on to make it when this body has been given up, so that the next try finds it.
    if (mayFly && !hasRoom && all > this.#header.wantedBytes) this.#header.wantedBytes = all;
    if (!wasShort && this.isShort) this.#onShort();
    return mayFly && hasRoom;
  }

  give(bytes: number, place = sharedPlace): void {
    if (this.#isEnded) return; // Given already.
    Atomics.sub(this.#taken, place, BigInt(bytes));
    this.#add(place, -bytes);
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    giveShare(this.#header, this.#share);
  }

  #add(place: number, bytes: number): number {
    return addInFlight(this.#header, place, bytes);
  }

  #maxFor(place: number): number {
    const { holders } = this.#header.domains;
    const own = this.#header.domains.stored(place) + this.#header.domains.inFlight(place);
    const usable = this.#usable;
    const hasItsShare = holders > 1 && own > usable / holders;
    return hasItsShare ? usable * (1 - reservedShare) : usable;
  }
}

/** Gives back all that a worker had taken, which takes nothing more. */
export function giveShare(
  header: Pick<Words, "addInFlight" | "domains">,
  share: SharedArrayBuffer,
): void {
  const taken = new BigInt64Array(share);
  for (let place = 0; place < taken.length; place++) {
    const bytes = Number(Atomics.exchange(taken, place, 0n));
    if (bytes !== 0) addInFlight(header, place, -bytes);
  }
}

/** Adds bytes in flight and returns what all have with them. */
function addInFlight(
  header: Pick<Words, "addInFlight" | "domains">,
  place: number,
  bytes: number,
): number {
  header.domains.addInFlight(place, bytes);
  return header.addInFlight(bytes);
}
