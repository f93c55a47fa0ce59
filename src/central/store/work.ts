// What one transaction of the customer API works with: its handle, its time, and the deployments whose journal it made longer.

import { setImmediate } from "node:timers/promises";
import { appendJournal, type Appended } from "./journal.ts";
import type { JournalBody, JournalKind } from "../../wire/journal.ts";
import type { Sealer } from "../../base/seal.ts";
import type { Tx } from "./database.ts";

export type Work = {
  readonly tx: Tx;
  /** When the transaction began, ISO 8601: the one time of all that it writes. */
  readonly at: string;
  readonly sealer: Sealer;
  readonly randomHex: (bytes: number) => string;
  /** Deployment sites that got entries: to be woken after the commit. */
  readonly appended: Set<number>;
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
): Promise<readonly Appended[]> {
  const entries = await appendJournal(work.tx, deploymentSiteIds, kind, body, work.at);
  for (const { deploymentSiteId } of entries) work.appended.add(deploymentSiteId);
  return entries;
}

/** SQLite and PostgreSQL bound the values of one statement at about 32,000: rows are written in parts of so many. */
export const rowsPerStatement = 1_000;

export function* parts<T>(rows: readonly T[], size = rowsPerStatement): Generator<readonly T[]> {
  for (let at = 0; at < rows.length; at += size) yield rows.slice(at, at + size);
}

/** As `parts`, with a turn of the event loop between two: thousands of statements in one go would hold up every channel. */
export async function* pacedParts<T>(
  rows: readonly T[],
  size = rowsPerStatement,
): AsyncGenerator<readonly T[], void, undefined> {
  let isFirst = true;
  for (const part of parts(rows, size)) {
    if (!isFirst) await setImmediate();
    isFirst = false;
    yield part;
  }
}
