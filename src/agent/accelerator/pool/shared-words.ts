// Shared memory between main and the workers. Every word is read and written with Atomics only.
//
//   pool (284 bytes)      i32 version of the state in force | i32 worker that codes a variant, 0: none | i64 connections accepted since the start
//                         | i32 1: the lane is switched off | i32 the most connections that may be open, 0: any number
//                         | 64 i32 connections open, one a worker | i32 worker that makes the form of a picture, 0: none
//   heartbeat (4 bytes)   i32, one buffer a worker: it moves while the worker's loop turns

/** As many as the settings allow. */
const workersMost = 64;
const openAt = 24;
const imagesAt = openAt + 4 * workersMost;
const poolBytes = imagesAt + 4;

export class PoolWords {
  readonly buffer: SharedArrayBuffer;
  readonly #version: Int32Array;
  /** Whose turn it is to code a variant. */
  readonly codingTurn: SharedTurn;
  /** Whose turn it is to make the form of a picture. */
  readonly imageTurn: SharedTurn;
  readonly #connections: BigInt64Array;
  readonly #laneOff: Int32Array;
  readonly #most: Int32Array;
  readonly #open: Int32Array;

  constructor(buffer = new SharedArrayBuffer(poolBytes)) {
    this.buffer = buffer;
    this.#version = new Int32Array(buffer, 0, 1);
    this.codingTurn = new SharedTurn(new Int32Array(buffer, 4, 1));
    this.imageTurn = new SharedTurn(new Int32Array(buffer, imagesAt, 1));
    this.#connections = new BigInt64Array(buffer, 8, 1);
    this.#laneOff = new Int32Array(buffer, 16, 1);
    this.#most = new Int32Array(buffer, 20, 1);
    this.#open = new Int32Array(buffer, openAt, workersMost);
  }

  get version(): number {
    return Atomics.load(this.#version, 0);
  }

  /** Every worker must have acknowledged the state of this version. */
  flip(version: number): void {
    Atomics.store(this.#version, 0, version);
  }

  get usesLane(): boolean {
    return Atomics.load(this.#laneOff, 0) === 0;
  }

  switchLane(usesIt: boolean): void {
    Atomics.store(this.#laneOff, 0, usesIt ? 0 : 1);
  }

  /** 1, 2, 3, … over all workers. */
  nextConnection(): number {
    return Number(Atomics.add(this.#connections, 0, 1n)) + 1;
  }

  /** Bounds the connections of all workers together. */
  limitConnections(most: number): void {
    Atomics.store(this.#most, 0, Math.min(most, 2 ** 31 - 1));
  }

  /** Counts a connection of a worker. False: there are as many as there may be, and it does not count. */
  enter(worker: number): boolean {
    const most = Atomics.load(this.#most, 0);
    if (most > 0 && this.#openNow() >= most) return false;
    Atomics.add(this.#open, worker - 1, 1);
    return true;
  }

  leave(worker: number): void {
    Atomics.sub(this.#open, worker - 1, 1);
  }

  /** The connections that a worker has open. */
  openOf(worker: number): number {
    return Atomics.load(this.#open, worker - 1);
  }

  /** Forgets the connections of a worker that is gone. */
  forget(worker: number): void {
    Atomics.store(this.#open, worker - 1, 0);
  }

  #openNow(): number {
    let sum = 0;
    // One that was given up as stuck may still count down from nothing.
    for (let at = 0; at < workersMost; at++) sum += Math.max(0, Atomics.load(this.#open, at));
    return sum;
  }
}

/** A turn that one worker of the process has at a time: a word with its number, 0: nobody has it. */
export class SharedTurn {
  readonly #word: Int32Array;

  constructor(word: Int32Array) {
    this.#word = word;
  }

  /** False: a worker has it, maybe this one. */
  start(worker: number): boolean {
    return Atomics.compareExchange(this.#word, 0, 0, worker) === 0;
  }

  /** Ends the turn of a worker, also of one that is gone. It has no effect when another one has it, or nobody. */
  end(worker: number): void {
    if (Atomics.compareExchange(this.#word, 0, worker, 0) === worker) Atomics.notify(this.#word, 0);
  }

  /** Resolves when nobody may have it any more, or after the time. */
  async ended(waitMs: number): Promise<void> {
    const holder = Atomics.load(this.#word, 0);
    if (holder !== 0) await Atomics.waitAsync(this.#word, 0, holder, waitMs).value;
  }
}

export class Heartbeat {
  readonly buffer: SharedArrayBuffer;
  readonly #beats: Int32Array;

  constructor(buffer = new SharedArrayBuffer(4)) {
    this.buffer = buffer;
    this.#beats = new Int32Array(buffer);
  }

  beat(): void {
    Atomics.add(this.#beats, 0, 1);
  }

  get beats(): number {
    return Atomics.load(this.#beats, 0);
  }
}
