// What a worker and the spool thread share about one lane without messages: nine 64-bit words.
//
//   0  accepted   last number that the worker has given out                                    (worker)
//   1  durable    everything through this number is synced to disk, or is a gap that is told    (spool)
//   2  reserved   numbers through this one may be given out: a crash would tell them as a gap   (spool)
//   3  taken      bytes of groups that the spool thread has taken from its port                 (spool)
//   4  waiting    records dropped in the worker that have no number yet                          (worker)
//   5  quieted    `quiet` messages that the spool thread has answered: `reserved` is newer        (spool)
//   6  woken      `wake` messages that the spool thread has answered                             (spool)
//   7  kept       records that get their numbers when the lane is awake                          (worker)
//   8  seen       all records that the worker has taken, numbered or not: it only ever grows     (worker)
//
// Numbers are the worker's own, from 1; the spool thread cuts lanes from them.

export class LaneWords {
  readonly #words: BigInt64Array;

  constructor(shared: SharedArrayBuffer) {
    this.#words = new BigInt64Array(shared);
  }

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer(9 * BigInt64Array.BYTES_PER_ELEMENT);
  }

  get accepted(): number {
    return this.#load(0);
  }
  set accepted(seq: number) {
    this.#store(0, seq);
  }

  get durable(): number {
    return this.#load(1);
  }
  set durable(seq: number) {
    this.#store(1, seq);
  }

  get reserved(): number {
    return this.#load(2);
  }
  set reserved(seq: number) {
    this.#store(2, seq);
  }

  get taken(): number {
    return this.#load(3);
  }
  set taken(bytes: number) {
    this.#store(3, bytes);
  }

  get waiting(): number {
    return this.#load(4);
  }
  set waiting(count: number) {
    this.#store(4, count);
  }

  get quieted(): number {
    return this.#load(5);
  }
  set quieted(count: number) {
    this.#store(5, count);
  }

  get woken(): number {
    return this.#load(6);
  }
  set woken(count: number) {
    this.#store(6, count);
  }

  get kept(): number {
    return this.#load(7);
  }
  set kept(count: number) {
    this.#store(7, count);
  }

  get seen(): number {
    return this.#load(8);
  }
  set seen(count: number) {
    this.#store(8, count);
  }

  #load(at: number): number {
    return Number(Atomics.load(this.#words, at));
  }

  #store(at: number, value: number): void {
    Atomics.store(this.#words, at, BigInt(value));
  }
}
