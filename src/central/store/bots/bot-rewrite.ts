// A change of thousands of a bot's elements in transactions of a few milliseconds, so that nobody waits long for one customer's mark:
//
//   begin   a bot that is not in force gets a number, as that of an import does (bot-import.ts); the sweeper leaves it alone for a while
//   copy    what the bot holds and is to keep is written under that number, a part a transaction
//   stage   and what it is to hold beside
//   put     one short transaction puts it where the bot was, as one version, if nobody changed the bot meanwhile
// Readers see the bot as it was, then as it is. Whatever ends it before leaves elements that are swept once the number is not held any more.

import type { IpRange } from "../../../core/addresses/ip.ts";
import { changedSetDigest, emptySetDigest } from "../../../core/addresses/set-digest.ts";
import { elementRow } from "./bot-elements.ts";
import { type BotHeld, type BotPlace, type Contents, openSet, putVersion } from "./bot-versions.ts";
import { inlineElementsMax } from "../journal/links.ts";
import type { Work } from "../engine/work.ts";
import { deletedRows } from "../engine/counts.ts";

export type BotRewrite = Contents & {
  readonly setId: number;
  /** Its number, under which there is no bot yet. */
  readonly botId: number;
  readonly before: BotHeld | undefined;
};

/** The difference from before, as texts. */
export type RewriteChange = {
  readonly added: readonly string[];
  readonly removed: readonly string[];
};

/** Far longer than a part of it takes. */
const heldMs = 600_000;
const rowsPerCopy = 500;

export async function heldBot(
  { tx }: Work,
  { domainId, host, set, bot }: BotPlace,
): Promise<BotHeld | undefined> {
  const place = { "bot_sets.domain_id": domainId, "bot_sets.host": host, "bot_sets.kind": set };
  return tx
    .selectFrom("bots")
    .innerJoin("bot_sets", "bot_sets.id", "bots.bot_set_id")
    .select(["bots.id", "bots.count", "bots.digest"])
    .where((one) => one.and({ ...place, "bots.name": bot }))
    .executeTakeFirst();
}

/** Those of the texts that the bot holds; as many as one statement takes. */
export async function whichHeld(
  { tx }: Work,
  botId: number,
  texts: readonly string[],
): Promise<readonly string[]> {
  if (texts.length === 0) return []; // PostgreSQL knows no empty list.
  const rows = await tx
    .selectFrom("bot_elements")
    .select("range")
    .where("bot_id", "=", botId)
    .where("range", "in", texts)
    .execute();
  return rows.map(({ range }) => range);
}

export async function beginRewrite(work: Work, place: BotPlace): Promise<BotRewrite> {
  const { id: setId } = await openSet(work, place);
  const botId = await newBotNumber(work, setId);
  await holdNumber(work, botId);
  return { setId, botId, before: await heldBot(work, place), count: 0, digest: emptySetDigest };
}

/** Keeps the sweeper away from what is written under the number, for a while from now on. */
export async function holdNumber({ tx, at }: Work, botId: number): Promise<void> {
  await tx
    .updateTable("dead_bots")
    .set({ held_until: new Date(Date.parse(at) + heldMs).toISOString() })
    .where("bot_id", "=", botId)
    .execute();
}

/** Takes the number for a bot. False: it is not held any more, and its elements may be gone. */
export async function takeNumber({ tx, at }: Work, botId: number): Promise<boolean> {
  const taken = tx.deleteFrom("dead_bots").where("bot_id", "=", botId).where("held_until", ">", at);
  return (await deletedRows(taken)) > 0;
}

/** One that no bot has and none will get; its row is gone at once, into `dead_bots`. */
export async function newBotNumber({ tx, randomHex }: Work, botSetId: number): Promise<number> {
  const { id } = await tx
    .insertInto("bots")
    .values({ bot_set_id: botSetId, name: `\n${randomHex(16)}` })
    .returning("id")
    .executeTakeFirstOrThrow();
  await tx.deleteFrom("bots").where("id", "=", id).execute();
  return id;
}

/** A part of what the bot held, behind `after`. `last` undefined: that was all. */
export async function copyHeld(
  { tx }: Work,
  rewrite: BotRewrite,
  from: { readonly bot: string; readonly after: string; readonly without: ReadonlySet<string> },
) {
  const { bot, after, without } = from;
  const rows = await tx
    .selectFrom("bot_elements")
    .selectAll()
    .where("bot_id", "=", rewrite.before?.id ?? 0)
    .where("range", ">", after)
    .orderBy("range")
    .limit(rowsPerCopy)
    .execute();
  const kept = rows.filter(({ range }) => !without.has(range));
  if (kept.length > 0)
    await tx
      .insertInto("bot_elements")
      .values(kept.map((row) => ({ ...row, bot_id: rewrite.botId })))
      .execute();
  const texts = kept.map(({ range }) => range);
  return {
    rewrite: grown(rewrite, bot, texts),
    texts,
    left: rows.filter(({ range }) => without.has(range)).map(({ range }) => range),
    last: rows.length < rowsPerCopy ? undefined : rows.at(-1)?.range,
  };
}

export async function stageElements(
  { tx }: Work,
  rewrite: BotRewrite,
  bot: string,
  ranges: readonly IpRange[],
) {
  const rows = await tx
    .insertInto("bot_elements")
    .values(ranges.map((range) => elementRow(rewrite.botId, rewrite.setId, range)))
    .onConflict((conflict) => conflict.doNothing())
    .returning("range")
    .execute();
  const texts = rows.map(({ range }) => range);
  return { rewrite: grown(rewrite, bot, texts), texts };
}

function grown(rewrite: BotRewrite, bot: string, texts: readonly string[]): BotRewrite {
  const elements = texts.map((range) => ({ bot, range }));
  return {
    ...rewrite,
    count: rewrite.count + texts.length,
    digest: changedSetDigest(rewrite.digest, elements, []),
  };
}

/** False, and nothing is changed: the bot, its domain or what was staged is not what it was. */
export async function putRewrite(
  work: Work,
  place: BotPlace,
  { setId, botId, before, count, digest }: BotRewrite,
  { added, removed }: RewriteChange,
): Promise<boolean> {
  const { tx } = work;
  const set = await openSet(work, place);
  const now = await heldBot(work, place);
  if (set.id !== setId || now?.id !== before?.id || now?.digest !== before?.digest) return false;
  if (!(await takeNumber(work, botId))) return false;
  if (before !== undefined) await tx.deleteFrom("bots").where("id", "=", before.id).execute();
  await tx
    .insertInto("bots")
    .values({ id: botId, bot_set_id: setId, name: place.bot, count, digest })
    .execute();
  const named = (range: string) => ({ bot: place.bot, range });
  await putVersion(work, set, {
    before: before ?? { count: 0, digest: emptySetDigest },
    after: { count, digest },
    removed: removed.length,
    change:
      added.length + removed.length <= inlineElementsMax
        ? { added: added.map(named), removed: removed.map(named) }
        : undefined,
  });
  return true;
}

/** It is swept with the next sweep. */
export async function dropRewrite(
  { tx }: Work,
  { botId }: Pick<BotRewrite, "botId">,
): Promise<void> {
  await tx.updateTable("dead_bots").set({ held_until: null }).where("bot_id", "=", botId).execute();
}
