// Bad bots and VIP bots: sets of addresses and ranges by host, held under bot names; every change is one version of the set.
//
// A set belongs to a main domain (and holds for its sub-domains) or to one sub-domain. Elements are kept as attached, in canonical text;
// `first` and `last` are their bounds as 16 bytes, so that they compare as numbers.

import { enclosingStarts, formatRange, type IpRange } from "../../../core/addresses/ip.ts";
import type { SetElement } from "../../../core/addresses/set-digest.ts";
import { addressKey, addressOf, elementRow } from "./bot-elements.ts";
import {
  type BotHeld,
  botOfSet,
  type BotPlace,
  commitVersion,
  type Contents,
  findSet,
  openSet,
} from "./bot-versions.ts";
import { pacedParts, rowsPerStatement } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";

export type Attached =
  | { readonly outcome: "attached"; readonly botId: number; readonly added: number }
  /** The bot holds as many elements as it may. */
  | { readonly outcome: "full"; readonly count: number };

export type Detached =
  | { readonly outcome: "detached"; readonly botId: number }
  | { readonly outcome: "no-bot" }
  | { readonly outcome: "not-attached" }
  /** Only this larger element covers it. */
  | { readonly outcome: "covered"; readonly by: string };

export type Edited =
  | {
      readonly outcome: "edited";
      readonly added: number;
      readonly removed: number;
      readonly held: Contents;
    }
  /** The bot would hold more than it may. */
  | { readonly outcome: "full"; readonly count: number };

/** Adds and removes as one version; what the bot holds already, or does not hold, is left as it is. */
export async function editElements(
  work: Work,
  place: BotPlace,
  add: readonly IpRange[],
  remove: readonly IpRange[],
  elementsMax: number,
): Promise<Edited> {
  const set = await openSet(work, place);
  const bot = await openBot(work, set.id, place.bot);
  const fresh = await notHeld(work, bot.id, add);
  const removed: SetElement[] = [];
  for await (const part of pacedParts(remove.map((range) => formatRange(range)))) {
    const gone = await work.tx
      .deleteFrom("bot_elements")
      .where("bot_id", "=", bot.id)
      .where("range", "in", part)
      .returning("range")
      .execute();
    removed.push(...gone.map(({ range }) => ({ bot: place.bot, range })));
  }
  if (fresh.length > 0 && bot.count - removed.length + fresh.length > elementsMax)
    return { outcome: "full", count: bot.count };
  const added = await insertElements(work, set.id, bot.id, place.bot, fresh);
  await commitVersion(work, set, bot, added, removed);
  const held = (await botOfSet(work, set.id, place.bot)) ?? bot;
  return { outcome: "edited", added: added.length, removed: removed.length, held };
}

export async function attachElements(
  work: Work,
  place: BotPlace,
  ranges: readonly IpRange[],
  elementsMax: number,
): Promise<Attached> {
  const set = await openSet(work, place);
  const bot = await openBot(work, set.id, place.bot);
  const { id: botId, count } = bot;
  const added = await notHeld(work, botId, ranges);
  // One custom range has a bound of its own: a bot takes it if it is all that the bot holds.
  if (added.length > 0 && count > 0 && count + added.length > elementsMax)
    return { outcome: "full", count };
  const elements = await insertElements(work, set.id, botId, place.bot, added);
  await commitVersion(work, set, bot, elements, []);
  return { outcome: "attached", botId, added: added.length };
}

async function notHeld(
  { tx }: Work,
  botId: number,
  ranges: readonly IpRange[],
): Promise<readonly IpRange[]> {
  const known = new Set<string>();
  for await (const part of pacedParts(ranges.map((range) => formatRange(range)))) {
    const held = await tx
      .selectFrom("bot_elements")
      .select("range")
      .where("bot_id", "=", botId)
      .where("range", "in", part)
      .execute();
    for (const { range } of held) known.add(range);
  }
  return ranges.filter((range) => !known.has(formatRange(range)));
}

async function insertElements(
  { tx }: Work,
  setId: number,
  botId: number,
  bot: string,
  ranges: readonly IpRange[],
): Promise<readonly SetElement[]> {
  for await (const part of pacedParts(ranges)) {
    await tx
      .insertInto("bot_elements")
      .values(part.map((range) => elementRow(botId, setId, range)))
      .execute();
  }
  return ranges.map((range) => ({ bot, range: formatRange(range) }));
}

/** `asked`: what the ranges are left of; those that are not attached are told of. */
export async function detachElements(
  work: Work,
  place: BotPlace,
  ranges: readonly IpRange[],
  asked = ranges,
): Promise<Detached> {
  const { tx } = work;
  const set = await findSet(work, place);
  const bot = set && (await botOfSet(work, set.id, place.bot));
  if (set === undefined || bot === undefined) return { outcome: "no-bot" };
  const { id: botId } = bot;
  const removed: SetElement[] = [];
  for await (const part of pacedParts(ranges.map((range) => formatRange(range)))) {
    const gone = await tx
      .deleteFrom("bot_elements")
      .where("bot_id", "=", botId)
      .where("range", "in", part)
      .returning("range")
      .execute();
    removed.push(...gone.map(({ range }) => ({ bot: place.bot, range })));
  }
  if (removed.length === 0) return notAttached(work, set.id, botId, asked);
  await commitVersion(work, set, bot, [], removed);
  return { outcome: "detached", botId };
}

/**
 * Returns, for ranges that follow one another and of which none is attached as it is, whether a larger
 * element holds one of them.
 */
async function notAttached(
  { tx }: Work,
  botSetId: number,
  botId: number,
  ranges: readonly IpRange[],
): Promise<Detached> {
  const [start, end] = [ranges[0], ranges.at(-1)];
  if (start === undefined || end === undefined) return { outcome: "not-attached" };
  const elements = tx
    .selectFrom("bot_elements")
    .select(["range", "first", "last"])
    .where((one) => one.and({ bot_set_id: botSetId, bot_id: botId, family: start.family }))
    .orderBy("first")
    .orderBy("last", "desc");
  const starts = enclosingStarts({ family: start.family, value: start.first });
  const around = await elements
    .where("first", "in", starts.map(addressKey))
    .where("last", ">", addressKey(start.last))
    .executeTakeFirst();
  if (around !== undefined) return { outcome: "covered", by: around.range };
  // Of two nested elements that begin at one place the larger ends later; what begins elsewhere lies inside one of the ranges.
  const behind = await elements
    .where("first", ">", addressKey(start.last))
    .where("first", "<=", addressKey(end.last))
    .limit(rowsPerStatement)
    .execute();
  const lastOf = new Map(ranges.map(({ first, last }) => [first, last]));
  const larger = behind.find(({ first, last }) => {
    const own = lastOf.get(addressOf(first));
    return own !== undefined && addressOf(last) > own;
  });
  return larger === undefined
    ? { outcome: "not-attached" }
    : { outcome: "covered", by: larger.range };
}

async function openBot(work: Work, setId: number, name: string): Promise<BotHeld> {
  const found = await botOfSet(work, setId, name);
  if (found !== undefined) return found;
  return work.tx
    .insertInto("bots")
    .values({ bot_set_id: setId, name })
    .returning(["id", "count", "digest"])
    .executeTakeFirstOrThrow();
}
