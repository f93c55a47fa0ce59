// What an import staged is put into force: in the place of what the bot held, or beside it. One transaction, one version of the set.

import { AccelError } from "../../../core/faults.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import {
  type BotHeld,
  botOfSet,
  type BotPlace,
  type Contents,
  openSet,
  putVersion,
} from "./bot-versions.ts";
import { heldBot, takeNumber } from "./bot-rewrite.ts";
import {
  differenceOf,
  type ListDifference,
  type Staged,
  type Staging,
  type Transacting,
} from "./bot-staging.ts";
import { inlineElementsMax } from "../journal/links.ts";
import type { Ended } from "../engine/customer-store.ts";
import type { Work } from "../engine/work.ts";
import { elementPages } from "./bot-elements.ts";
import type { TableRow } from "../engine/schema.ts";

/** Runs a transaction, which is kept where its action says so. */
export type Keeping = <T>(action: (work: Work) => Promise<Ended<T>>) => Promise<T>;

export type StagedOutcome = {
  /** The version of the set, which holds `set_count` elements. It is unchanged if nothing changed. */
  readonly version: number;
  readonly set_count: number;
  readonly bot_count: number;
  readonly added: number;
  readonly removed: number;
};

/** The set of a place as it was when the list began to come in. Throws CONFLICT where the domain is no more. */
async function setOf(work: Work, place: BotPlace, setId: number): Promise<TableRow<"bot_sets">> {
  const domain = await work.tx
    .selectFrom("domains")
    .select("id")
    .where("id", "=", place.domainId)
    .executeTakeFirst();
  const set = domain === undefined ? undefined : await openSet(work, place);
  if (set?.id !== setId)
    throw new AccelError("CONFLICT", `${place.host} was deleted while the list was taken in`);
  return set;
}

/**
 * Puts the list in the place of what the bot held. Undefined: the bot is not any more what the difference was taken from. Throws CONFLICT where the domain is no
 * more, or the list took so long that what was written of it is not kept.
 */
export async function putReplacement(
  work: Work,
  place: BotPlace,
  { setId, botId, count, digest }: Staging & Staged,
  { before, added, removed, change }: ListDifference,
): Promise<StagedOutcome | undefined> {
  const set = await setOf(work, place, setId);
  const now = await botOfSet(work, setId, place.bot);
  if (now?.id !== before?.id || now?.digest !== before?.digest) return undefined;
  const old: Contents = before ?? { count: 0, digest: emptySetDigest };
  const after: Contents = { count, digest };
  const told = { set_count: set.count - old.count + count, bot_count: count, added, removed };
  if (before !== undefined && added + removed === 0) return { version: set.version, ...told };
  if (!(await takeNumber(work, botId)))
    throw new AccelError("CONFLICT", "the list took too long to come in; send it again");
  if (before !== undefined) await work.tx.deleteFrom("bots").where("id", "=", before.id).execute();
  await work.tx
    .insertInto("bots")
    .values({ id: botId, bot_set_id: set.id, name: place.bot, ...after })
    .execute();
  const isMeant = before !== undefined;
  const version = await putVersion(work, set, { before: old, after, removed, change, isMeant });
  return { version, ...told };
}

/** How often what the bot holds is held against a list; it may be changed meanwhile. */
const attemptsMax = 3;

export type Replaced =
  | { readonly kind: "put"; readonly outcome: StagedOutcome }
  | { readonly kind: "refused"; readonly reason: string }
  /** Others changed the bot again and again. */
  | { readonly kind: "busy" };

export type ReplacingRules = {
  /** Says why the list may not be put in force. */
  readonly refusal?: (difference: ListDifference) => string | undefined;
  /** Runs in the transaction that puts it in force. What it answers is why nothing of it is kept. */
  readonly settle: (work: Work, outcome: StagedOutcome) => Promise<string | undefined>;
};

/** Replaces what a bot holds by a list that is staged. Throws as `putReplacement` does. */
export async function replaceByStaged(
  transact: Keeping,
  place: BotPlace,
  staged: Staging & Staged,
  { refusal, settle }: ReplacingRules,
): Promise<Replaced> {
  const plain: Transacting = async (action) =>
    transact(async (work) => ({ keep: true, value: await action(work) }));
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const before = await plain(async (work) => heldBot(work, place));
    const difference = await differenceOf(plain, place.bot, before, staged);
    const reason = refusal?.(difference);
    if (reason !== undefined) return { kind: "refused", reason };
    const replaced = await transact<Replaced | undefined>(async (work) => {
      const outcome = await putReplacement(work, place, staged, difference);
      if (outcome === undefined) return { keep: false, value: undefined };
      const why = await settle(work, outcome);
      return why === undefined
        ? { keep: true, value: { kind: "put", outcome } }
        : { keep: false, value: { kind: "refused", reason: why } };
    });
    if (replaced !== undefined) return replaced;
  }
  return { kind: "busy" };
}

/** Adds the list to what the bot holds. Throws as `putReplacement` does. */
export async function putAddition(
  work: Work,
  place: BotPlace,
  staged: Staging & Staged,
): Promise<StagedOutcome> {
  const set = await setOf(work, place, staged.setId);
  const bot = await botOfSet(work, set.id, place.bot);
  if (bot !== undefined) return merge(work, place, set, staged, bot);
  const { count: added } = staged;
  const all = { before: undefined, added, removed: 0, samples: { added: [], removed: [] } };
  // Nothing can be another than it was in this transaction.
  const put = await putReplacement(work, place, staged, { ...all, change: undefined });
  if (put === undefined) throw new AccelError("CONFLICT", `${place.bot} came to be meanwhile`);
  return put;
}

async function merge(
  work: Work,
  place: BotPlace,
  set: TableRow<"bot_sets">,
  staged: Staged,
  bot: BotHeld,
): Promise<StagedOutcome> {
  const added: SetElement[] = [];
  let [count, digest] = [bot.count, bot.digest];
  for await (const ranges of elementPages(work.tx, staged.botId)) {
    const rows = await work.tx
      .selectFrom("bot_elements")
      .selectAll()
      .where("bot_id", "=", staged.botId)
      .where("range", "in", ranges)
      .execute();
    const fresh = await work.tx
      .insertInto("bot_elements")
      .values(rows.map((row) => ({ ...row, bot_id: bot.id })))
      .onConflict((conflict) => conflict.doNothing())
      .returning("range")
      .execute();
    const elements = fresh.map(({ range }) => ({ bot: place.bot, range }));
    count += elements.length;
    digest = changedSetDigest(digest, elements, []);
    if (added.length <= inlineElementsMax) added.push(...elements);
  }
  const after: Contents = { count, digest };
  const grown = count - bot.count;
  const set_count = set.count + grown;
  if (grown === 0)
    return { version: set.version, set_count, bot_count: count, added: 0, removed: 0 };
  await work.tx.updateTable("bots").set(after).where("id", "=", bot.id).execute();
  const version = await putVersion(work, set, {
    before: bot,
    after,
    removed: 0,
    change: grown <= inlineElementsMax ? { added, removed: [] } : undefined,
  });
  return { version, set_count, bot_count: count, added: grown, removed: 0 };
}
