// Where bots stand: in the bad or the VIP set of a host, which comes to be with the first of them.

import { emptySetDigest } from "../../../core/addresses/set-digest.ts";
import type { BotSet } from "../../../wire/journal.ts";
import { setColumns, type SetRow } from "./bot-versions.ts";
import type { Work } from "../engine/work.ts";

export type BotPlace = {
  readonly domainId: number;
  readonly host: string;
  readonly set: BotSet;
  readonly bot: string;
};

export async function openSet(
  { tx }: Work,
  { domainId, host, set: kind }: BotPlace,
): Promise<SetRow> {
  const found = await tx
    .selectFrom("bot_sets")
    .select(setColumns)
    .where("domain_id", "=", domainId)
    .where("host", "=", host)
    .where("kind", "=", kind)
    .executeTakeFirst();
  if (found !== undefined) return found;
  return tx
    .insertInto("bot_sets")
    .values({ domain_id: domainId, host, kind, version: 0, count: 0, digest: emptySetDigest })
    .returning(setColumns)
    .executeTakeFirstOrThrow();
}
