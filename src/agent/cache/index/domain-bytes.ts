// How many bytes are each domain's, stored and on their way in, in memory that all threads share: workers tell by it whether a domain has its share of the disk
// already, the index thread whose entries go.
//
//   int64 0      holders     how many domains have anything stored
//   4,096 times  name        the first 8 bytes of the SHA-1 of the domain; 0: free. Taken by the thread that comes first, and kept
//   4,097 times  in_flight   workers write it
//   4,097 times  stored      the index thread writes it
//
// The place behind the last is of all domains that found none, as if they were one.

import { hash } from "node:crypto";

const names = 4_096;
const inFlightFrom = 1 + names;
const storedFrom = inFlightFrom + names + 1;

/** The place of a domain's figures: 0 to `domainPlaces` - 1. */
export const domainPlaces = names + 1;
export const sharedPlace = names;
export const domainBytesLength = (storedFrom + names + 1) * 8;

export class DomainBytes {
  readonly #words: BigInt64Array;
  readonly #places = new Map<string, number>();

  constructor(buffer: SharedArrayBuffer, byteOffset: number) {
    this.#words = new BigInt64Array(buffer, byteOffset, domainBytesLength / 8);
  }

  /** Returns the place of a domain: the same in every thread, for as long as the memory is used. */
  placeOf(domain: string): number {
    let place = this.#places.get(domain);
    if (place === undefined) {
      place = this.#find(domain);
      this.#places.set(domain, place);
    }
    return place;
  }

  get holders(): number {
    return Number(Atomics.load(this.#words, 0));
  }
  set holders(count: number) {
    Atomics.store(this.#words, 0, BigInt(count));
  }

  inFlight(place: number): number {
    return Number(Atomics.load(this.#words, inFlightFrom + place));
  }
  /** Adds bytes in flight and returns the domain's sum. */
  addInFlight(place: number, bytes: number): number {
    return Number(Atomics.add(this.#words, inFlightFrom + place, BigInt(bytes))) + bytes;
  }

  stored(place: number): number {
    return Number(Atomics.load(this.#words, storedFrom + place));
  }
  addStored(place: number, bytes: number): void {
    Atomics.add(this.#words, storedFrom + place, BigInt(bytes));
  }

  /** Forgets what is stored: another index is counted from now on. */
  forgetStored(): void {
    for (let place = 0; place < domainPlaces; place++)
      Atomics.store(this.#words, storedFrom + place, 0n);
    this.holders = 0;
  }

  #find(domain: string): number {
    const digest = hash("sha1", domain, "buffer");
    const name = digest.readBigInt64LE() || 1n; // 0 is nobody's.
    const first = digest.readUInt32LE() % names;
    for (let no = 0; no < names; no++) {
      const place = (first + no) % names;
      const before = Atomics.compareExchange(this.#words, 1 + place, 0n, name);
      if (before === 0n || before === name) return place;
    }
    return sharedPlace;
  }
}
