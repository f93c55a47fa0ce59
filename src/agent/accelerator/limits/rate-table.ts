// What visitors have used of the rates that the rules of `limits.requests` allow them: one table in shared memory for all workers. No worker waits for another one, and
// nothing is swept: an entry is free when its bucket is full again, for it says no more than no entry does.
//
//   262,144 lines of      8 entries of two words: i32 mark | i32 the tick at which the bucket is full again
//   64 bytes              mark: 27 bits of the hash | 5 bits: how long its tick is. 0: none has been here. 1: being written
//
// Which line an entry is in, and its mark, come from a hash of domain, rule and address under a secret of this start, so nobody can choose addresses that meet. Two of
// them share an entry if 45 bits are the same: while 100,000 others have entries, one visitor in 300 million shares his.
//
// An entry is spent from by one compare-and-swap of its second word. To give it to somebody else a worker first takes the mark away, then swaps the second word
// against what it has seen there, and writes the new mark last: whoever read the old mark swaps in vain. Two workers who make entries for the same visitor at the same
// time see each other's entries being written, and one of them begins again. Each looks for that first, and then for the mark: what was being written until then is found.

import { hash as digest } from "node:crypto";
import { KeyedHash } from "../../../core/limits/keyed-hash.ts";
import {
  debtOf,
  fullAfter,
  isFull,
  leftOf,
  tickOf,
  waitOf,
  type RatePace,
} from "../../../core/limits/request-rate.ts";

/** What the workers are given of a table. */
export type RateMemory = {
  readonly buffer: SharedArrayBuffer;
  readonly secret: string;
};

const linePower = 18;
const lineWords = 16;
const lines = 2 ** linePower;
export const rateTableBytes = lines * lineWords * 4;

const nobody = 0;
const beingWritten = 1;
const powerBits = 5;
const powerMask = 2 ** powerBits - 1;

/** Somebody who writes an entry takes less than a microsecond. Who has looked so often waits for a worker that is gone. */
const looksMax = 2_000;
/** The share of lines that is looked at for an estimate of how full the table is. */
const sampledLines = 2 ** 12;

/** The address of a visitor, as it is hashed: the one word of an IPv4 address, or the two of an IPv6 /64. */
export type VisitorWords = { readonly first: number; readonly second: number | undefined };

/** There was no room for an entry. */
export const noRoom = -1;

/** Makes the memory of a table; `secret` is known to this agent alone. */
export function rateMemory(secret: string): RateMemory {
  return { buffer: new SharedArrayBuffer(rateTableBytes), secret };
}

export class RateTable {
  readonly #secret: string;
  readonly #words: Int32Array;
  readonly #hash = new KeyedHash();

  constructor({ buffer, secret }: RateMemory) {
    this.#secret = secret;
    this.#words = new Int32Array(buffer);
  }

  /** Returns the key of a rule. What is spent under one name is spent under no other. */
  keyOf(name: string): Int32Array {
    const bytes = digest("sha256", `${this.#secret} ${name}`, "buffer");
    return Int32Array.of(bytes.readInt32LE(0), bytes.readInt32LE(4));
  }

  /**
   * Takes a token, if there is one. Returns how long the visitor has to wait for one, µs: 0 if he was given it, and
   * `noRoom` if nothing could be noted. `clockUs` is one for all workers, and is asked after the entry was read.
   */
  spend(key: Int32Array, visitor: VisitorWords, pace: RatePace, clockUs: () => number): number {
    const mark = this.#markOf(key, visitor, pace);
    const line = this.#line;
    for (let looks = 0; looks < looksMax; looks++) {
      const at = this.#find(line, mark);
      if (at >= 0) {
        const fullAt = Atomics.load(this.#words, at + 1);
        // Read again: it may have become somebody else's before the second word was read.
        if (Atomics.load(this.#words, at) !== mark) continue;
        const nowTick = tickOf(clockUs(), pace.tickPower);
        const debt = debtOf(fullAt, nowTick, pace);
        const waitUs = waitOf(debt, pace);
        if (waitUs > 0) return waitUs;
        if (this.#swap(at + 1, fullAt, fullAfter(debt, nowTick, pace))) return 0;
      } else if (!this.#isBeingWritten(line, -1)) {
        const nowUs = clockUs();
        const free = this.#findFree(line, nowUs);
        if (free < 0) return noRoom;
        const fullAt = fullAfter(0, tickOf(nowUs, pace.tickPower), pace);
        if (this.#enter(line, free, mark, nowUs, fullAt)) return 0;
      }
    }
    this.#releaseAll(line);
    return noRoom;
  }

  /** Returns how many requests might come at once; nothing is spent. */
  left(key: Int32Array, visitor: VisitorWords, pace: RatePace, clockUs: () => number): number {
    const mark = this.#markOf(key, visitor, pace);
    const at = this.#find(this.#line, mark);
    if (at < 0) return leftOf(0, pace);
    const fullAt = Atomics.load(this.#words, at + 1);
    return leftOf(debtOf(fullAt, tickOf(clockUs(), pace.tickPower), pace), pace);
  }

  /** Returns the share of the table that is in use, from 0 to 1, estimated by some of its lines. */
  used(nowUs: number): number {
    const step = lines / sampledLines;
    let used = 0;
    for (let line = 0; line < lines; line += step)
      for (let at = line * lineWords; at < (line + 1) * lineWords; at += 2)
        if (!this.#isFree(at, Atomics.load(this.#words, at), nowUs)) used++;
    return used / (sampledLines * (lineWords / 2));
  }

  /** The index of the line of the mark that was made last. */
  get #line(): number {
    return ((this.#hash.words[1] ?? 0) >>> (32 - linePower)) * lineWords;
  }

  #markOf(key: Int32Array, { first, second }: VisitorWords, { tickPower }: RatePace): number {
    this.#hash.of(key, first, second);
    const bits = (this.#hash.words[0] ?? 0) & ~powerMask;
    // Marks of one power of ticks begin with a hash that is not 0: 0 and 1 stand for no visitor.
    return (bits === 0 ? powerMask + 1 : bits) | tickPower;
  }

  #find(line: number, mark: number): number {
    for (let at = line; at < line + lineWords; at += 2)
      if (Atomics.load(this.#words, at) === mark) return at;
    return -1;
  }

  /** Whether an entry of the line is being written, but for the one at `own`. */
  #isBeingWritten(line: number, own: number): boolean {
    for (let at = line; at < line + lineWords; at += 2)
      if (at !== own && Atomics.load(this.#words, at) === beingWritten) return true;
    return false;
  }

  #findFree(line: number, nowUs: number): number {
    for (let at = line; at < line + lineWords; at += 2)
      if (this.#isFree(at, Atomics.load(this.#words, at), nowUs)) return at;
    return -1;
  }

  #isFree(at: number, mark: number, nowUs: number): boolean {
    if (mark === nobody) return true;
    if (mark === beingWritten) return false;
    return isFull(Atomics.load(this.#words, at + 1), tickOf(nowUs, mark & powerMask));
  }

  /** Makes an entry in the place of a free one. False: others were here at the same time, and nothing has changed. */
  #enter(line: number, at: number, mark: number, nowUs: number, fullAt: number): boolean {
    const words = this.#words;
    const before = Atomics.load(words, at);
    if (before === beingWritten || !this.#swap(at, before, beingWritten)) return false;
    const wasFullAt = Atomics.load(words, at + 1);
    const isMine =
      this.#isFree(at, before, nowUs) &&
      !this.#isBeingWritten(line, at) &&
      this.#find(line, mark) < 0 &&
      this.#swap(at + 1, wasFullAt, fullAt);
    // Only whoever holds it writes to it; a worker that was taken for gone finds that it holds it no more.
    return this.#swap(at, beingWritten, isMine ? mark : before) && isMine;
  }

  /** Frees what a worker was writing when it ended. */
  #releaseAll(line: number): void {
    for (let at = line; at < line + lineWords; at += 2) this.#swap(at, beingWritten, nobody);
  }

  #swap(at: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.#words, at, from, to) === from;
  }
}
