// Token buckets by key, for a bounded number of keys: the one unused for longest is forgotten first.

export type RateLimit = {
  /** Takes one, or tells how many milliseconds until there is one. */
  take(key: string): number;
  /** What was taken was not meant by the limit. */
  give(key: string): void;
  /** As `take`, without taking. */
  waitMs(key: string): number;
};

export function createRateLimit(
  { burst, perSecond, keysMax }: { burst: number; perSecond: number; keysMax: number },
  nowMs: () => number,
): RateLimit {
  const buckets = new Map<string, { left: number; atMs: number }>();
  const filled = (key: string): { left: number; atMs: number } => {
    const now = nowMs();
    const { left, atMs } = buckets.get(key) ?? { left: burst, atMs: now };
    return { left: Math.min(burst, left + ((now - atMs) / 1_000) * perSecond), atMs: now };
  };
  const wait = (left: number): number => (left >= 1 ? 0 : ((1 - left) / perSecond) * 1_000);
  return {
    waitMs: (key) => wait(filled(key).left),
    give(key) {
      const bucket = buckets.get(key);
      if (bucket !== undefined) bucket.left = Math.min(burst, bucket.left + 1);
    },
    take(key) {
      const { left, atMs } = filled(key);
      const waitMs = wait(left);
      buckets.delete(key);
      buckets.set(key, { left: waitMs === 0 ? left - 1 : left, atMs });
      const oldest = buckets.size > keysMax ? buckets.keys().next().value : undefined;
      if (oldest !== undefined) buckets.delete(oldest);
      return waitMs;
    },
  };
}
