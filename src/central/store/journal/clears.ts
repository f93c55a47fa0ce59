// Clears of the accelerator cache: asked for once, journaled to each deployment of the domain, answered by receipts.

import { sql } from "kysely";
import type { ClearItems, PlannedClear } from "../../../core/patterns/clear-items.ts";
import type { ClearExtension } from "../../../wire/clear-items.ts";
import type {
  ClearDeployment,
  ClearInstance,
  ClearNamed,
  ClearRecord,
  ClearState,
} from "../../../wire/customer/clear.ts";
import type { Queries } from "../engine/database.ts";
import { insertListed } from "../engine/listed.ts";
import { parts } from "../engine/parts.ts";
import type { OwnRowUnit } from "../engine/read-committed.ts";
import { isPostgres } from "../engine/statements.ts";
import { append, type PageRange, type Work } from "../engine/work.ts";
import { sitesOfDomain } from "./links.ts";
import {
  readProofs,
  type JournalPlace,
  type InstanceProof,
  type InstanceSeen,
  type Proof,
  type ReceiptSeen,
} from "./proof.ts";
import { countOf, msOf, textsOf } from "./receipt-detail.ts";

export type NewClear = {
  readonly domainId: number;
  readonly main: string;
  /** The main domain: with its sub-domains; a sub-domain: that one only. */
  readonly host: string;
  /** The patterns as they were given. */
  readonly patterns: readonly string[];
  /** What else was named, as it was given. */
  readonly named: ClearNamed;
  /** What the journal says of all that. */
  readonly planned: PlannedClear;
};

/** `isProofWhole`: no further receipt is awaited from this instance. */
export type ClearInstanceState = ClearInstance & { readonly isProofWhole: boolean };
export type ClearDeploymentState = Omit<ClearDeployment, "instances"> & {
  readonly instances: readonly ClearInstanceState[];
};
export type ClearSite = { readonly id: number; readonly lastSeen: string | undefined };

/** How a clear of the customer is written: behind the customer's other ones. */
export function clearsOfCustomer(customerId: number): OwnRowUnit {
  return {
    unit: "clears",
    key: `customer ${customerId}`,
    lock: async (tx) =>
      tx
        .selectFrom("customers")
        .select("id")
        .where("id", "=", customerId)
        .$if(isPostgres(tx), (query) => query.forNoKeyUpdate())
        .execute(),
  };
}

/** How a clear of the domain is written that agents ask for. */
export function clearsOfDomain(domainId: number): OwnRowUnit {
  return {
    unit: "clears",
    key: `domain ${domainId}`,
    lock: async (tx) => {
      const domain = await tx
        .selectFrom("domains")
        .select("customer_id")
        .where("id", "=", domainId)
        .executeTakeFirst();
      if (domain !== undefined) await clearsOfCustomer(domain.customer_id).lock(tx);
    },
  };
}

/** Runs in a transaction of `clearsOfCustomer` or `clearsOfDomain`. */
export async function createClear(
  work: Work,
  { domainId, main, host, patterns, named, planned }: NewClear,
): Promise<string> {
  const { tx } = work;
  const clearId = work.randomHex(8);
  const only = host === main ? null : host;
  // Clears of a customer come one after the other, so no two of a domain count alike.
  const { last } = await tx
    .selectFrom("clears")
    .select(({ fn }) => fn.coalesce(fn.max("no"), sql.lit(0)).as("last"))
    .where("domain_id", "=", domainId)
    .executeTakeFirstOrThrow();
  await tx
    .insertInto("clears")
    .values({
      id: clearId,
      no: last + 1,
      domain_id: domainId,
      host: only,
      patterns: JSON.stringify(patterns),
      has_extension: planned.items === undefined ? 0 : 1,
      items: Object.keys(named).length === 0 ? null : JSON.stringify(named),
      when_created: work.at,
    })
    .execute();
  const { items } = planned;
  const entries = await append(
    work,
    await sitesOfDomain(work, domainId),
    "cache.clear",
    { clear_id: clearId, domain: main, host: planned.host, patterns: [...planned.patterns] },
    items === undefined ? undefined : wireItems(items),
  );
  const rows = entries.map(({ deploymentSiteId, seq }) => ({
    clear_id: clearId,
    deployment_site_id: deploymentSiteId,
    seq,
  }));
  await insertListed(tx, "clear_deployments", placeColumns, rows);
  return clearId;
}

const placeColumns = { clear_id: "text", deployment_site_id: "integer", seq: "bigint" } as const;

/** A page of past clears, the oldest first: of a main domain with its sub-domains, or of one sub-domain. */
export async function listClears(
  work: Work,
  { domainId, main, host }: Pick<NewClear, "domainId" | "main" | "host">,
  { after, limit, isNewestFirst = false }: PageRange,
  since = "",
): Promise<readonly ClearRecord[]> {
  const { tx, at } = work;
  const rows = await tx
    .selectFrom("clears")
    .select(["id", "no", "host", "patterns", "items", "has_extension", "when_created"])
    .where("domain_id", "=", domainId)
    .$if(!isNewestFirst, (query) => query.where("no", ">", after).orderBy("no"))
    .$if(isNewestFirst, (query) => query.orderBy("no", "desc"))
    .$if(isNewestFirst && after > 0, (query) => query.where("no", "<", after))
    .where("when_created", ">=", since)
    .$if(host !== main, (query) => query.where("host", "=", host))
    .limit(limit)
    .execute();
  const places = await placesOf(tx, rows);
  const proofs = await readProofs(tx, [...places.values()].flat(), Date.parse(at));
  return rows.map(({ id, no, when_created, ...clear }) => ({
    id: no,
    clear_id: id,
    domain: clear.host ?? main,
    patterns: JSON.parse(clear.patterns) as string[], // As createClear wrote them.
    ...(JSON.parse(clear.items ?? "{}") as ClearNamed), // As createClear wrote it.
    deployments: (places.get(id) ?? []).map((place) => {
      const facts = { domain: main, hasItems: clear.has_extension === 1 };
      const proof = proofs(place);
      const { instances, ...told } = clearedAt(place.deploymentSiteId, facts, proof);
      return {
        ...told,
        instances: instances.map(({ isProofWhole: _isProofWhole, ...one }) => one),
      };
    }),
    when_created,
  }));
}

async function placesOf(
  tx: Queries,
  clears: readonly { readonly id: string }[],
): Promise<ReadonlyMap<string, readonly JournalPlace[]>> {
  const places = new Map<string, JournalPlace[]>();
  for (const part of parts(clears)) {
    const rows = await tx
      .selectFrom("clear_deployments")
      .select(["clear_id", "deployment_site_id as deploymentSiteId", "seq"])
      .where(
        "clear_id",
        "in",
        part.map(({ id }) => id),
      )
      .orderBy("deployment_site_id")
      .execute();
    for (const { clear_id: id, ...place } of rows) {
      const before = places.get(id);
      if (before === undefined) places.set(id, [place]);
      else before.push(place);
    }
  }
  return places;
}

/** Copies the items into what the journal carries. */
export function wireItems({
  patterns,
  urls,
  prefixes,
  hosts,
  tags,
  soft,
}: ClearItems): ClearExtension {
  return {
    ...(patterns !== undefined && { patterns: [...patterns] }),
    ...(urls !== undefined && { urls: [...urls] }),
    ...(prefixes !== undefined && { prefixes: [...prefixes] }),
    ...(hosts !== undefined && { hosts: [...hosts] }),
    ...(tags !== undefined && { tags: [...tags] }),
    ...(soft === true && { soft }),
  };
}

/** A clear, and where its entries stand. */
export type ClearPlaced = {
  readonly shown: Omit<ClearState, "deployments">;
  readonly facts: ClearFacts;
  /** In order of the sites. */
  readonly places: readonly JournalPlace[];
};

export async function findClear(
  { tx }: Work,
  customerId: number,
  clearId: string,
): Promise<ClearPlaced | undefined> {
  const clear = await tx
    .selectFrom("clears")
    .innerJoin("domains", "domains.id", "clears.domain_id")
    .select(["clears.host", "clears.patterns", "clears.items", "has_extension", "domains.name"])
    .where("domains.customer_id", "=", customerId)
    .where("clears.id", "=", clearId)
    .executeTakeFirst();
  if (clear === undefined) return undefined;
  const places = await tx
    .selectFrom("clear_deployments")
    .select(["deployment_site_id as deploymentSiteId", "seq"])
    .where("clear_id", "=", clearId)
    .orderBy("deployment_site_id")
    .execute();
  return {
    shown: {
      clear_id: clearId,
      domain: clear.host ?? clear.name,
      patterns: JSON.parse(clear.patterns) as string[], // As createClear wrote them.
      ...(JSON.parse(clear.items ?? "{}") as ClearNamed), // As createClear wrote it.
    },
    facts: { domain: clear.name, hasItems: clear.has_extension === 1 },
    places,
  };
}

/** Returns what is proved by now at some of the clear's places, in their order. */
export async function clearedAtPlaces(
  { tx, at }: Work,
  facts: ClearFacts,
  places: readonly JournalPlace[],
): Promise<readonly ClearDeploymentState[]> {
  const proofAt = await readProofs(tx, places, Date.parse(at));
  return places.map((place) => clearedAt(place.deploymentSiteId, facts, proofAt(place)));
}

/**
 * Returns the sites whose journals a clear of the domain would go to, and when an agent was seen there last.
 */
export async function clearSites({ tx }: Work, domainId: number): Promise<readonly ClearSite[]> {
  const rows = await tx
    .selectFrom("domain_links")
    .leftJoin("instances", "instances.deployment_site_id", "domain_links.deployment_site_id")
    .select(["domain_links.deployment_site_id as id"])
    .select(({ fn }) => fn.max("instances.last_seen").as("lastSeen"))
    .where("domain_links.domain_id", "=", domainId)
    .groupBy("domain_links.deployment_site_id")
    .orderBy("domain_links.deployment_site_id")
    .execute();
  return rows.map(({ id, lastSeen }) => ({ id, lastSeen: lastSeen ?? undefined }));
}

/** `hasItems`: agents that do not know items clear more, and do not say so. */
export type ClearFacts = { readonly domain: string; readonly hasItems: boolean };

/** Pure. Counts are summed over instances that count, times are the longest. */
export function clearedAt(
  deploymentSiteId: number,
  clear: ClearFacts,
  proof: Proof,
): ClearDeploymentState {
  const { state, error, lastSeen, receipts, instances } = proof;
  return {
    deployment_site_id: deploymentSiteId,
    state,
    ...toldBy(receipts, clear),
    // What some found nothing of is not verified at the others, which have not told.
    ...((state === "pending" || !instances.every(isWhole)) && unverified(receipts)),
    ...(state === "pending" && lastSeen !== undefined && { last_seen: lastSeen }),
    ...(error !== undefined && { error }),
    instances: instances.toSorted(byId).map((instance) => ({
      instance_id: instance.instanceId,
      state: instance.state,
      ...toldBy(instance.receipts, clear),
      last_seen: instance.lastSeen,
      ...(instance.error !== undefined && { error: instance.error }),
      isProofWhole: isWhole(instance),
    })),
  };
}

/** A snapshot is one receipt for all that it brings; a clear has one when it is applied, and one when its matches are gone. */
function isWhole({ state, receipts }: InstanceProof): boolean {
  if (state !== "applied") return state === "failed";
  return receipts.some(({ phase, detail }) => phase === "gone" || detail["snapshot"] === true);
}

function byId(a: InstanceSeen, b: InstanceSeen): number {
  return a.instanceId < b.instanceId ? -1 : 1;
}

/** Null, but where one has found something: that stays true whatever others tell. */
function unverified(receipts: readonly ReceiptSeen[]): { readonly verified: null } | undefined {
  const hasFound = receipts.some(({ detail }) => detail["verified"] === false);
  return hasFound ? undefined : { verified: null };
}

type Told = Omit<ClearInstance, "instance_id" | "state" | "last_seen" | "error">;

/** Null for what no receipt tells. */
function toldBy(receipts: readonly ReceiptSeen[], { domain, hasItems }: ClearFacts): Told {
  const applied = receipts.filter(({ phase }) => phase === "applied");
  const gone = receipts.filter(({ phase }) => phase === "gone");
  const sum = (from: readonly ReceiptSeen[], key: string): number | null =>
    reduced(
      from,
      ({ detail }) => countOf(detail, key),
      (a, b) => a + b,
    );
  const longest = (from: readonly ReceiptSeen[], key: string): number | null =>
    reduced(from, ({ detail }) => msOf(detail, key), Math.max);
  const verdicts = gone
    .map(({ detail }) => detail["verified"])
    .filter((v) => typeof v === "boolean");
  const isWidened = applied.some(
    ({ detail }) =>
      detail["widened"] === true ||
      textsOf(detail, "cleared").includes(domain) ||
      (hasItems && detail["items"] !== true && detail["snapshot"] !== true),
  );
  return {
    matched: sum(applied, "matched"),
    removed: sum(gone, "removed"),
    blocked_in_flight: sum(gone, "blocked_in_flight"),
    took_ms: reduced(applied, ({ tookMs }) => tookMs, Math.max),
    invisible_ms: longest(applied, "invisible_ms"),
    gone_ms: longest(gone, "gone_ms"),
    verified: verdicts.length === 0 ? null : verdicts.every(Boolean),
    ...(isWidened && { widened: true }),
  };
}

function reduced(
  receipts: readonly ReceiptSeen[],
  of: (receipt: ReceiptSeen) => number | undefined,
  join: (a: number, b: number) => number,
): number | null {
  const values = receipts.map(of).filter((value) => value !== undefined);
  return values.length === 0 ? null : values.reduce((a, b) => join(a, b));
}
