// How long to wait before the next try: exponential with full jitter, so that a fleet that lost central together does not return together.

export type Backoff = { readonly firstMs: number; readonly mostMs: number };

/** Towards central: 0.1 s doubling up to 60 s. */
export const linkBackoff: Backoff = { firstMs: 100, mostMs: 60_000 };

/**
 * Towards a central that nothing answers for (a closed port, or a proxy that says so): 0.1 s doubling up to 4 s. Such a try costs central nothing, and what a
 * host serves meanwhile may be cleared: a restart of central is met within 4 s, 2 s on average. 10,000 agents knock 5,000 times a second at a closed port, and
 * come within 4 s of its opening, which is slower than at a restart of half a second. Whoever was not served by then waits as `linkBackoff` says.
 */
export const refusedBackoff: Backoff = { firstMs: 100, mostMs: 4_000 };

/** Returns the first try whose ceiling is the most: counting further lengthens nothing, unless another backoff follows. */
export function lastAttempt({ firstMs, mostMs }: Backoff): number {
  return Math.ceil(Math.log2(mostMs / firstMs));
}

/** How a contact with central ended, as far as the next try depends on it. */
export type ContactEnd =
  /** Central asked to be left alone for so long. */
  | { readonly kind: "drained"; readonly reconnectAfterMs: number }
  /** Nothing answers for central. */
  | { readonly kind: "refused" }
  /** Central, or something on the way, failed or refused: it may be overloaded. */
  | { readonly kind: "failed" };

/** The tries in a row that ended so, since a contact that lasted. */
export type Tries = {
  /** Nobody was there; since central was last reached. */
  readonly refused: number;
  readonly failed: number;
};

export const noTries: Tries = { refused: 0, failed: 0 };

export type NextTry = {
  /** The time for which central is left alone whatever happens. */
  readonly leastMs: number;
  /** The further time, unless central is found before. */
  readonly moreMs: number;
  readonly tries: Tries;
};

/**
 * When central is tried again. A drained fleet comes back over as much time as it was to stay away, and not at one moment. The two kinds of failures are counted apart:
 * an absence says nothing about what central can take, so a central that crashes several times in a row is met as soon as one that crashed once.
 */
export function nextTry(
  end: ContactEnd,
  { refused, failed }: Tries,
  random: number,
  backoffs: { readonly backoff: Backoff; readonly refused: Backoff },
): NextTry {
  switch (end.kind) {
    case "drained":
      return {
        leastMs: end.reconnectAfterMs,
        moreMs: Math.floor(end.reconnectAfterMs * random),
        tries: noTries,
      };
    case "refused":
      return {
        leastMs: 0,
        moreMs: backoffMs(refused, random, backoffs.refused),
        tries: { refused: refused + 1, failed },
      };
    case "failed":
      return {
        leastMs: 0,
        moreMs: backoffMs(failed, random, backoffs.backoff),
        tries: { refused: 0, failed: failed + 1 },
      };
    default:
      return end satisfies never;
  }
}

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
