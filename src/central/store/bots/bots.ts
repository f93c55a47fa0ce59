// Bad bots and VIP bots: sets of addresses and ranges by host, held under bot names; every change is one version of the set.
//
// A set belongs to a main domain (and holds for its sub-domains) or to one sub-domain. Elements are kept as attached, in canonical text;
// `first` and `last` are their bounds as 16 bytes, so that they compare as numbers.

import { enclosingStarts, formatRange, type IpRange } from "../../../core/addresses/ip.ts";
import type { SetElement } from "../../../core/addresses/set-digest.ts";
import type { BotSet } from "../../../wire/journal.ts";
import { addressKey, addressOf, customerElements, elementRow } from "./bot-elements.ts";
import { listBotRecords } from "./bot-records.ts";
import { openSet, type BotPlace } from "./bot-place.ts";
import { rewrites } from "./bot-rewrite.ts";
import { commitVersion } from "./bot-versions.ts";
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

export function bots(work: Work) {
  return {
    attach: (place: BotPlace, ranges: readonly IpRange[], elementsMax: number) =>
      attach(work, place, ranges, elementsMax),
    detach: (place: BotPlace, ranges: readonly IpRange[], asked = ranges) =>
      detach(work, place, ranges, asked),
    list: (customerId: number, set: BotSet, range: { after: number; limit: number }) =>
      listBotRecords(work, customerId, set, range),
    total: (customerId: number, limits: { readonly most: number; readonly botMax: number }) =>
      customerElements(work, customerId, limits),
    rewrites: rewrites(work),
  };
}

async function attach(
  work: Work,
  place: BotPlace,
  ranges: readonly IpRange[],
  elementsMax: number,
): Promise<Attached> {
  const set = await openSet(work, place);
  const botId = await openBot(work, set.id, place.bot);
  const known = new Set<string>();
  for await (const part of pacedParts(ranges.map((range) => formatRange(range)))) {
    const held = await work.tx
      .selectFrom("bot_elements")
      .select("range")
      .where("bot_id", "=", botId)
      .where("range", "in", part)
      .execute();
    for (const { range } of held) known.add(range);
  }
  const added = ranges.filter((range) => !known.has(formatRange(range)));
  const { count } = await work.tx
    .selectFrom("bots")
    .select("count")
    .where("id", "=", botId)
    .executeTakeFirstOrThrow();
  // One custom range has a bound of its own: a bot takes it if it is all that the bot holds.
  if (added.length > 0 && count > 0 && count + added.length > elementsMax)
    return { outcome: "full", count };
  for await (const part of pacedParts(added)) {
    await work.tx
      .insertInto("bot_elements")
      .values(part.map((range) => elementRow(botId, set.id, range)))
      .execute();
  }
  const elements = added.map((range) => ({ bot: place.bot, range: formatRange(range) }));
  await commitVersion(work, place, set, elements, []);
  return { outcome: "attached", botId, added: added.length };
}

/** `asked`: what the ranges are left of; those that are not attached are told of. */
async function detach(
  work: Work,
  place: BotPlace,
  ranges: readonly IpRange[],
  asked: readonly IpRange[],
): Promise<Detached> {
  const { tx } = work;
  const found = await tx
    .selectFrom("bots")
    .innerJoin("bot_sets", "bot_sets.id", "bots.bot_set_id")
    .select([
      "bots.id as botId",
      "bot_sets.id",
      "bot_sets.host",
      "bot_sets.kind",
      "bot_sets.version",
      "bot_sets.count",
      "bot_sets.digest",
      "bot_sets.journaled_version",
      "bot_sets.pending",
      "bot_sets.meant_from",
    ])
    .where("bot_sets.domain_id", "=", place.domainId)
    .where("bot_sets.host", "=", place.host)
    .where("bot_sets.kind", "=", place.set)
    .where("bots.name", "=", place.bot)
    .executeTakeFirst();
  if (found === undefined) return { outcome: "no-bot" };
  const { botId, ...set } = found;
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
  await commitVersion(work, place, set, [], removed);
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
    .where("bot_set_id", "=", botSetId)
    .where("bot_id", "=", botId)
    .where("family", "=", start.family)
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

async function openBot({ tx }: Work, botSetId: number, name: string): Promise<number> {
  const found = await tx
    .selectFrom("bots")
    .select("id")
    .where("bot_set_id", "=", botSetId)
    .where("name", "=", name)
    .executeTakeFirst();
  if (found !== undefined) return found.id;
  const made = await tx
    .insertInto("bots")
    .values({ bot_set_id: botSetId, name })
    .returning("id")
    .executeTakeFirstOrThrow();
  return made.id;
}
