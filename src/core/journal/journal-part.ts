// How a journal is read: by position, a part at a time.

import type { Sha256 } from "../ids.ts";
/** Number of the last entry (0: there is none), and the digest that commits to all up to it. */
export type JournalHead = { readonly seq: number; readonly chain: Sha256 };

/**
 * The entries behind a position, in order, as many as fit into one page (entries and bytes), but at least one
 * if there is one.
 */
export type JournalPart<Entry> = {
  readonly entries: readonly Entry[];
  /** Whether there were no more when they were read. */
  readonly isLast: boolean;
};
