// How long to wait before the next try: exponential with full jitter, so that a fleet that lost central together does not return together.

export type Backoff = { readonly firstMs: number; readonly mostMs: number };

/** Towards central: 0.1 s doubling up to 60 s. */
export const linkBackoff: Backoff = { firstMs: 100, mostMs: 60_000 };

/**
 * Wait before try number `attempt` (0 is the first repetition): uniform in [0, ceiling), ceiling = min(most, first × 2^attempt).
 * The jitter is applied after the cap: before it, every host above the cap would wait equally long. `random` is in [0, 1).
 */
export function backoffMs(
  attempt: number,
  random: number,
  { firstMs, mostMs }: Backoff = linkBackoff,
): number {
  const ceilingMs = Math.min(mostMs, firstMs * 2 ** Math.min(attempt, 30));
  return Math.floor(ceilingMs * random);
}
