// What a report of an agent says of domains since the report before: traffic is summed by day, backends in trouble are noted.
//
// Agents count since their start, so the report before, which lies with the instance, is what is subtracted; a count that fell began anew. A report that
// arrives twice adds nothing, and what one that was lost said is in the next. In ordinary times nothing is written but a day's sums.

import { decodeReport, type Report, type Traffic } from "../../../wire/channel.ts";
import type { Queries } from "../engine/database.ts";
import type { StoreTables } from "../engine/schema.ts";
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

/**
 * Notes the domains of a report in a transaction, before the report replaces the one before. Nothing is kept
 * of domains that are not linked to the site.
 */
export async function noteDomains(
  db: Queries,
  deploymentSiteId: number,
  report: Report,
  at: string,
  rules: AlertRules = usualRules,
): Promise<void> {
  if (report.domains.length === 0) return;
  const place = { deploymentSiteId, instanceId: report.instance_id };
  const before = await lastReport(db, place);
  const linked = await db
    .selectFrom("domain_links")
    .innerJoin("domains", "domains.id", "domain_links.domain_id")
    .select(["domains.id", "domains.name"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .execute();
  const idOf = new Map(linked.map(({ id, name }) => [name, id]));
  const earlier = new Map(before?.domains.map((one) => [one.domain, one]));
  const troubles = await db
    .selectFrom("backend_troubles")
    .select(["domain_id", "kind", "good_since"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("instance_id", "=", report.instance_id)
    .execute();
  for (const domain of report.domains) {
    const id = idOf.get(domain.domain);
    if (id === undefined) continue;
    const last = earlier.get(domain.domain);
    await addTraffic(db, id, at.slice(0, 10), domain, last);
    if (domain.variants !== undefined)
      await addVariants(db, { ...place, domainId: id }, domain.variants, at);
    for (const sample of samplesOf(domain.backend, last?.backend, rules)) {
      const known = troubles.find((row) => row.domain_id === id && row.kind === sample.kind);
      await noteSample(db, { ...place, domainId: id }, sample, known, at);
    }
  }
}

async function lastReport(
  db: Queries,
  place: { readonly deploymentSiteId: number; readonly instanceId: string },
): Promise<Report | undefined> {
  const row = await db
    .selectFrom("instances")
    .select("last_report")
    .where("deployment_site_id", "=", place.deploymentSiteId)
    .where("instance_id", "=", place.instanceId)
    .executeTakeFirst();
  if (row?.last_report === null || row?.last_report === undefined) return undefined;
  const decoded = decodeReport(JSON.parse(row.last_report));
  return decoded.ok ? decoded.value : undefined;
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

async function addTraffic(
  db: Queries,
  domain_id: number,
  day: string,
  now: Domain,
  before: Domain | undefined,
): Promise<void> {
  const of = (name: keyof Traffic): number =>
    since(now.traffic?.[name] ?? 0, before?.traffic?.[name]);
  const origin_requests = since(now.backend.requests, before?.backend.requests);
  const origin_errors = since(now.backend.errors, before?.backend.errors);
  const [requests, hits, blocked, bytes] = [of("requests"), of("hits"), of("blocked"), of("bytes")];
  const sums = { requests, hits, blocked, bytes, origin_requests, origin_errors };
  if (Object.values(sums).every((sum) => sum === 0)) return;
  await db
    .insertInto("traffic_days")
    .values({ domain_id, day, ...sums })
    .onConflict((conflict) =>
      conflict.columns(["domain_id", "day"]).doUpdateSet((row) => ({
        requests: row("traffic_days.requests", "+", requests),
        hits: row("traffic_days.hits", "+", hits),
        blocked: row("traffic_days.blocked", "+", blocked),
        bytes: row("traffic_days.bytes", "+", bytes),
        origin_requests: row("traffic_days.origin_requests", "+", origin_requests),
        origin_errors: row("traffic_days.origin_errors", "+", origin_errors),
      })),
    )
    .execute();
}
