// Versions of bot sets: each change is one, counted exactly. What the journals are told of them is coalesced: an entry leads from the version that
// was told last to the newest, by what remains of all changes between them.
//
//   version > journaled_version    something is still to be told; bot_changes has it in order, unless `pending` says that it is more than an entry holds
// Both are written in the transaction of the change itself, so that a crash loses no entry: mark-journal.ts goes on at the next start.

import {
  changedSetDigest,
  elementKey,
  emptySetDigest,
  exchangedSetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { BotSet } from "../../../wire/journal.ts";
import { inlineElementsMax, noteEntries, sitesOfDomain } from "../journal/links.ts";
import { isShrinkMeant } from "../journal/site-state.ts";
import { pacedParts } from "../engine/parts.ts";
import { append, type Work } from "../engine/work.ts";
import type { TableRow } from "../engine/schema.ts";

/** The place of a bot: in the bad or the VIP set of a host. */
export type BotPlace = {
  readonly domainId: number;
  readonly host: string;
  readonly set: BotSet;
  readonly bot: string;
};

type SetRow = TableRow<"bot_sets">;

export async function findSet(
  { tx }: Work,
  { domainId, host, set: kind }: BotPlace,
): Promise<SetRow | undefined> {
  return tx
    .selectFrom("bot_sets")
    .selectAll()
    .where((set) => set.and({ domain_id: domainId, host, kind }))
    .executeTakeFirst();
}

/** A set comes to be with the first bot in it. */
export async function openSet(work: Work, place: BotPlace): Promise<SetRow> {
  const { domainId, host, set: kind } = place;
  return (
    (await findSet(work, place)) ??
    work.tx
      .insertInto("bot_sets")
      .values({ domain_id: domainId, host, kind, version: 0, count: 0, digest: emptySetDigest })
      .returningAll()
      .executeTakeFirstOrThrow()
  );
}

/** A bot by what it holds. */
export type BotHeld = Contents & { readonly id: number };

export async function botOfSet(
  { tx }: Work,
  setId: number,
  name: string,
): Promise<BotHeld | undefined> {
  return tx
    .selectFrom("bots")
    .select(["id", "count", "digest"])
    .where((bot) => bot.and({ bot_set_id: setId, name }))
    .executeTakeFirst();
}

export type SetChange = {
  readonly added: readonly SetElement[];
  readonly removed: readonly SetElement[];
};
/** The contents of the set or of one bot. */
export type Contents = { readonly count: number; readonly digest: Sha256 };

/** Elements of one bot came or went and are written already; a change of nothing is no version. */
export async function commitVersion(
  work: Work,
  set: SetRow,
  before: BotHeld,
  added: readonly SetElement[],
  removed: readonly SetElement[],
): Promise<void> {
  if (added.length + removed.length === 0) return;
  const after: Contents = {
    count: before.count + added.length - removed.length,
    digest: changedSetDigest(before.digest, added, removed),
  };
  await work.tx.updateTable("bots").set(after).where("id", "=", before.id).execute();
  await putVersion(work, set, {
    before,
    after,
    removed: removed.length,
    change: added.length + removed.length <= inlineElementsMax ? { added, removed } : undefined,
  });
}

/** More than any set holds: whatever is left of it is meant. The greatest that the column takes. */
const meantFromAny = 2 ** 31 - 1;

/** The next version: one bot's contents gave way to others. `change` undefined: too large to be told by itself. Answers with the version. */
export async function putVersion(
  work: Work,
  set: SetRow,
  step: {
    readonly before: Contents;
    readonly after: Contents;
    readonly removed: number;
    readonly change: SetChange | undefined;
    /** Whatever becomes of the set is meant. */
    readonly isMeant?: boolean;
  },
): Promise<number> {
  const { before, after, change } = step;
  const from = Math.max(set.meant_from, step.removed > 0 ? set.count : 0);
  const next = {
    version: set.version + 1,
    count: set.count - before.count + after.count,
    digest: exchangedSetDigest(set.digest, before.digest, after.digest),
    meant_from: step.isMeant === true ? meantFromAny : from,
  };
  const row = { ...set, ...next };
  const isFirst = set.journaled_version === set.version;
  if (isFirst && work.marksAreDue()) {
    await tell(work, row, change);
    await work.tx
      .updateTable("bot_sets")
      .set({ ...next, journaled_version: next.version })
      .where("id", "=", set.id)
      .execute();
    return next.version;
  }
  work.unjournaled.add(set.id);
  const size = change === undefined ? Infinity : change.added.length + change.removed.length;
  const pending = Math.min(set.pending + size, inlineElementsMax + 1);
  if (change !== undefined && pending <= inlineElementsMax) await keep(work, set.id, change);
  await work.tx
    .updateTable("bot_sets")
    .set({ ...next, pending })
    .where("id", "=", set.id)
    .execute();
  return next.version;
}

/** Tells the journals what they were not told yet of these sets. */
export async function journalVersions(work: Work, setIds: readonly number[]): Promise<void> {
  for (const setId of setIds) {
    const set = await work.tx
      .selectFrom("bot_sets")
      .selectAll()
      .where("id", "=", setId)
      .executeTakeFirst();
    if (set === undefined || set.version === set.journaled_version) continue;
    const change = set.pending <= inlineElementsMax ? await keptChange(work, setId) : undefined;
    await tell(work, set, change);
    await work.tx.deleteFrom("bot_changes").where("bot_set_id", "=", setId).execute();
    await work.tx
      .updateTable("bot_sets")
      .set({ journaled_version: set.version, pending: 0 })
      .where("id", "=", setId)
      .execute();
  }
}

/** Sets whose last changes no journal tells. */
export async function unjournaledSets({ tx }: Pick<Work, "tx">): Promise<readonly number[]> {
  const rows = await tx
    .selectFrom("bot_sets")
    .select("id")
    .whereRef("version", ">", "journaled_version")
    .execute();
  return rows.map(({ id }) => id);
}

async function tell(work: Work, set: SetRow, change: SetChange | undefined): Promise<void> {
  const siteIds = await sitesOfDomain(work, set.domain_id);
  const entries = await append(work, siteIds, "bots.changed", {
    domain: set.host,
    set: set.kind,
    // A version that leads to itself fits no agent that has another: it fetches the whole.
    from_version: change === undefined ? set.version : set.journaled_version,
    to_version: set.version,
    added: [...(change?.added ?? [])],
    removed: [...(change?.removed ?? [])],
    count: set.count,
    digest: set.digest,
    shrink_meant: isShrinkMeant(set),
  });
  await noteEntries(work, set, entries);
}

async function keep(work: Work, setId: number, { added, removed }: SetChange): Promise<void> {
  const rowsOf = (elements: readonly SetElement[], isAdded: 0 | 1) =>
    elements.map((element) => ({ bot_set_id: setId, is_added: isAdded, ...element }));
  const rows = [...rowsOf(removed, 0), ...rowsOf(added, 1)];
  for await (const part of pacedParts(rows))
    await work.tx.insertInto("bot_changes").values(part).execute();
}

/** Returns what is left of changes of which one may take back the other. */
async function keptChange({ tx }: Work, setId: number): Promise<SetChange> {
  const rows = await tx
    .selectFrom("bot_changes")
    .select(["is_added", "bot", "range"])
    .where("bot_set_id", "=", setId)
    .orderBy("id")
    .execute();
  const [added, removed] = [new Map<string, SetElement>(), new Map<string, SetElement>()];
  for (const { is_added: isAdded, ...element } of rows) {
    const [own, other] = isAdded === 1 ? [added, removed] : [removed, added];
    if (!other.delete(elementKey(element))) own.set(elementKey(element), element);
  }
  return { added: [...added.values()], removed: [...removed.values()] };
}
