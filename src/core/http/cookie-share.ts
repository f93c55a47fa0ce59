// When so many requests of a domain are passed to the origin for their cookies that its operators should know.
//
// Counted in windows of ten minutes. It is said within a window as soon as there is reason for it, and taken back only by a whole window without.

/** Counts since the caller's start. */
export type CookieCounts = {
  /** Answered, but for those that were blocked. */
  readonly requests: number;
  readonly passed: number;
};

export type CookieWindow = { readonly sinceMs: number; readonly start: CookieCounts };

export const cookieWindowMs = 600_000;
/** Fewer in a window are nobody's trouble, whatever their share. */
export const passedMin = 200;
/** The share of requests below which a site simply has visitors who are logged in. */
export const passedShareMin = 0.25;

export type CookieVerdict = {
  /** The window that counts from now on. */
  readonly window: CookieWindow;
  /** Within the window, where there is reason to tell. */
  readonly tell: CookieCounts | undefined;
  /** The window is over, and there was no reason in it. */
  readonly isSettled: boolean;
};

/** `before`: undefined for a domain of which nothing was counted. Counts that went back, as of a counter that began anew, begin a window. */
export function judgeCookies(
  before: CookieWindow | undefined,
  counts: CookieCounts,
  nowMs: number,
): CookieVerdict {
  const begun = { sinceMs: nowMs, start: counts };
  if (before === undefined) return { window: begun, tell: undefined, isSettled: false };
  const within = {
    requests: counts.requests - before.start.requests,
    passed: counts.passed - before.start.passed,
  };
  if (within.requests < 0 || within.passed < 0)
    return { window: begun, tell: undefined, isSettled: false };
  const isReason = within.passed >= passedMin && within.passed >= passedShareMin * within.requests;
  const isOver = nowMs - before.sinceMs >= cookieWindowMs;
  return {
    window: isOver ? begun : before,
    tell: isReason ? within : undefined,
    isSettled: isOver && !isReason,
  };
}
