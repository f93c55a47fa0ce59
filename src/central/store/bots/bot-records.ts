// Bots with all that is attached to them, as customers see them.

import { setImmediate } from "node:timers/promises";
import { sortedRangeTexts } from "../../../core/addresses/range-texts.ts";
import type { BotRecord } from "../../../wire/customer/bot.ts";
import type { BotSet } from "../../../wire/journal.ts";
import type { PageRange, Work } from "../engine/work.ts";
import type { Reach } from "../people/tokens.ts";
import { elementPages } from "./bot-elements.ts";
import { elementPage } from "./bot-staging.ts";

/** Read in one go, in the order of the key, which costs some 3 ms; sorted here, which SQLite does ten times slower. */
const elementsPerTurn = 10_000;

/** What a custom range has at most. Records of larger bots are read by everybody who looks at any bot of the domain. */
const listedWholeMax = 65_536;
const listedOfLarger = 1_000;

/**
 * Lists records in order of id, of one main domain if it is given. Gives the event loop a turn after so many elements.
 */
export async function listBotRecords(
  work: Work,
  { customerId, domains }: Reach,
  set: BotSet,
  range: PageRange,
  main?: string,
): Promise<readonly BotRecord[]> {
  let query = work.tx
    .selectFrom("bots")
    .innerJoin("bot_sets", "bot_sets.id", "bots.bot_set_id")
    .innerJoin("domains", "domains.id", "bot_sets.domain_id")
    .select(["bots.id", "bots.name", "bots.count", "bot_sets.host"]);
  if (domains !== null) query = query.where("domains.name", "in", domains);
  if (main !== undefined) query = query.where("domains.name", "=", main);
  const rows = await query
    .where((one) => one.and({ "domains.customer_id": customerId, "bot_sets.kind": set }))
    .where("bots.id", ">", range.after)
    .orderBy("bots.id")
    .limit(range.limit)
    .execute();
  const records: BotRecord[] = [];
  let read = 0;
  for (const { id, name, host, count } of rows) {
    if (count > listedWholeMax) {
      const first = await elementPage(work, id, "", listedOfLarger);
      records.push({ id, name, domain: host, ip_addresses: [...first], ip_address_count: count });
      continue;
    }
    const elements: string[] = [];
    for await (const page of elementPages(work.tx, id, elementsPerTurn))
      for (const range of page) elements.push(range);
    records.push({ id, name, domain: host, ip_addresses: [...sortedRangeTexts(elements)] });
    read += elements.length;
    if (read < elementsPerTurn) continue;
    read = 0;
    await setImmediate();
  }
  return records;
}
