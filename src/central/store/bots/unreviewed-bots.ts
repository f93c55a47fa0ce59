// Unreviewed bots as customers see them: by domain, with what their policy says of them.

import { sql } from "kysely";
import type { ClassAccess } from "../../../core/serving/verdict.ts";
import { otherBots } from "../../../wire/other-bots.ts";
import { unreviewedSince } from "./unreviewed-counting.ts";
import type { PageRange, Work } from "../engine/work.ts";
import type { TableRow } from "../engine/schema.ts";
import type { Reach } from "../people/tokens.ts";
import { storedAccess, subDomainNames } from "../journal/site-state.ts";

type Bot = Pick<TableRow<"unreviewed_bots">, "name" | "description" | "requests">;

export type UnreviewedRecord = {
  readonly id: number;
  readonly name: string;
  /** The policy of the domain itself, and the one of all domains; null is not set. */
  readonly access: { readonly own: boolean | null; readonly general: boolean | null };
  /** What the one of both that is in force says of classes. */
  readonly classes: ClassAccess;
  /** Sub-domains with a policy of their own, in order of name. */
  readonly subDomains: readonly {
    readonly name: string;
    readonly own: boolean;
    readonly classes: ClassAccess;
  }[];
  /** Most requests first. */
  readonly bots: readonly Bot[];
};

/** The most bots shown of a domain; the others are summed in `other`. */
const botsShownMax = 1_000;

export async function listUnreviewed(
  work: Work,
  { customerId, domains: reached }: Reach,
  range: PageRange,
): Promise<readonly UnreviewedRecord[]> {
  let query = work.tx.selectFrom("domains").select(["id", "name"]);
  if (reached !== null) query = query.where("name", "in", reached);
  const domains = await query
    .where("customer_id", "=", customerId)
    .where("id", ">", range.after)
    .orderBy("id")
    .limit(range.limit)
    .execute();
  const { general, perDomain, classes } = await storedAccess(work.tx, customerId);
  const classesOf = (host: string): ClassAccess => classes?.perDomain.get(host) ?? {};
  const own = new Map([...perDomain].map(([domain, access]) => [domain, access === 1]));
  const listed: UnreviewedRecord[] = [];
  for (const { id, name } of domains) {
    const subs = (await subDomainNames(work.tx, id)).toSorted();
    listed.push({
      id,
      name,
      access: { own: own.get(name) ?? null, general: general === null ? null : general === 1 },
      classes: own.has(name) ? classesOf(name) : (classes?.general ?? {}),
      subDomains: subs.flatMap((sub) => {
        const access = own.get(sub);
        return access === undefined ? [] : [{ name: sub, own: access, classes: classesOf(sub) }];
      }),
      bots: await botsOf(work, id),
    });
  }
  return listed;
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
