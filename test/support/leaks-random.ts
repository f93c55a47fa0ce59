// Chance of the leak hunt: one stream of numbers for each name, so that an application is the same whenever it is asked, and a run can be repeated.

export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Derives the chance of something that has a number. */
  static of(seed: number, no: number): Chance {
    const chance = new Chance(
      Math.imul(seed + 0x9e37_79b9, 0x85eb_ca6b) ^ Math.imul(no + 1, 0xc2b2_ae35),
    );
    chance.next();
    return chance;
  }

  /** From 0 to below 1; mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    const state = this.#state;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  is(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[this.below(from.length)] ?? from[0];
  }

  some<T>(from: readonly T[], share: number): readonly T[] {
    return from.filter(() => this.is(share));
  }
}
