// Token buckets by key, for a bounded number of keys: the one unused for longest is forgotten first.
//
// Several centrals divide a limit among them: each allows its share, so that all together never allow more.

export type RateLimit = {
  /**
   * Takes as many tokens as the request weighs, or returns how many milliseconds to wait until it may. A
   * request that weighs more than a bucket holds needs a full one, and leaves it in debt: the next wait is as
   * long as if the request had come in parts.
   */
  take(key: string, weight?: number): number;
  /** Gives back what was taken by a request that the limit is not meant for. */
  give(key: string, weight?: number): void;
  /** Returns the wait of a `take` of one, without taking. */
  waitMs(key: string): number;
};

/** `centrals`: among how many the limit is divided now. A bucket holds one at least. */
export function createRateLimit(
  limit: { readonly burst: number; readonly perSecond: number; readonly keysMax: number },
  nowMs: () => number,
  centrals: () => number = () => 1,
): RateLimit {
  const { keysMax } = limit;
  const burst = (): number => {
    const count = centrals();
    return count === 1 ? limit.burst : Math.max(1, limit.burst / count);
  };
  const perSecond = (): number => limit.perSecond / centrals();
  const buckets = new Map<string, { left: number; atMs: number }>();
  const filled = (key: string): { left: number; atMs: number } => {
    const now = nowMs();
    const { left, atMs } = buckets.get(key) ?? { left: burst(), atMs: now };
    return { left: Math.min(burst(), left + ((now - atMs) / 1_000) * perSecond()), atMs: now };
  };
  const wait = (left: number, weight: number): number => {
    const needed = Math.min(weight, burst());
    return left >= needed ? 0 : ((needed - left) / perSecond()) * 1_000;
  };
  return {
    waitMs: (key) => wait(filled(key).left, 1),
    give(key, weight = 1) {
      const bucket = buckets.get(key);
      if (bucket !== undefined) bucket.left = Math.min(burst(), bucket.left + weight);
    },
    take(key, weight = 1) {
      const { left, atMs } = filled(key);
      const waitMs = wait(left, weight);
      buckets.delete(key);
      buckets.set(key, { left: waitMs === 0 ? left - weight : left, atMs });
      const oldest = buckets.size > keysMax ? buckets.keys().next().value : undefined;
      if (oldest !== undefined) buckets.delete(oldest);
      return waitMs;
    },
  };
}
