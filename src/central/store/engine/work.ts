// What one transaction of the customer API works with: its handle, its time, and the deployments whose journal it made longer.

import { appendJournal, type Appended } from "../journal/journal.ts";
import type { JournalBody, JournalExtension, JournalKind } from "../../../wire/journal.ts";
import type { Sealer } from "../../../base/seal.ts";
import type { Tx } from "./database.ts";

/** A page in order of id: those behind `after`. */
export type PageRange = {
  readonly after: number;
  readonly limit: number;
  /** Whether the list goes from its end to its beginning; `after` 0 is beyond its end then. */
  readonly isNewestFirst?: boolean;
};

export type Work = {
  readonly tx: Tx;
  /** The start of the transaction, ISO 8601: the one time of all that it writes. */
  readonly at: string;
  readonly sealer: Sealer;
  readonly randomHex: (bytes: number) => string;
  /** Deployment sites that got entries: to be woken after the commit. */
  readonly appended: Set<number>;
  /** Where those journals end now; absent where nobody asks. */
  readonly ends?: Map<number, number>;
  /** Main domains that were named in it. */
  readonly concerned: Set<string>;
  /** Bot sets with changes of which the journals are told later. */
  readonly unjournaled: Set<number>;
  /** Whether changes of bot sets are told at once; once false, it is false for the next 50 ms (mark-journal.ts). */
  readonly marksAreDue: () => boolean;
};

export async function append<K extends JournalKind>(
  work: Work,
  deploymentSiteIds: readonly number[],
  kind: K,
  body: JournalBody<K>,
  extension?: JournalExtension<K>,
): Promise<readonly Appended[]> {
  const { tx, at } = work;
  const entries = await appendJournal(tx, deploymentSiteIds, kind, body, at, extension);
  for (const { deploymentSiteId, seq } of entries) {
    work.appended.add(deploymentSiteId);
    work.ends?.set(deploymentSiteId, seq);
  }
  return entries;
}
