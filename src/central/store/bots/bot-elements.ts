// Elements of bots as they are kept: canonical text, and the bounds as bytes that compare as numbers. How many of them a customer has.

import { formatRange, type IpRange } from "../../../core/addresses/ip.ts";
import type { Work } from "../engine/work.ts";

export function elementRow(botId: number, botSetId: number, range: IpRange) {
  return {
    bot_id: botId,
    bot_set_id: botSetId,
    range: formatRange(range),
    family: range.family,
    first: addressKey(range.first),
    last: addressKey(range.last),
  };
}

/** 16 bytes, big-endian. */
export function addressKey(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(32, "0"), "hex");
}

export function addressOf(key: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(key).toString("hex")}`);
}

/**
 * Counts the elements of all bots of the customer, but for bots with more than `botMax`, which only the
 * operator's import makes. They are asked for only where the total could be above `most`.
 */
export async function customerElements(
  { tx }: Work,
  customerId: number,
  { most, botMax }: { readonly most: number; readonly botMax: number },
): Promise<number> {
  const sets = tx
    .selectFrom("bot_sets")
    .innerJoin("domains", "domains.id", "bot_sets.domain_id")
    .where("domains.customer_id", "=", customerId);
  const all = await sets
    .select((select) => select.fn.sum<number | string | null>("bot_sets.count").as("count"))
    .executeTakeFirstOrThrow();
  const total = Number(all.count ?? 0);
  if (total <= most) return total;
  const imported = await sets
    .innerJoin("bots", "bots.bot_set_id", "bot_sets.id")
    .where("bots.count", ">", botMax)
    .select((select) => select.fn.sum<number | string | null>("bots.count").as("count"))
    .executeTakeFirstOrThrow();
  return total - Number(imported.count ?? 0);
}
