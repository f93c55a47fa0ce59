// How often something may happen, as a token bucket in the form of GCRA: one number says when the bucket is full
// again, and each event that is let in moves it on by the time in which one token comes back.
//
// Times are counted in ticks, 32 bits of them, so that a state fits into one word of shared memory. How long a tick is
// depends on the rate: a token comes back in 1,000 to 2,048 ticks, so rounding takes at most a thousandth of the
// rate and adds at most a thousandth of a token.
//
// Ticks wrap around, so a state of long ago may be read as one of today. Whoever comes back so late that he meets the one token's time in 2^32 ticks in which his
// bucket looks empty is refused: that is one visit in two million. In the time before, of one burst, he finds less than a whole burst: one in 128 at most.

export type RateSettings = {
  readonly rate: number;
  readonly per_s: number;
  /** How many may come at once; null: as many as `rate` says. */
  readonly burst: number | null;
};

export type RatePace = {
  /** A tick is 2 to this power, in microseconds. */
  readonly tickPower: number;
  /** The ticks in which one token comes back. */
  readonly interval: number;
  /** A bucket that is full again so many ticks from now has one token left, but for the tick by which times are rounded. */
  readonly tolerance: number;
};

/** The shortest time in which a token may come back, µs: shorter ones would be rounded by more than a thousandth. */
const intervalUsMin = 1_000;
export const burstMax = 10_000;
/** The most that one address may be allowed: a thousand a second. */
export const ratePerSecondMax = 1_000_000 / intervalUsMin;
const ticksOfInterval = 1_024;
/** No bucket is emptier than this, ticks: 10,000 tokens of less than 2,049 ticks. */
export const debtTicksMax = 2 ** 25;

export function burstOf({ rate, burst }: RateSettings): number {
  return burst ?? Math.min(rate, burstMax);
}

export function paceOf(settings: RateSettings): RatePace {
  const { rate, per_s: perS } = settings;
  const intervalUs = (perS * 1_000_000) / rate;
  const tickPower = Math.max(0, Math.floor(Math.log2(intervalUs / ticksOfInterval)));
  const interval = Math.ceil(intervalUs / 2 ** tickPower);
  return { tickPower, interval, tolerance: (burstOf(settings) - 1) * interval + 1 };
}

/** Returns the tick of a time, as 32 bits with a sign. */
export function tickOf(nowUs: number, tickPower: number): number {
  return Math.floor(nowUs / 2 ** tickPower) | 0;
}

/**
 * Returns how many ticks it takes until a bucket is full that is full at `fullAt`; 0 if it is now. What no bucket of
 * this pace can owe is of another day, so the time has to be read after `fullAt`: an earlier one would find that debt
 * in a bucket that was emptied meanwhile.
 */
export function debtOf(fullAt: number, nowTick: number, { interval, tolerance }: RatePace): number {
  const debt = (fullAt - nowTick) | 0;
  return debt > 0 && debt <= tolerance + interval ? debt : 0;
}

/** Whether a bucket is full, whatever its pace is. */
export function isFull(fullAt: number, nowTick: number): boolean {
  const debt = (fullAt - nowTick) | 0;
  return debt <= 0 || debt >= debtTicksMax;
}

/** Returns how long to wait until the next is let in, µs; 0 lets it in. */
export function waitOf(debt: number, { tickPower, tolerance }: RatePace): number {
  return debt <= tolerance ? 0 : (debt - tolerance) * 2 ** tickPower;
}

/** Returns when the bucket is full again, once one more has been let in. */
export function fullAfter(debt: number, nowTick: number, { interval }: RatePace): number {
  return (nowTick + debt + interval) | 0;
}

/** Returns how many more may come at once. */
export function leftOf(debt: number, { interval, tolerance }: RatePace): number {
  return Math.max(0, Math.floor((tolerance - debt) / interval) + 1);
}
