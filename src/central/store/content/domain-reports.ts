// What a report of an agent says of domains since the report before: traffic is summed by day, backends in trouble are noted.
//
// Agents count since their start, so the report before, which lies with the instance, is what is subtracted; a count that fell began anew. A report that
// arrives twice adds nothing, and what one that was lost said is in the next. In ordinary times nothing is written but a day's sums.

import { sql } from "kysely";
import { decodeReport, type Report, type Traffic } from "../../../wire/channel.ts";
import type { Queries } from "../engine/database.ts";
import { listed, rowsAtOnce } from "../engine/listed.ts";
import { parts } from "../engine/parts.ts";
import type { StoreTables, TableRow } from "../engine/schema.ts";
import { addVariants } from "./image-days.ts";

export type AlertRules = {
  /** An answer above this many seconds, a bound of `latency_buckets`, is slow. */
  readonly slowAboveS: number;
  readonly slowPercent: number;
  readonly slowRequests: number;
};

/** The rules as the settings have them by default. */
const usualRules: AlertRules = { slowAboveS: 2, slowPercent: 50, slowRequests: 5 };

type Domain = Report["domains"][number];
type Backend = Domain["backend"];
type TroubleKind = StoreTables["backend_troubles"]["kind"];
/** `verdict` undefined: too little happened to say. */
type Sample = {
  readonly kind: TroubleKind;
  readonly verdict: "good" | "bad" | undefined;
  readonly requests: number;
  readonly badRequests: number;
};

type Given = { readonly deploymentSiteId: number; readonly report: Report };
type InstancePlace = { readonly deploymentSiteId: number; readonly instanceId: string };

/**
 * Notes the domains of reports in a transaction, before they replace the ones before; each instance has one. Nothing is kept of domains that are not linked to their
 * site.
 */
export async function noteDomains(
  db: Queries,
  all: readonly Given[],
  at: string,
  rules: AlertRules = usualRules,
): Promise<void> {
  const given = all
    .filter(({ report }) => report.domains.length > 0)
    .map(({ deploymentSiteId, report }) => {
      const place = { deploymentSiteId, instanceId: report.instance_id };
      return { place, key: keyOf(place), domains: report.domains };
    });
  if (given.length === 0) return;
  const places = given.map(({ place }) => place);
  const before = await lastReports(db, places);
  const linked = await linkedIds(db, places);
  const troubles = await knownTroubles(db, places);
  const sums = new Map<number, TrafficSums>();
  for (const { place, key, domains } of given) {
    const earlier = new Map(before.get(key)?.domains.map((one) => [one.domain, one]));
    for (const domain of domains) {
      const domainId = linked.get(place.deploymentSiteId)?.get(domain.domain);
      if (domainId === undefined) continue;
      const last = earlier.get(domain.domain);
      addSums(sums, domainId, trafficSince(domain, last));
      const spot = { ...place, domainId };
      if (domain.variants !== undefined) await addVariants(db, spot, domain.variants, at);
      for (const sample of samplesOf(domain.backend, last?.backend, rules)) {
        const known = troubles
          .get(key)
          ?.find((row) => row.domain_id === domainId && row.kind === sample.kind);
        await noteSample(db, spot, sample, known, at);
      }
    }
  }
  await addTraffic(db, at.slice(0, 10), sums);
}

const keyOf = ({ deploymentSiteId, instanceId }: InstancePlace): string =>
  `${deploymentSiteId} ${instanceId}`;

/** Names instances in a statement. */
function placesOf(db: Queries, places: readonly InstancePlace[]) {
  const columns = { site: "integer", instance: "text" } as const;
  const rows = places.map(({ deploymentSiteId, instanceId }) => {
    return { site: deploymentSiteId, instance: instanceId };
  });
  return listed(db, columns, rows);
}

async function lastReports(
  db: Queries,
  places: readonly InstancePlace[],
): Promise<ReadonlyMap<string, Report>> {
  const reports = new Map<string, Report>();
  for (const part of parts(places, rowsAtOnce(db))) {
    const { rows } = await sql<InstancePlace & { readonly text: string | null }>`
      SELECT deployment_site_id AS "deploymentSiteId", instance_id AS "instanceId", last_report AS text
      FROM ${placesOf(db, part)} AS asked CROSS JOIN instances
      WHERE deployment_site_id = asked.site AND instance_id = asked.instance
    `.execute(db);
    for (const { text, ...place } of rows) {
      const decoded = text === null ? undefined : decodeReport(JSON.parse(text));
      if (decoded?.ok === true) reports.set(keyOf(place), decoded.value);
    }
  }
  return reports;
}

/** Returns the ids of the domains that are linked to the sites, by site and name. */
async function linkedIds(
  db: Queries,
  places: readonly InstancePlace[],
): Promise<ReadonlyMap<number, ReadonlyMap<string, number>>> {
  const linked = new Map<number, Map<string, number>>();
  const sites = [...new Set(places.map(({ deploymentSiteId }) => deploymentSiteId))];
  for (const part of parts(sites)) {
    const rows = await db
      .selectFrom("domain_links")
      .innerJoin("domains", "domains.id", "domain_links.domain_id")
      .select(["deployment_site_id as siteId", "domains.id", "domains.name"])
      .where("deployment_site_id", "in", part)
      .execute();
    for (const { siteId, id, name } of rows) {
      const own = linked.get(siteId) ?? new Map<string, number>();
      linked.set(siteId, own.set(name, id));
    }
  }
  return linked;
}

type KnownTrouble = Pick<TableRow<"backend_troubles">, "domain_id" | "kind" | "good_since">;

async function knownTroubles(
  db: Queries,
  places: readonly InstancePlace[],
): Promise<ReadonlyMap<string, readonly KnownTrouble[]>> {
  const troubles = new Map<string, KnownTrouble[]>();
  for (const part of parts(places, rowsAtOnce(db))) {
    const { rows } = await sql<InstancePlace & KnownTrouble>`
      SELECT deployment_site_id AS "deploymentSiteId", instance_id AS "instanceId", domain_id, kind, good_since
      FROM ${placesOf(db, part)} AS asked CROSS JOIN backend_troubles
      WHERE deployment_site_id = asked.site AND instance_id = asked.instance
    `.execute(db);
    for (const { deploymentSiteId, instanceId, ...known } of rows) {
      const key = keyOf({ deploymentSiteId, instanceId });
      const own = troubles.get(key);
      if (own === undefined) troubles.set(key, [known]);
      else own.push(known);
    }
  }
  return troubles;
}

/** A count that is less than before began anew with the agent. */
function since(now: number, before = 0): number {
  return now >= before ? now - before : now;
}

/** Pure. */
export function samplesOf(
  now: Backend,
  before: Backend | undefined,
  { slowAboveS, slowPercent, slowRequests }: AlertRules,
): readonly Sample[] {
  const asked = since(now.requests, before?.requests);
  const failed = Math.min(asked, since(now.errors, before?.errors));
  const bounds = Object.keys(now.latency_buckets);
  const upTo = (bound: string): number =>
    since(now.latency_buckets[bound] ?? 0, before?.latency_buckets[bound]);
  const answered = upTo("+Inf");
  // Agents may count by other steps: the next one above claims nothing that was not seen.
  const step = bounds
    .filter((bound) => Number(bound) >= slowAboveS)
    .toSorted((one, other) => Number(one) - Number(other))[0];
  const slow = step === undefined ? 0 : Math.max(0, answered - upTo(step));
  const isSlow = answered >= slowRequests && slow * 100 > answered * slowPercent;
  const isFast = answered > 0 && (slow === 0 || answered >= slowRequests);
  return [
    {
      kind: "unreachable",
      verdict: asked === 0 ? byChecks(now) : failed >= asked ? "bad" : "good",
      requests: asked,
      badRequests: failed,
    },
    {
      kind: "slow",
      verdict: isSlow ? "bad" : isFast ? "good" : undefined,
      requests: answered,
      badRequests: slow,
    },
  ];
}

/** Judges by the active checks where no visitor asked; what visitors met says more. */
function byChecks({ checks }: Backend): Sample["verdict"] {
  return checks === undefined ? undefined : checks === "down" ? "bad" : "good";
}

async function noteSample(
  db: Queries,
  place: {
    readonly deploymentSiteId: number;
    readonly instanceId: string;
    readonly domainId: number;
  },
  { kind, verdict, requests, badRequests }: Sample,
  known: { readonly good_since: string | null } | undefined,
  at: string,
): Promise<void> {
  const bad = { last_bad: at, good_since: null, requests, bad_requests: badRequests };
  if (known === undefined) {
    if (verdict !== "bad") return;
    const { deploymentSiteId: deployment_site_id, instanceId: instance_id } = place;
    const key = { deployment_site_id, instance_id, domain_id: place.domainId, kind };
    await db
      .insertInto("backend_troubles")
      .values({ ...key, since: at, ...bad })
      .execute();
    return;
  }
  const wasGood = known.good_since !== null;
  if (verdict === undefined || (verdict === "good" && wasGood)) return;
  // Behind a good sample trouble begins anew: only what lasts is an alert. One that fires already goes on, for it asks no more since when.
  const worse = wasGood ? { ...bad, since: at } : bad;
  await db
    .updateTable("backend_troubles")
    .set(verdict === "bad" ? worse : { good_since: at })
    .where("deployment_site_id", "=", place.deploymentSiteId)
    .where("instance_id", "=", place.instanceId)
    .where("domain_id", "=", place.domainId)
    .where("kind", "=", kind)
    .execute();
}

type TrafficSums = Omit<TableRow<"traffic_days">, "domain_id" | "day">;

function trafficSince(now: Domain, before: Domain | undefined): TrafficSums {
  const of = (name: keyof Traffic): number =>
    since(now.traffic?.[name] ?? 0, before?.traffic?.[name]);
  const origin_requests = since(now.backend.requests, before?.backend.requests);
  const origin_errors = since(now.backend.errors, before?.backend.errors);
  const [requests, hits, blocked, bytes] = [of("requests"), of("hits"), of("blocked"), of("bytes")];
  return { requests, hits, blocked, bytes, origin_requests, origin_errors };
}

function addSums(sums: Map<number, TrafficSums>, domainId: number, more: TrafficSums): void {
  if (Object.values(more).every((sum) => sum === 0)) return;
  const had = sums.get(domainId);
  sums.set(domainId, {
    requests: more.requests + (had?.requests ?? 0),
    hits: more.hits + (had?.hits ?? 0),
    blocked: more.blocked + (had?.blocked ?? 0),
    bytes: more.bytes + (had?.bytes ?? 0),
    origin_requests: more.origin_requests + (had?.origin_requests ?? 0),
    origin_errors: more.origin_errors + (had?.origin_errors ?? 0),
  });
}

/** In the order of domains: of two that wait for each other one would be refused. */
async function addTraffic(
  db: Queries,
  day: string,
  sums: ReadonlyMap<number, TrafficSums>,
): Promise<void> {
  const rows = [...sums]
    .toSorted(([one], [other]) => one - other)
    .map(([domain_id, own]) => ({ domain_id, day, ...own }));
  for (const part of parts(rows))
    await db
      .insertInto("traffic_days")
      .values(part)
      .onConflict((conflict) =>
        conflict.columns(["domain_id", "day"]).doUpdateSet((row) => ({
          requests: row("traffic_days.requests", "+", row.ref("excluded.requests")),
          hits: row("traffic_days.hits", "+", row.ref("excluded.hits")),
          blocked: row("traffic_days.blocked", "+", row.ref("excluded.blocked")),
          bytes: row("traffic_days.bytes", "+", row.ref("excluded.bytes")),
          origin_requests: row(
            "traffic_days.origin_requests",
            "+",
            row.ref("excluded.origin_requests"),
          ),
          origin_errors: row("traffic_days.origin_errors", "+", row.ref("excluded.origin_errors")),
        })),
      )
      .execute();
}
