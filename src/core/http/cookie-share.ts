// Decides when so many requests of a domain are passed to the origin for their cookies that its operators
// should know.
//
// Requests are counted in windows of ten minutes. The notice comes within a window, as soon as there is
// reason for it; only a whole window without reason takes it back.

/** Counts since the caller's start. */
export type CookieCounts = {
  /** Requests answered, except those that were blocked. */
  readonly requests: number;
  readonly passed: number;
};

export type CookieWindow = { readonly sinceMs: number; readonly start: CookieCounts };

export const cookieWindowMs = 600_000;
/** Fewer passed requests in a window trouble nobody, whatever their share. */
export const passedMin = 200;
/** The share of requests below which a site simply has visitors who are logged in. */
export const passedShareMin = 0.25;

export type CookieVerdict = {
  /** The window that counts from now on. */
  readonly window: CookieWindow;
  /** The counts within the window, if there is reason to tell. */
  readonly tell: CookieCounts | undefined;
  /** Whether the window ended without a reason to tell. */
  readonly isSettled: boolean;
};

/**
 * `before` is undefined for a domain of which nothing was counted. Counts that went back, as those of a
 * restarted counter do, begin a new window.
 */
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
