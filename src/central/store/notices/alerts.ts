// Alerts: which backends are in trouble for long enough, which of them were told already, and where a customer is to be told.

import type { BackendTrouble } from "../../../core/serving/backend-trouble.ts";
import { chatRecipient, chatChannels, emailChannels } from "./monitor-channels.ts";
import type { Store } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";
import type { Reach } from "../people/tokens.ts";

export type Firing = {
  readonly id: number;
  readonly customerId: number;
  readonly type: string;
  readonly domainId: number;
  readonly domain: string;
  readonly edge: string;
  readonly deploymentSiteId: number | null;
  readonly whenFired: string;
};

/**
 * The time without news after which an alert is forgotten: whoever asks nothing of a backend has no trouble
 * with it.
 */
const forgottenMs = 86_400_000;

/** Troubles that are over go: good for long enough, not heard of, of a domain that is not served there any more. */
export async function endTroubles({ tx, at }: Work, goodForMs: number): Promise<void> {
  const before = (ms: number): string => new Date(Date.parse(at) - ms).toISOString();
  await tx
    .deleteFrom("backend_troubles")
    .where((where) =>
      where.or([
        where("good_since", "<=", before(goodForMs)),
        where("last_bad", "<=", before(forgottenMs)),
        where.not(
          where.exists(
            where
              .selectFrom("domain_links")
              .select("domain_links.domain_id")
              .whereRef("domain_links.domain_id", "=", "backend_troubles.domain_id")
              .whereRef(
                "domain_links.deployment_site_id",
                "=",
                "backend_troubles.deployment_site_id",
              ),
          ),
        ),
      ]),
    )
    .execute();
}

export async function troubles({ tx }: Work): Promise<readonly BackendTrouble[]> {
  const rows = await tx
    .selectFrom("backend_troubles")
    .innerJoin("domains", "domains.id", "backend_troubles.domain_id")
    .innerJoin("deployment_sites", "deployment_sites.id", "backend_troubles.deployment_site_id")
    .innerJoin("instances", (join) =>
      join
        .onRef("instances.deployment_site_id", "=", "backend_troubles.deployment_site_id")
        .onRef("instances.instance_id", "=", "backend_troubles.instance_id"),
    )
    .select([
      "backend_troubles.kind",
      "domains.customer_id as customerId",
      "domains.id as domainId",
      "domains.name as domain",
      "deployment_sites.id as deploymentSiteId",
      "deployment_sites.name16",
      "instances.edge",
      "backend_troubles.since",
      "backend_troubles.last_bad as lastBad",
      "backend_troubles.good_since",
      "backend_troubles.requests",
      "backend_troubles.bad_requests as badRequests",
    ])
    .orderBy("domains.customer_id")
    .orderBy("domains.name")
    .execute();
  return rows.map(({ edge, name16, good_since, ...row }) => ({
    ...row,
    edge: serverName(edge) || name16,
    isGoodNow: good_since !== null,
  }));
}

function serverName(edge: string | null): string {
  // As `saveHello` writes it.
  return edge === null ? "" : (JSON.parse(edge) as { server_name: string }).server_name;
}

export async function firingAlerts({ tx }: Work): Promise<readonly Firing[]> {
  return tx
    .selectFrom("alerts")
    .innerJoin("domains", "domains.id", "alerts.domain_id")
    .select([
      "alerts.id",
      "alerts.customer_id as customerId",
      "alerts.type",
      "alerts.domain_id as domainId",
      "domains.name as domain",
      "alerts.edge",
      "alerts.deployment_site_id as deploymentSiteId",
      "alerts.when_fired as whenFired",
    ])
    .orderBy("alerts.id")
    .execute();
}

export async function fireAlert(
  { tx, at }: Work,
  alert: Pick<Firing, "customerId" | "type" | "domainId" | "edge" | "deploymentSiteId">,
): Promise<void> {
  const { customerId: customer_id, type, domainId: domain_id, edge, deploymentSiteId } = alert;
  await tx
    .insertInto("alerts")
    .values({
      customer_id,
      type,
      domain_id,
      edge,
      deployment_site_id: deploymentSiteId,
      when_fired: at,
    })
    .execute();
}

/** Ends an alert; it stays to be looked at. */
export async function resolveAlert({ tx, at }: Work, id: number): Promise<void> {
  const { id: _id, ...fired } = await tx
    .deleteFrom("alerts")
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  await tx
    .insertInto("ended_alerts")
    .values({ ...fired, id, when_ended: at })
    .execute();
}

/** The time for which alerts that ended are kept. */
export const endedAlertsMs = 90 * 86_400_000;

/** Forgets alerts that ended long ago. Returns how many. */
export async function dropEndedAlerts(store: Store, now: Date): Promise<bigint> {
  const before = new Date(now.getTime() - endedAlertsMs).toISOString();
  const { numDeletedRows } = await store
    .deleteFrom("ended_alerts")
    .where("when_ended", "<", before)
    .executeTakeFirst();
  return numDeletedRows;
}

export type AlertTold = Omit<Firing, "customerId" | "domainId"> & {
  /** Null: it goes on. */
  readonly whenEnded: string | null;
};

/** Returns what a caller reaches of its alerts: those that fire, and those that ended since a time; the newest first. */
export async function toldAlerts(
  { tx }: Work,
  { customerId, domains }: Reach,
  since: string,
  limit: number,
): Promise<readonly AlertTold[]> {
  const columns = ["type", "edge", "when_fired as whenFired", "domains.name as domain"] as const;
  let firing = tx
    .selectFrom("alerts as alert")
    .innerJoin("domains", "domains.id", "alert.domain_id")
    .select(["alert.id", "alert.deployment_site_id as deploymentSiteId", ...columns])
    .where("alert.customer_id", "=", customerId);
  let ended = tx
    .selectFrom("ended_alerts as alert")
    .innerJoin("domains", "domains.id", "alert.domain_id")
    .select(["alert.id", "alert.deployment_site_id as deploymentSiteId", ...columns])
    .select("alert.when_ended as whenEnded")
    .where("alert.customer_id", "=", customerId)
    .where("alert.when_ended", ">=", since);
  if (domains !== null) {
    firing = firing.where("domains.name", "in", domains);
    ended = ended.where("domains.name", "in", domains);
  }
  const now = await firing.orderBy("alert.id", "desc").limit(limit).execute();
  const past = await ended
    .orderBy("alert.when_ended", "desc")
    .orderBy("alert.id", "desc")
    .limit(limit)
    .execute();
  return [...now.map((one) => ({ ...one, whenEnded: null })), ...past]
    .toSorted((one, other) => other.id - one.id)
    .slice(0, limit);
}

export type AlertTargets = {
  readonly chats: readonly {
    readonly recipient: string;
    readonly uid: string;
    readonly hookUrl: string;
  }[];
  /** Names of the customer's e-mail channels. Without one no alert is mailed. */
  readonly mailUids: readonly string[];
};

export async function alertTargets(work: Work, customerId: number): Promise<AlertTargets> {
  const all = { after: 0, limit: 1_000 };
  const chats = await chatChannels(work).list(customerId, all);
  const mails = await emailChannels(work).list(customerId, all);
  return {
    chats: chats.map(({ id, monitor_uid: uid, chat_hook_url: hookUrl }) => ({
      recipient: chatRecipient(id),
      uid,
      hookUrl,
    })),
    mailUids: mails.map(({ monitor_uid: uid }) => uid),
  };
}
