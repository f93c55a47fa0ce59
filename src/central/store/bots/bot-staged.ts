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
  type SetChange,
} from "./bot-versions.ts";
import { inlineElementsMax } from "../journal/links.ts";
import type { Work } from "../engine/work.ts";
import { elementPages } from "./bot-elements.ts";
import type { TableRow } from "../engine/schema.ts";

/** Elements under the number of a bot that is not there. */
export type Staged = Contents & { readonly botId: number };

export type StagedOutcome = {
  /** The version of the set, which holds `set_count` elements. It is unchanged if nothing changed. */
  readonly version: number;
  readonly set_count: number;
  readonly bot_count: number;
  readonly added: number;
  readonly removed: number;
};

/** Throws CONFLICT where the domain is no more. */
export async function putStaged(
  work: Work,
  place: BotPlace,
  setId: number,
  staged: Staged,
  isReplacing: boolean,
): Promise<StagedOutcome> {
  const domain = await work.tx
    .selectFrom("domains")
    .select("id")
    .where("id", "=", place.domainId)
    .executeTakeFirst();
  const set = domain === undefined ? undefined : await openSet(work, place);
  if (set?.id !== setId)
    throw new AccelError("CONFLICT", `${place.host} was deleted while the list was imported`);
  const bot = await botOfSet(work, setId, place.bot);
  if (bot === undefined || isReplacing) return swap(work, place, set, staged, bot);
  return merge(work, place, set, staged, bot);
}

async function swap(
  work: Work,
  place: BotPlace,
  set: TableRow<"bot_sets">,
  { botId, count, digest }: Staged,
  before: BotHeld | undefined,
): Promise<StagedOutcome> {
  const old: Contents = before ?? { count: 0, digest: emptySetDigest };
  const after: Contents = { count, digest };
  const same = { version: set.version, set_count: set.count, bot_count: count };
  if (old.digest === digest && old.count === count) return { ...same, added: 0, removed: 0 };
  const isSmall = old.count + count <= inlineElementsMax;
  const change = isSmall ? await differing(work, place.bot, before?.id, botId) : undefined;
  if (before !== undefined) await work.tx.deleteFrom("bots").where("id", "=", before.id).execute();
  await work.tx
    .insertInto("bots")
    .values({ id: botId, bot_set_id: set.id, name: place.bot, ...after })
    .execute();
  await work.tx.deleteFrom("dead_bots").where("bot_id", "=", botId).execute();
  const version = await putVersion(work, set, {
    before: old,
    after,
    removed: change?.removed.length ?? old.count,
    change,
    isMeant: before !== undefined,
  });
  return {
    version,
    set_count: set.count - old.count + count,
    bot_count: count,
    added: change?.added.length ?? count,
    removed: change?.removed.length ?? old.count,
  };
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

async function differing(
  work: Work,
  bot: string,
  beforeId: number | undefined,
  afterId: number,
): Promise<SetChange> {
  const [added, removed] = [new Map<string, SetElement>(), new Map<string, SetElement>()];
  for await (const ranges of elementPages(work.tx, afterId))
    for (const range of ranges) added.set(range, { bot, range });
  if (beforeId !== undefined)
    for await (const ranges of elementPages(work.tx, beforeId))
      for (const range of ranges) if (!added.delete(range)) removed.set(range, { bot, range });
  return { added: [...added.values()], removed: [...removed.values()] };
}
