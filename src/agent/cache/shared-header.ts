// The words that all threads of the agent share about the cache. Made by main, so that they outlive an index thread that is replaced.
//
//   int32 0   incarnation   which open index.db the bitmap, ids in hand and connections belong to; 0: none, nothing is servable
//   int32 1   confirmed     1: stored responses may be used (the journal's head is applied, or the settings say so)
//   int32 6   openings      how often an index was opened: each gets the next number as its incarnation
//   int64 1   clear_no      number of the newest clear
//   int64 2   last_id       newest entry id ever given out in this process
//
// Written by the index thread, but for `confirmed`, which main writes.

const headerBytes = 32;

export class SharedHeader {
  readonly #words: Int32Array;
  readonly #numbers: BigInt64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
    this.#numbers = new BigInt64Array(buffer);
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
