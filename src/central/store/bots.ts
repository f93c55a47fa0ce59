// Bad bots and VIP bots: sets of addresses and ranges by host, held under bot names; every change is one version of the set.
//
// A set belongs to a main domain (and holds for its sub-domains) or to one sub-domain. Elements are kept as attached, in canonical text;
// `first` and `last` are their bounds as 16 bytes, so that they compare as numbers.

import { formatRange, type IpRange } from "../../core/ip.ts";
import { changedSetDigest, emptySetDigest, type SetElement } from "../../core/set-digest.ts";
import type { BotRecord } from "../../wire/customer/bot.ts";
import type { BotSet } from "../../wire/journal.ts";
import { inlineElementsMax, sitesOfDomain } from "./links.ts";
import { append, pacedParts, type Work } from "./work.ts";
import type { BotSetRow } from "./site-state.ts";
import type { Sha256 } from "../../core/ids.ts";

export type BotPlace = {
  readonly domainId: number;
  readonly host: string;
  readonly set: BotSet;
  readonly bot: string;
};

export type Attached =
  | { readonly outcome: "attached"; readonly botId: number }
  /** The bot holds as many elements as it may. */
  | { readonly outcome: "full"; readonly count: number };

export type Detached =
  | { readonly outcome: "detached"; readonly botId: number }
  | { readonly outcome: "no-bot" }
  | { readonly outcome: "not-attached" }
  /** Only this larger element covers it. */
  | { readonly outcome: "covered"; readonly by: string };

type SetRow = Omit<BotSetRow, "digest"> & { readonly digest: string };

export function bots(work: Work) {
  return {
    attach: (place: BotPlace, ranges: readonly IpRange[], elementsMax: number) =>
      attach(work, place, ranges, elementsMax),
    detach: (place: BotPlace, ranges: readonly IpRange[]) => detach(work, place, ranges),
    list: (customerId: number, set: BotSet, range: { after: number; limit: number }) =>
      listBots(work, customerId, set, range),
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
    .selectFrom("bot_elements")
    .select((select) => select.fn.countAll<number>().as("count"))
    .where("bot_id", "=", botId)
    .executeTakeFirstOrThrow();
  // One custom range has a bound of its own, so it counts as one here.
  if (added.length > 0 && count >= elementsMax) return { outcome: "full", count };
  for await (const part of pacedParts(added)) {
    await work.tx
      .insertInto("bot_elements")
      .values(
        part.map((range) => ({
          bot_id: botId,
          range: formatRange(range),
          family: range.family,
          first: addressKey(range.first),
          last: addressKey(range.last),
        })),
      )
      .execute();
  }
  const elements = added.map((range) => ({ bot: place.bot, range: formatRange(range) }));
  await commitVersion(work, place, set, elements, []);
  return { outcome: "attached", botId };
}

async function detach(work: Work, place: BotPlace, ranges: readonly IpRange[]): Promise<Detached> {
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
  if (removed.length === 0) return notAttached(work, botId, ranges);
  await commitVersion(work, place, set, [], removed);
  return { outcome: "detached", botId };
}

async function notAttached(
  { tx }: Work,
  botId: number,
  ranges: readonly IpRange[],
): Promise<Detached> {
  const [range] = ranges;
  if (range === undefined) return { outcome: "not-attached" };
  const covering = await tx
    .selectFrom("bot_elements")
    .select("range")
    .where("bot_id", "=", botId)
    .where("family", "=", range.family)
    .where("first", "<=", addressKey(range.first))
    .where("last", ">=", addressKey(range.last))
    .orderBy("first", "desc")
    .executeTakeFirst();
  return covering === undefined
    ? { outcome: "not-attached" }
    : { outcome: "covered", by: covering.range };
}

async function openSet({ tx }: Work, { domainId, host, set: kind }: BotPlace): Promise<SetRow> {
  const columns = ["id", "host", "kind", "version", "count", "digest"] as const;
  const found = await tx
    .selectFrom("bot_sets")
    .select(columns)
    .where("domain_id", "=", domainId)
    .where("host", "=", host)
    .where("kind", "=", kind)
    .executeTakeFirst();
  if (found !== undefined) return found;
  return tx
    .insertInto("bot_sets")
    .values({ domain_id: domainId, host, kind, version: 0, count: 0, digest: emptySetDigest })
    .returning(columns)
    .executeTakeFirstOrThrow();
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

/** The elements are written already; a change of nothing is no version. */
async function commitVersion(
  work: Work,
  place: BotPlace,
  set: SetRow,
  added: readonly SetElement[],
  removed: readonly SetElement[],
): Promise<void> {
  if (added.length + removed.length === 0) return;
  const version = set.version + 1;
  const count = set.count + added.length - removed.length;
  const digest = changedSetDigest(set.digest, added, removed);
  await work.tx
    .updateTable("bot_sets")
    .set({ version, count, digest })
    .where("id", "=", set.id)
    .execute();
  const inline = added.length + removed.length <= inlineElementsMax;
  await append(work, await sitesOfDomain(work, place.domainId), "bots.changed", {
    domain: place.host,
    set: place.set,
    from_version: inline ? set.version : version,
    to_version: version,
    added: inline ? [...added] : [],
    removed: inline ? [...removed] : [],
    count,
    digest: digest as Sha256, // As core/set-digest makes it.
    shrink_meant: removed.length > 0,
  });
}

async function listBots(
  { tx }: Work,
  customerId: number,
  set: BotSet,
  range: { readonly after: number; readonly limit: number },
): Promise<readonly BotRecord[]> {
  const rows = await tx
    .selectFrom("bots")
    .innerJoin("bot_sets", "bot_sets.id", "bots.bot_set_id")
    .innerJoin("domains", "domains.id", "bot_sets.domain_id")
    .select(["bots.id", "bots.name", "bot_sets.host"])
    .where("domains.customer_id", "=", customerId)
    .where("bot_sets.kind", "=", set)
    .where("bots.id", ">", range.after)
    .orderBy("bots.id")
    .limit(range.limit)
    .execute();
  if (rows.length === 0) return [];
  const elements = await tx
    .selectFrom("bot_elements")
    .select(["bot_id", "range"])
    .where(
      "bot_id",
      "in",
      rows.map(({ id }) => id),
    )
    .orderBy("family")
    .orderBy("first")
    .orderBy("last")
    .execute();
  const byBot = Map.groupBy(elements, (element) => element.bot_id);
  return rows.map(({ id, name, host }) => ({
    id,
    name,
    domain: host,
    ip_addresses: (byBot.get(id) ?? []).map((element) => element.range),
  }));
}

/** 16 bytes, big-endian. */
export function addressKey(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(32, "0"), "hex");
}
