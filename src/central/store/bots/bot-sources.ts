// Where the addresses of a bot are fetched from: what customers set, whose turn it is, and how attempts ended.
//
//   due      its time has come, and nobody fetches it
//   taken    one instance of central fetches it, for as long as it says so; when that dies, the source is due again after half a minute
//   settled  the end of the attempt, written in the transaction that puts the list in force

import { nextFetchMs, staleFromMs } from "../../../core/list-source.ts";
import type { Sha256 } from "../../../core/ids.ts";
import { publishedCrawlers } from "../../../core/published-crawlers.ts";
import type { Queries, Store } from "../engine/database.ts";
import type { TableRow } from "../engine/schema.ts";
import type { PageRange, Work } from "../engine/work.ts";
import type { Reach } from "../people/tokens.ts";
import type { BotPlace } from "./bot-versions.ts";

export type SourceRow = TableRow<"bot_sources">;

/** A source with the customer whose it is, and the main domain. */
export type OwnedSource = SourceRow & { readonly customerId: number; readonly main: string };

const takenMs = 30_000;

const placed = ({ domainId, host, set, bot }: BotPlace) => ({
  domain_id: domainId,
  host,
  kind: set,
  bot,
});

export function placeOfSource({ domain_id, host, kind, bot }: SourceRow): BotPlace {
  return { domainId: domain_id, host, set: kind, bot };
}

export async function findSource({ tx }: Work, place: BotPlace): Promise<SourceRow | undefined> {
  return tx
    .selectFrom("bot_sources")
    .selectAll()
    .where((one) => one.and(placed(place)))
    .executeTakeFirst();
}

/** Lists the sources that a caller reaches, in order of id. */
export async function listSources(
  { tx }: Work,
  { customerId, domains }: Reach,
  { after, limit }: PageRange,
): Promise<readonly SourceRow[]> {
  let query = tx
    .selectFrom("bot_sources")
    .innerJoin("domains", "domains.id", "bot_sources.domain_id")
    .selectAll("bot_sources")
    .where("domains.customer_id", "=", customerId);
  if (domains !== null) query = query.where("domains.name", "in", domains);
  return query.where("bot_sources.id", ">", after).orderBy("bot_sources.id").limit(limit).execute();
}

export async function countSources({ tx }: Work, customerId: number): Promise<number> {
  const { all } = await tx
    .selectFrom("bot_sources")
    .innerJoin("domains", "domains.id", "bot_sources.domain_id")
    .where("domains.customer_id", "=", customerId)
    .select((select) => select.fn.countAll<number | string>().as("all"))
    .executeTakeFirstOrThrow();
  return Number(all);
}

export type SourceTerms = {
  readonly url: string;
  /** Whether it is where the crawler's owner publishes. */
  readonly isPublished: boolean;
  readonly intervalS: number;
  readonly createdBy: string;
};

/** Sets where a bot's addresses come from; another URL is fetched at once. Returns the source. */
export async function putSource(
  work: Work,
  place: BotPlace,
  { url, isPublished, intervalS, createdBy }: SourceTerms,
): Promise<SourceRow> {
  const { tx, at } = work;
  const known = await findSource(work, place);
  if (known === undefined)
    return tx
      .insertInto("bot_sources")
      .values({
        ...placed(place),
        url,
        is_published: Number(isPublished),
        interval_s: intervalS,
        created_by: createdBy,
        when_created: at,
        when_next: at,
      })
      .returningAll()
      .executeTakeFirstOrThrow();
  const isOther = known.url !== url;
  const told = { etag: null, last_modified: null, digest: null };
  const nobody = { taken_by: null, taken_until: null };
  const anew = { ...told, ...nobody, when_next: at, failures: 0, outcome: null, reason: null };
  const soonest = Date.parse(at) + intervalS * 1_000;
  const same = { when_next: earlier(known.when_next, new Date(soonest).toISOString()) };
  return tx
    .updateTable("bot_sources")
    .set({
      url,
      is_published: Number(isPublished),
      interval_s: intervalS,
      ...(isOther ? anew : same),
    })
    .where("id", "=", known.id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

const earlier = (one: string, other: string): string => (one < other ? one : other);

/** Has a source fetched at once, whatever the server said of what it holds. Undefined: there is none. */
export async function fetchSourceNow(
  { tx, at }: Work,
  place: BotPlace,
  isShrinkMeant: boolean,
): Promise<SourceRow | undefined> {
  const told = { etag: null, last_modified: null };
  return tx
    .updateTable("bot_sources")
    .set({ ...told, when_next: at, allow_shrink: isShrinkMeant ? 1 : 0 })
    .where((one) => one.and(placed(place)))
    .returningAll()
    .executeTakeFirst();
}

/** Ends the fetching; the bot keeps what it holds. Returns whether there was a source. */
export async function dropSource({ tx }: Work, place: BotPlace): Promise<boolean> {
  const gone = await tx
    .deleteFrom("bot_sources")
    .where((one) => one.and(placed(place)))
    .returning("id")
    .execute();
  return gone.length > 0;
}

/**
 * Returns the source that is due longest. No customer has two that are fetched at the same time: he would keep the
 * others waiting.
 */
async function dueSource(db: Queries, at: string): Promise<{ readonly id: number } | undefined> {
  const busy = db
    .selectFrom("bot_sources as other")
    .innerJoin("domains as owned", "owned.id", "other.domain_id")
    .select("owned.customer_id")
    .where("other.taken_until", ">", at);
  return db
    .selectFrom("bot_sources")
    .innerJoin("domains", "domains.id", "bot_sources.domain_id")
    .select("bot_sources.id")
    .where("when_next", "<=", at)
    .where("domains.customer_id", "not in", busy)
    .orderBy("when_next")
    .limit(1)
    .executeTakeFirst();
}

/** Returns whether there is a source to take. */
export async function hasDueSource(store: Store, at: string): Promise<boolean> {
  return (await dueSource(store, at)) !== undefined;
}

/** Takes the source that is due longest, for half a minute. */
export async function takeSource({ tx, at }: Work, by: string): Promise<OwnedSource | undefined> {
  const due = await dueSource(tx, at);
  if (due === undefined) return undefined;
  const taken = await tx
    .updateTable("bot_sources")
    .set({ taken_by: by, taken_until: takenUntil(at) })
    .where("id", "=", due.id)
    .returningAll()
    .executeTakeFirstOrThrow();
  const owner = await tx
    .selectFrom("domains")
    .select(["customer_id as customerId", "name as main"])
    .where("id", "=", taken.domain_id)
    .executeTakeFirstOrThrow();
  return { ...taken, ...owner };
}

const takenUntil = (at: string): string => new Date(Date.parse(at) + takenMs).toISOString();

/** Has the lists of crawlers fetched from where this release knows that their owners publish them. Returns how many moved. */
export async function movePublished({ tx, at }: Work): Promise<number> {
  let moved = 0;
  for (const { bot, url } of publishedCrawlers) {
    const rows = await tx
      .updateTable("bot_sources")
      .set({ url, etag: null, last_modified: null, when_next: at, failures: 0 })
      .where((one) => one.and({ is_published: 1, bot }))
      .where("url", "!=", url)
      .returning("id")
      .execute();
    moved += rows.length;
  }
  return moved;
}

/** Keeps a source for another half minute. Returns false if it is not any more what was taken. */
export async function keepSource(
  { tx, at }: Work,
  { id, url, taken_by: by }: SourceRow,
): Promise<boolean> {
  const kept = await tx
    .updateTable("bot_sources")
    .set({ taken_until: takenUntil(at) })
    .where((one) => one.and({ id, url, taken_by: by }))
    .returning("id")
    .execute();
  return kept.length > 0;
}

/** Gives a source back that was taken: it is due again at once. */
export async function releaseSource({ tx }: Work, { id, taken_by: by }: SourceRow): Promise<void> {
  await tx
    .updateTable("bot_sources")
    .set({ taken_by: null, taken_until: null })
    .where((one) => one.and({ id, taken_by: by }))
    .execute();
}

/** How an attempt ended. */
export type SourceEnd =
  | {
      readonly outcome: "changed" | "unchanged";
      readonly told: { readonly etag: string | null; readonly lastModified: string | null };
      readonly digest: Sha256;
    }
  /** `failed`: the list did not come. `refused`: it came, and is not good; asking again soon would not help. */
  | {
      readonly outcome: "failed" | "refused";
      readonly reason: string;
      readonly waitMs?: number;
    };

const reasonCharsMax = 2_000;

/**
 * Writes how an attempt ended, and when the next one is; whoever asked for one meanwhile gets it. Returns false if the
 * source is not any more what was taken: nothing of the attempt counts then.
 */
export async function settleSource(
  { tx, at }: Work,
  source: SourceRow,
  end: SourceEnd,
  random: number,
): Promise<boolean> {
  const { id, url, taken_by: by, interval_s: intervalS, failures } = source;
  const inARow = end.outcome === "failed" || end.outcome === "refused" ? failures + 1 : 0;
  const tried = end.outcome === "refused" ? Infinity : inARow;
  const leastMs = "waitMs" in end ? end.waitMs : 0;
  const nextMs = Date.parse(at) + nextFetchMs(intervalS, tried, random, leastMs);
  const settled = await tx
    .updateTable("bot_sources")
    .set({
      taken_by: null,
      taken_until: null,
      when_tried: at,
      when_next: (row) =>
        row
          .case()
          .when("when_next", "=", source.when_next)
          .then(new Date(nextMs).toISOString())
          .else(row.ref("when_next"))
          .end(),
      failures: inARow,
      outcome: end.outcome,
      reason: "reason" in end ? end.reason.slice(0, reasonCharsMax) : null,
      ...("told" in end && {
        when_fetched: at,
        ...(source.allow_shrink === 1 && { allow_shrink: 0 }),
        etag: end.told.etag,
        last_modified: end.told.lastModified,
        digest: end.digest,
      }),
    })
    .where((one) => one.and({ id, url, taken_by: by }))
    .returning("id")
    .execute();
  return settled.length > 0;
}

export type StaleSource = {
  readonly customerId: number;
  readonly domainId: number;
  readonly domain: string;
  readonly host: string;
  readonly kind: SourceRow["kind"];
  readonly bot: string;
  readonly url: string;
  readonly reason: string | null;
  /** When a list was taken in last, or the source was made. ISO 8601. */
  readonly since: string;
};

/** Returns the sources whose list has not come for too long; of one customer, if one is named. */
export async function staleSources(
  { tx, at }: Work,
  ofCustomer?: number,
): Promise<readonly StaleSource[]> {
  let query = tx
    .selectFrom("bot_sources")
    .innerJoin("domains", "domains.id", "bot_sources.domain_id")
    .selectAll("bot_sources")
    .select(["domains.customer_id as customerId", "domains.name as domain"])
    .where("failures", ">", 0);
  if (ofCustomer !== undefined) query = query.where("domains.customer_id", "=", ofCustomer);
  const rows = await query.orderBy("bot_sources.id").execute();
  return rows.flatMap(({ domain_id: domainId, ...row }) => {
    const since = row.when_fetched ?? row.when_created;
    if (staleFromMs(Date.parse(since), row.interval_s) > Date.parse(at)) return [];
    const { customerId, domain, host, kind, bot, url, reason } = row;
    return [{ customerId, domainId, domain, host, kind, bot, url, reason, since }];
  });
}
