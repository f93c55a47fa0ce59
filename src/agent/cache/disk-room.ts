// Room on disk for bodies that are on their way in: counted over all workers while they are written, until the index counts them or they are gone.
//
// The larger ones may take a part of disk_max; eviction makes room for them beside what is stored. Where there is none, because eviction cannot keep up or too much is
// on its way already, a body is not taken: visitors get it uncached.

import type { SharedHeader } from "./shared-header.ts";

/** Of disk_max: so that no single response empties the cache for the others. */
const objectShare = 1 / 8;
/** Of disk_max: what origins that never come to an end can keep from being used. Two of the largest bodies. */
const inFlightShare = 1 / 4;
/** Of disk_max: eviction begins that early, so that bodies find room while it is at work. */
const spareShare = 1 / 20;

type Words = Pick<SharedHeader, "storedBytes" | "inFlightBytes" | "addInFlight">;

/** What the index holds and what is on its way are more than there should be. */
export function isShort(header: Words, diskMax: number): boolean {
  return header.storedBytes + header.inFlightBytes > diskMax * (1 - spareShare);
}

/** Of one worker, which alone writes to its share; when it has died, main gives back what it had taken. */
export class DiskRoom implements Disposable {
  readonly #header: Words;
  readonly #share: SharedArrayBuffer;
  readonly #taken: BigInt64Array;
  readonly #diskMax: number;
  #isEnded = false;

  constructor(header: Words, share: SharedArrayBuffer, diskMax: number) {
    this.#header = header;
    this.#share = share;
    this.#taken = new BigInt64Array(share);
    this.#diskMax = diskMax;
  }

  static allocateShare(): SharedArrayBuffer {
    return new SharedArrayBuffer(8);
  }

  get objectBytesMax(): number {
    return Math.floor(this.#diskMax * objectShare);
  }

  get isShort(): boolean {
    return isShort(this.#header, this.#diskMax);
  }

  /** False: there is no room, and nothing is taken. `isSmall`: of a body that the few large ones which come slowly are not to keep out. */
  take(bytes: number, isSmall = false): boolean {
    if (this.#isEnded) return false;
    const inFlight = this.#header.addInFlight(bytes);
    const fits =
      (isSmall || inFlight <= this.#diskMax * inFlightShare) &&
      inFlight + this.#header.storedBytes <= this.#diskMax;
    if (fits) Atomics.add(this.#taken, 0, BigInt(bytes));
    else this.#header.addInFlight(-bytes);
    return fits;
  }

  give(bytes: number): void {
    if (this.#isEnded) return; // Given already.
    Atomics.sub(this.#taken, 0, BigInt(bytes));
    this.#header.addInFlight(-bytes);
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    giveShare(this.#header, this.#share);
  }
}

/** All that the worker had taken; it takes nothing more. */
export function giveShare(header: Pick<Words, "addInFlight">, share: SharedArrayBuffer): void {
  header.addInFlight(-Number(Atomics.exchange(new BigInt64Array(share), 0, 0n)));
}
