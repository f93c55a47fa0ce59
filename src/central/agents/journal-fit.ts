// Judges whether an agent's position belongs to this journal: the same store, not beyond the head, the same
// digest over all entries before it.

import { chainStart } from "../../core/journal/journal-chain.ts";
import type { JournalEntry } from "../../wire/journal.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";

/** The place at which an agent says that it stands; with a null epoch it has no state of any store. */
export type JournalPosition = {
  readonly epoch: string | null;
  readonly seq: number;
  readonly chain: string;
};

export type JournalFit = {
  readonly headSeq: number;
  /** Why the agent must take the snapshot; undefined if it can go on from its position. */
  readonly resync: string | undefined;
};

export async function judgeFit(
  store: AgentStore,
  deploymentSiteId: number,
  { epoch, seq, chain }: JournalPosition,
): Promise<JournalFit> {
  const { seq: headSeq } = await store.head(deploymentSiteId);
  const fit = (resync?: string): JournalFit => ({ headSeq, resync });
  if (epoch === null) return fit("the agent has no state yet");
  if (epoch !== store.epoch)
    return fit(`the agent's state is of the store ${epoch}, this is ${store.epoch}`);
  if (seq > headSeq) return fit(`the agent is at ${seq}, the journal ends at ${headSeq}`);
  const own = seq === 0 ? chainStart : await store.chainAt(deploymentSiteId, seq);
  if (own === undefined) return fit(`the journal does not reach back to ${seq}`);
  return fit(own === chain ? undefined : `the chain digest at ${seq} differs`);
}

/** Returns the entries as an agent can read them: one of the previous release knows no extensions. */
export function entriesTaken(
  entries: readonly JournalEntry[],
  takesExtensions: boolean,
): JournalEntry[] {
  if (takesExtensions) return [...entries];
  return entries.map(({ extension: _extension, ...entry }) => entry);
}
