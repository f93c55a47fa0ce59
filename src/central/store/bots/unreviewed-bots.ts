// Unreviewed bots as customers see them: by domain, with what their policy says of them.

import { sql } from "kysely";
import { otherBots } from "../../../wire/channel.ts";
import { unreviewedSince } from "./unreviewed-counting.ts";
import type { PageRange, Work } from "../engine/work.ts";

type Bot = {
  readonly name: string;
  readonly description: string | null;
  readonly requests: number;
};

export type UnreviewedRecord = {
  readonly id: number;
  readonly name: string;
  /** The policy of the domain itself, and the one of all domains; null is not set. */
  readonly access: { readonly own: boolean | null; readonly general: boolean | null };
  /** Sub-domains with a policy of their own, in order of name. */
  readonly subDomains: readonly { readonly name: string; readonly own: boolean }[];
  /** Most requests first. */
  readonly bots: readonly Bot[];
};

/** The most bots shown of a domain; the others are summed in `other`. */
const botsShownMax = 1_000;

export function unreviewedBots(work: Work) {
  const { tx } = work;
  return {
    async list(customerId: number, range: PageRange): Promise<readonly UnreviewedRecord[]> {
      const domains = await tx
        .selectFrom("domains")
        .select(["id", "name"])
        .where("customer_id", "=", customerId)
        .where("id", ">", range.after)
        .orderBy("id")
        .limit(range.limit)
        .execute();
      const policies = await accessOf(work, customerId);
      const listed: UnreviewedRecord[] = [];
      for (const { id, name } of domains)
        listed.push({ id, name, ...(await policies(id, name)), bots: await botsOf(work, id) });
      return listed;
    },
  };
}

type Access = Pick<UnreviewedRecord, "access" | "subDomains">;

async function accessOf(
  { tx }: Work,
  customerId: number,
): Promise<(domainId: number, name: string) => Promise<Access>> {
  const general = await tx
    .selectFrom("general_policies")
    .select("unknown_bots_can_access as access")
    .where("customer_id", "=", customerId)
    .executeTakeFirst();
  const stored = await tx
    .selectFrom("domain_policies")
    .select(["domain", "unknown_bots_can_access as access"])
    .where("customer_id", "=", customerId)
    .execute();
  const own = new Map(stored.map(({ domain, access }) => [domain, access === 1]));
  return async (domainId, name) => {
    const subs = await tx
      .selectFrom("sub_domains")
      .select("name")
      .where("domain_id", "=", domainId)
      .orderBy("name")
      .execute();
    const said = general?.access ?? null;
    return {
      access: { own: own.get(name) ?? null, general: said === null ? null : said === 1 },
      subDomains: subs.flatMap((sub) => {
        const access = own.get(sub.name);
        return access === undefined ? [] : [{ name: sub.name, own: access }];
      }),
    };
  };
}

async function botsOf({ tx, at }: Work, domainId: number): Promise<readonly Bot[]> {
  const rows = tx
    .selectFrom("unreviewed_bots")
    .where("domain_id", "=", domainId)
    .where("day", ">=", unreviewedSince(new Date(at)));
  const bots = await rows
    .select((select) => [
      "name",
      select.fn.max("description").as("description"),
      sql<number>`sum(requests)`.as("requests"),
    ])
    .groupBy("name")
    .orderBy("requests", "desc")
    .orderBy("name")
    .limit(botsShownMax + 1)
    .execute();
  if (bots.length <= botsShownMax) return bots;
  const shown = bots.slice(0, botsShownMax).filter(({ name }) => name !== otherBots.name);
  const { total } = await rows
    .select(sql<number>`sum(requests)`.as("total"))
    .executeTakeFirstOrThrow();
  const counted = shown.reduce((sum, { requests }) => sum + requests, 0);
  return [...shown, { ...otherBots, requests: total - counted }];
}
