// How fast the body of one answer is sent, behind its first bytes: pure, so that a test can move the clock.

export type BytePace = {
  readonly rateBytesS: number;
  /** So many bytes go out as fast as the visitor takes them. */
  readonly afterBytes: number;
};

/** How often a visitor is sent something: who gets nothing for long takes a download for dead. */
const piecesPerS = 4;
const pieceBytesMin = 1_024;
const pieceBytesMax = 65_536;

/** Returns the most bytes to send next, where `sent` have gone out. */
export function pieceOf({ rateBytesS, afterBytes }: BytePace, sent: number): number {
  if (sent < afterBytes) return afterBytes - sent;
  return Math.min(pieceBytesMax, Math.max(pieceBytesMin, Math.floor(rateBytesS / piecesPerS)));
}

/**
 * Returns how long to wait until the next piece may go out, ms. `sinceMs` is the time since the byte behind the free
 * ones was due. Whoever took them more slowly than he might has nothing to catch up with: see `startMs`.
 */
export function pauseMs(
  { rateBytesS, afterBytes }: BytePace,
  sent: number,
  sinceMs: number,
): number {
  if (sent <= afterBytes) return 0;
  return Math.max(0, ((sent - afterBytes) / rateBytesS) * 1_000 - sinceMs);
}

/** The most time that a visitor may be behind and catch up with, ms. */
const behindMsMax = 1_000;

/**
 * Returns the time from which the pace counts, where it counted from `fromMs`: a visitor who paused for long is not
 * sent all that he missed at once.
 */
export function startMs(pace: BytePace, sent: number, fromMs: number, nowMs: number): number {
  const dueMs = fromMs + (Math.max(0, sent - pace.afterBytes) / pace.rateBytesS) * 1_000;
  return nowMs - dueMs > behindMsMax ? fromMs + (nowMs - dueMs - behindMsMax) : fromMs;
}
