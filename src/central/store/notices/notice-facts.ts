// What reports tell of a customer: traffic, unreviewed bots, certificates, deployments and the releases that they run.

import { sql } from "kysely";
import { isRenewalOverdue } from "../../../core/acme/renewal.ts";
import type { BotClass } from "../../../core/serving/verdict.ts";
import { isMailAddress, mailAddressKey } from "../../../core/outgoing.ts";
import { isBehind, oldestRelease } from "../../../core/package-version.ts";
import type {
  ReportedBots,
  ReportedDeployment,
  ReportedTraffic,
} from "../../../core/report-facts.ts";
import { decodeReport } from "../../../wire/channel.ts";
import { accessInForce } from "../../../wire/customer/bot-classes.ts";
import { storedAccess } from "../journal/site-state.ts";
import { newestPackage } from "../packages/packages.ts";
import type { Work } from "../engine/work.ts";

/** Agents report each 30 s. */
const besideMs = 600_000;

export type Days = { readonly from: string; readonly until: string };

/** Every domain of the customer, the most requests first. */
export async function trafficBetween(
  { tx }: Work,
  customerId: number,
  { from, until }: Days,
): Promise<readonly ReportedTraffic[]> {
  const sum = (column: string) =>
    sql<number>`coalesce(sum(${sql.ref(`traffic_days.${column}`)}), 0)`;
  return tx
    .selectFrom("domains")
    .leftJoin("traffic_days", (join) =>
      join
        .onRef("traffic_days.domain_id", "=", "domains.id")
        .on("traffic_days.day", ">=", from)
        .on("traffic_days.day", "<=", until),
    )
    .select([
      "domains.name as domain",
      sum("requests").as("requests"),
      sum("hits").as("hits"),
      sum("blocked").as("blocked"),
      sum("bytes").as("bytes"),
      sum("origin_requests").as("originRequests"),
      sum("origin_errors").as("originErrors"),
    ])
    .where("domains.customer_id", "=", customerId)
    .groupBy(["domains.id", "domains.name"])
    .orderBy("requests", "desc")
    .orderBy("domains.name")
    .execute();
}

export async function clearsOf(
  { tx }: Work,
  customerId: number,
  { from, until }: Days,
): Promise<number> {
  const { count } = await tx
    .selectFrom("clears")
    .innerJoin("domains", "domains.id", "clears.domain_id")
    .select((select) => select.fn.countAll<number>().as("count"))
    .where("domains.customer_id", "=", customerId)
    .where("clears.when_created", ">=", from)
    .where("clears.when_created", "<", `${until}T24`)
    .executeTakeFirstOrThrow();
  return count;
}

export type BotDomain = ReportedBots & {
  /** Whether the policy in force lets them in. */
  readonly canAccess: boolean;
  /** The classes of bots of which that policy says the contrary. */
  readonly otherwise: readonly BotClass[];
};

/** Domains that unreviewed bots visited within the days. */
export async function botsOf(
  { tx }: Work,
  customerId: number,
  { from, until }: Days,
): Promise<readonly BotDomain[]> {
  const rows = await tx
    .selectFrom("unreviewed_bots")
    .innerJoin("domains", "domains.id", "unreviewed_bots.domain_id")
    .select((select) => [
      "domains.name as domain",
      "unreviewed_bots.name",
      select.fn.max("unreviewed_bots.description").as("description"),
      sql<number>`sum(unreviewed_bots.requests)`.as("requests"),
    ])
    .where("domains.customer_id", "=", customerId)
    .where("unreviewed_bots.day", ">=", from)
    .where("unreviewed_bots.day", "<=", until)
    .groupBy(["domains.name", "unreviewed_bots.name"])
    .orderBy("domains.name")
    .orderBy("requests", "desc")
    .orderBy("unreviewed_bots.name")
    .execute();
  const { general, perDomain, classes } = await storedAccess(tx, customerId);
  return [...Map.groupBy(rows, ({ domain }) => domain)].map(([domain, bots]) => {
    const own = perDomain.get(domain);
    const others = (own ?? general) === 1; // Nothing said means: blocked.
    const said = own === undefined ? classes?.general : classes?.perDomain.get(domain);
    const { access: canAccess, otherwise } = accessInForce(others, said ?? {});
    return {
      domain,
      canAccess,
      otherwise,
      bots: bots.map(({ name, description, requests }) => ({ name, description, requests })),
    };
  });
}

export type DeploymentState = ReportedDeployment & {
  readonly id: number;
  /**
   * The certificates in force there that expire soon, as its agent says; as they were uploaded if it does not
   * say. Those that central ordered and renews are left out while that works.
   */
  readonly certificates: readonly {
    readonly names: readonly string[];
    readonly notAfter: string;
  }[];
};

export async function deploymentsOf(
  work: Work,
  customerId: number,
): Promise<{ readonly newest: string | null; readonly deployments: readonly DeploymentState[] }> {
  const { tx } = work;
  const sites = await tx
    .selectFrom("deployment_sites")
    .select(["id", "name16"])
    .where("customer_id", "=", customerId)
    .where("when_deleted", "is", null)
    .orderBy("id")
    .execute();
  const newest = (await newestPackage(tx))?.version ?? null;
  const deployments: DeploymentState[] = [];
  for (const { id, name16 } of sites) {
    const instances = await tx
      .selectFrom("instances")
      .select(["agent_version", "last_seen", "last_report"])
      .where("deployment_site_id", "=", id)
      .orderBy("last_seen", "desc")
      .execute();
    const [instance] = instances;
    const tags = await tx
      .selectFrom("deployment_site_tags")
      .select("tag")
      .where("deployment_site_id", "=", id)
      .orderBy("position")
      .execute();
    // A deployment is behind while one of its instances is.
    const releases = beside(instances).map(({ agent_version: text }) => text);
    const version = oldestRelease(releases.filter((text) => text !== "")) ?? null;
    deployments.push({
      id,
      name16,
      tags: tags.map(({ tag }) => tag),
      version,
      lastSeen: instance?.last_seen ?? null,
      isBehind: isBehind(version, newest) ?? false,
      certificates: await certificatesOf(work, id, beside(instances)),
    });
  }
  return { newest, deployments };
}

/** The instances that report beside the one seen last, which comes first. */
function beside<T extends { readonly last_seen: string }>(instances: readonly T[]): readonly T[] {
  const latest = Date.parse(instances[0]?.last_seen ?? "");
  return instances.filter(({ last_seen: seen }) => latest - Date.parse(seen) <= besideMs);
}

/**
 * Returns the certificates that any of them serves: a host that could not install the newest serves the one
 * before. If none says, they are as they were uploaded.
 */
async function certificatesOf(
  work: Work,
  siteId: number,
  instances: readonly { readonly last_report: string | null }[],
): Promise<DeploymentState["certificates"]> {
  const lists = instances.flatMap(({ last_report: json }) => {
    const decoded = json === null ? undefined : decodeReport(JSON.parse(json));
    const certificates = decoded?.ok === true ? decoded.value.certificates : undefined;
    return certificates === undefined ? [] : [certificates];
  });
  const renewed = await renewedByCentral(work, siteId);
  const isTold = (names: readonly string[], notAfter: string): boolean =>
    !renewed.has(`${names.join(" ")} ${Date.parse(notAfter)}`);
  if (lists.length > 0) {
    const distinct = new Map(lists.flat().map((one) => [JSON.stringify(one), one]));
    return [...distinct.values()]
      .map(({ names, not_after: notAfter }) => ({ names, notAfter }))
      .filter(({ names, notAfter }) => isTold(names, notAfter));
  }
  const rows = await work.tx
    .selectFrom("certificates")
    .select(["names", "not_after"])
    .where("deployment_site_id", "=", siteId)
    .orderBy("not_after")
    .execute();
  return rows
    .map(({ names, not_after: notAfter }) => ({
      names: JSON.parse(names) as string[], // As certificates.ts writes them.
      notAfter,
    }))
    .filter(({ names, notAfter }) => isTold(names, notAfter));
}

/** The certificates of a site that central will renew, by names and end. One whose renewal is overdue is not among them. */
async function renewedByCentral({ tx, at }: Work, siteId: number): Promise<ReadonlySet<string>> {
  const rows = await tx
    .selectFrom("certificates")
    .innerJoin("acme_orders", "acme_orders.id", "certificates.acme_order_id")
    .select(["certificates.names", "certificates.not_after as notAfter"])
    .select("renew_at as renewAt")
    .where("certificates.deployment_site_id", "=", siteId)
    .execute();
  const isOverdue = (renewAt: string | null, notAfter: string): boolean =>
    renewAt !== null && isRenewalOverdue(Date.parse(renewAt), Date.parse(notAfter), Date.parse(at));
  const kept = rows.filter(({ renewAt, notAfter }) => !isOverdue(renewAt, notAfter));
  return new Set(
    kept.map(({ names, notAfter }) => {
      const all = JSON.parse(names) as string[]; // As certificates.ts writes them.
      return `${all.join(" ")} ${Date.parse(notAfter)}`;
    }),
  );
}

/** Addresses of the customer's users, each once. */
export async function userAddresses({ tx }: Work, customerId: number): Promise<readonly string[]> {
  const rows = await tx
    .selectFrom("users")
    .select("email")
    .where("customer_id", "=", customerId)
    .orderBy("id")
    .execute();
  const known = new Map<string, string>();
  for (const { email } of rows)
    if (isMailAddress(email) && !known.has(mailAddressKey(email)))
      known.set(mailAddressKey(email), email);
  return [...known.values()];
}
