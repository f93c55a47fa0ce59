// The spans of time that are counted: minutes, hours and days (UTC), each by when it begins, in seconds since the
// epoch.

export const finenesses = ["minute", "hour", "day"] as const;
export type Fineness = (typeof finenesses)[number];

export const bucketSeconds: Readonly<Record<Fineness, number>> = {
  minute: 60,
  hour: 3_600,
  day: 86_400,
};

/**
 * How long the counts of each fineness are kept, in seconds: 2, 60 and 800 days, and a little more, so that as many
 * days back from now are whole.
 */
export const countsKeptSeconds: Readonly<Record<Fineness, number>> = {
  minute: 2 * 86_400 + 3_600,
  hour: 61 * 86_400,
  day: 801 * 86_400,
};

/** The most frequent keys are kept by hour for 7 days and by day for 90, and a day more. */
export const topsKeptSeconds = { hour: 8 * 86_400, day: 91 * 86_400 } as const;
export type TopFineness = keyof typeof topsKeptSeconds;

/** Returns when the bucket of a time begins. */
export function bucketOf(seconds: number, fineness: Fineness): number {
  const span = bucketSeconds[fineness];
  return Math.floor(seconds / span) * span;
}

/** Picks the fineness of a view over a span for which none was asked: the finest that has some 400 buckets or less. */
export function usualFineness(spanSeconds: number): Fineness {
  if (spanSeconds <= 6 * 3_600) return "minute";
  return spanSeconds <= 14 * 86_400 ? "hour" : "day";
}
