// Chance with a seed, so that a run that found something can be repeated.

export type Random = {
  /** From 0 to below 1. */
  readonly next: () => number;
  readonly pick: <T>(from: readonly T[]) => T | undefined;
};

/** mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { next, pick: (from) => from[Math.floor(next() * from.length)] };
}
