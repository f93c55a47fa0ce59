// Elements of bots as they are kept: canonical text, and the bounds as bytes that compare as numbers. How many of them a customer has.

import { formatRange, type IpRange } from "../../../core/addresses/ip.ts";
import type { Work } from "../engine/work.ts";
import { setImmediate } from "node:timers/promises";
import type { Queries } from "../engine/database.ts";
import { rowsPerStatement } from "../engine/parts.ts";

/** `text`: of the range, where it is known already. */
export function elementRow(botId: number, setId: number, range: IpRange, text?: string) {
  return {
    bot_id: botId,
    bot_set_id: setId,
    range: text ?? formatRange(range),
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

/** Counts the elements of all bots of the customer. */
export async function customerElements({ tx }: Work, customerId: number): Promise<number> {
  const { all } = await tx
    .selectFrom("bot_sets")
    .innerJoin("domains", "domains.id", "bot_sets.domain_id")
    .where("domains.customer_id", "=", customerId)
    .select((select) => select.fn.sum<number | string | null>("bot_sets.count").as("all"))
    .executeTakeFirstOrThrow();
  return Number(all ?? 0);
}

/** The elements of a bot as texts, in order, page by page with a turn of the event loop between two: lists that operators import have a million. */
export async function* elementPages(
  db: Queries,
  botId: number,
  size = rowsPerStatement,
): AsyncGenerator<readonly string[]> {
  for (let last = ""; ;) {
    const rows = await db
      .selectFrom("bot_elements")
      .select("range")
      .where("bot_id", "=", botId)
      .where("range", ">", last)
      .orderBy("range")
      .limit(size)
      .execute();
    if (rows.length > 0) yield rows.map(({ range }) => range);
    last = rows.at(-1)?.range ?? "";
    if (rows.length < size) return;
    await setImmediate();
  }
}
