// Numbers of whole days, kept where all centrals reach them: a central that is new, or was away until a day's request logs went, takes them from there. What the engine offers is told
// here; postgres-logs/postgres-kept-numbers.ts has it.

import type { FoldedFile } from "./folded-file.ts";

/** What was counted of a series in a span; `kind` is "" for counts, or the name of a list of most frequent keys. */
export type NumbersRow = {
  readonly siteId: number;
  readonly domain: string;
  /** The index in `finenesses`. */
  readonly fineness: number;
  readonly kind: string;
  /** Seconds since the epoch. */
  readonly at: number;
  readonly bytes: Uint8Array;
};

/** Synchronous, for the thread that counts. Each throws LOGS_UNAVAILABLE. */
export type KeptNumbers = {
  /** Returns the days that are kept, the oldest first, each as it was folded. */
  list(): readonly FoldedFile[];
  /** Keeps a day that is folded and written no more, with all of its rows; a day that is kept already, and one of no concern here, is left as it is. */
  keep(folded: FoldedFile, rows: () => Iterable<NumbersRow>): void;
  /** Yields the rows of a day that is kept. */
  rows(day: string): Iterable<NumbersRow>;
  /** Removes what is older than anybody may ask for. */
  limit(nowS: number): void;
};
