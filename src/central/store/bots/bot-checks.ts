// Whether addresses stand in a customer's sets: the whole of a range, by the union of elements; and where lists overlap.
//
// Elements are CIDR ranges, nested or disjoint, and each begins at one of 33 (IPv6: 129) places if it is to hold a given address: every
// question is so many index seeks, whatever the size of the sets.

import { setImmediate } from "node:timers/promises";
import { enclosingStarts, type IpRange } from "../../../core/addresses/ip.ts";
import type { BotRecord } from "../../../wire/customer/bot.ts";
import type { BotSet } from "../../../wire/journal.ts";
import { addressKey, addressOf } from "./bot-elements.ts";
import { rowsPerStatement } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";
import type { Reach } from "../people/tokens.ts";
import type { HostRow } from "../content/domains.ts";

type Reading = Pick<Work, "tx">;

/** Hosts of the customer for whom the set holds every address of the range. A sub-domain is named where its own elements make the difference. */
export async function coveringHosts(
  work: Reading,
  { customerId, domains }: Reach,
  set: BotSet,
  range: IpRange,
): Promise<readonly string[]> {
  let query = work.tx
    .selectFrom("bot_sets")
    .innerJoin("domains", "domains.id", "bot_sets.domain_id")
    .select(["bot_sets.id", "bot_sets.host", "domains.name as main"]);
  if (domains !== null) query = query.where("domains.name", "in", domains);
  const sets = await query
    .where((one) => one.and({ "domains.customer_id": customerId, "bot_sets.kind": set }))
    .where("bot_sets.count", ">", 0)
    .execute();
  const mains = new Map<string, { readonly id: number; readonly isCovered: boolean }>();
  const hosts: string[] = [];
  for (const { id, host } of sets.filter(({ host, main }) => host === main)) {
    const isCovered = await covers(work, [id], range);
    mains.set(host, { id, isCovered });
    if (isCovered) hosts.push(host);
  }
  for (const { id, host, main } of sets.filter(({ host, main }) => host !== main)) {
    const above = mains.get(main);
    const isCovered =
      (await covers(work, [id], range)) ||
      (above?.isCovered === false && (await covers(work, [id, above.id], range)));
    if (isCovered) hosts.push(host);
  }
  return hosts.sort();
}

/** Whether the union of the sets holds the whole range. Elements whose bot is not there (an import under way) are not in force. Stops at the first address that it does not hold. */
async function covers(
  { tx }: Reading,
  setIds: readonly number[],
  { family, first, last }: IpRange,
): Promise<boolean> {
  const largest = await tx
    .selectFrom("bot_elements")
    .innerJoin("bots", "bots.id", "bot_elements.bot_id")
    .select("last")
    .where("bot_elements.bot_set_id", "in", setIds)
    .where("family", "=", family)
    .where("first", "in", enclosingStarts({ family, value: first }).map(addressKey))
    .where("last", ">=", addressKey(first))
    .orderBy("last", "desc")
    .executeTakeFirst();
  if (largest === undefined) return false;
  // What holds `next` begins there or later, else it would have held `first` too and be the largest.
  let next = addressOf(largest.last) + 1n;
  while (next <= last) {
    const rows = await tx
      .selectFrom("bot_elements")
      .innerJoin("bots", "bots.id", "bot_elements.bot_id")
      .select(["first", "last"])
      .where("bot_elements.bot_set_id", "in", setIds)
      .where("family", "=", family)
      .where("first", ">=", addressKey(next))
      .where("first", "<=", addressKey(last))
      .orderBy("first")
      .limit(rowsPerStatement)
      .execute();
    if (rows.length === 0) return false;
    for (const row of rows) {
      if (addressOf(row.first) > next) return false;
      const after = addressOf(row.last) + 1n;
      if (after > next) next = after;
    }
    await setImmediate();
  }
  return true;
}

/**
 * Elements of the other kind of set that share addresses with the range where the host's set speaks: with a main domain those of its
 * sub-domains too, with a sub-domain those of its main domain.
 */
export async function overlappingElements(
  work: Reading,
  { domainId, main, host }: HostRow,
  set: BotSet,
  range: IpRange,
  limit: number,
): Promise<NonNullable<BotRecord["also_in"]>> {
  const sets = await work.tx
    .selectFrom("bot_sets")
    .select("id")
    .where((one) => one.and({ domain_id: domainId, kind: set }))
    .where("count", ">", 0)
    .$if(host !== main, (query) => query.where("host", "in", [main, host]))
    .execute();
  if (sets.length === 0) return [];
  const setIds = sets.map(({ id }) => id);
  const rows = await overlapping(work, setIds, range, limit);
  return rows.map((row) => ({ list: set, ...row }));
}

/** Around the first address, largest first; then those that begin behind it. */
async function overlapping(
  { tx }: Reading,
  setIds: readonly number[],
  { family, first, last }: IpRange,
  limit: number,
) {
  const elements = tx
    .selectFrom("bot_elements")
    .innerJoin("bots", "bots.id", "bot_elements.bot_id")
    .innerJoin("bot_sets", "bot_sets.id", "bot_elements.bot_set_id")
    .select(["bot_sets.host as domain", "bots.name as bot"])
    .select("bot_elements.range as ip_address_or_range")
    .where("bot_elements.bot_set_id", "in", setIds)
    .where("bot_elements.family", "=", family)
    .orderBy("bot_elements.first")
    .orderBy("bot_elements.last", "desc");
  const around = await elements
    .where("bot_elements.first", "in", enclosingStarts({ family, value: first }).map(addressKey))
    .where("bot_elements.last", ">=", addressKey(first))
    .limit(limit)
    .execute();
  if (around.length === limit || first === last) return around;
  const behind = await elements
    .where("bot_elements.first", ">", addressKey(first))
    .where("bot_elements.first", "<=", addressKey(last))
    .limit(limit - around.length)
    .execute();
  return [...around, ...behind];
}
