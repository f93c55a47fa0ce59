// Whether addresses stand in a customer's sets: the whole of a range, by the union of elements; and where two lists overlap.

import type { IpRange } from "../../core/ip.ts";
import type { BotRecord } from "../../wire/customer/bot.ts";
import type { BotSet } from "../../wire/journal.ts";
import { addressKey } from "./bots.ts";
import type { Work } from "./work.ts";

export function botChecks(work: Work) {
  const { tx } = work;
  return {
    /** Hosts of the customer whose set covers every address of the range. */
    async covering(customerId: number, set: BotSet, range: IpRange): Promise<readonly string[]> {
      const rows = await tx
        .selectFrom("bot_elements")
        .innerJoin("bots", "bots.id", "bot_elements.bot_id")
        .innerJoin("bot_sets", "bot_sets.id", "bots.bot_set_id")
        .innerJoin("domains", "domains.id", "bot_sets.domain_id")
        .select(["bot_sets.host", "bot_elements.first", "bot_elements.last"])
        .where("domains.customer_id", "=", customerId)
        .where("bot_sets.kind", "=", set)
        .where("bot_elements.family", "=", range.family)
        .where("bot_elements.first", "<=", addressKey(range.last))
        .where("bot_elements.last", ">=", addressKey(range.first))
        .orderBy("bot_elements.first")
        .execute();
      const byHost = Map.groupBy(rows, (row) => row.host);
      return [...byHost]
        .filter(([, spans]) =>
          covers(
            range,
            spans.map(({ first, last }) => [addressOf(first), addressOf(last)]),
          ),
        )
        .map(([host]) => host)
        .sort();
    },

    /** Elements of the host's other set that share addresses with the range. */
    async overlaps(
      domainId: number,
      host: string,
      set: BotSet,
      { family, first, last }: IpRange,
      limit: number,
    ): Promise<NonNullable<BotRecord["also_in"]>> {
      const rows = await tx
        .selectFrom("bot_elements")
        .innerJoin("bots", "bots.id", "bot_elements.bot_id")
        .innerJoin("bot_sets", "bot_sets.id", "bots.bot_set_id")
        .select(["bots.name", "bot_elements.range"])
        .where("bot_sets.domain_id", "=", domainId)
        .where("bot_sets.host", "=", host)
        .where("bot_sets.kind", "=", set)
        .where("bot_elements.family", "=", family)
        .where("bot_elements.first", "<=", addressKey(last))
        .where("bot_elements.last", ">=", addressKey(first))
        .orderBy("bot_elements.first")
        .limit(limit)
        .execute();
      return rows.map(({ name, range }) => ({
        list: set,
        bot: name,
        ip_address_or_range: range,
      }));
    },
  };
}

function addressOf(key: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(key).toString("hex")}`);
}

/** Pure. `spans` are in order of their first address. */
export function covers(
  { first, last }: Pick<IpRange, "first" | "last">,
  spans: readonly (readonly [bigint, bigint])[],
): boolean {
  let next = first;
  for (const [from, to] of spans) {
    if (next > last || from > next) break;
    if (to >= next) next = to + 1n;
  }
  return next > last;
}
