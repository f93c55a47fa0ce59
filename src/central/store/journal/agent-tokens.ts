// Credentials of agents: the sealed secrets of a deployment site, and bearer tokens, of which only the SHA-256 is kept.

import type { Sealer } from "../../../base/seal.ts";
import type { Name16 } from "../../../core/ids.ts";
import type { Queries } from "../engine/database.ts";
import { secretContext } from "./site-secret.ts";

export type SiteSecrets = {
  readonly deploymentSiteId: number;
  /** The secrets that are accepted now: the current one, and behind it the one before within its grace. */
  readonly secrets: readonly string[];
  /** When the grace of the secret before ends; undefined: there is none. */
  readonly graceEnds: string | undefined;
  readonly deleted: boolean;
};

/** A deleted site is found too: its agent is told so when it has the right secret. */
export async function siteSecrets(
  db: Queries,
  sealer: Sealer,
  name16: Name16,
  now: Date,
): Promise<SiteSecrets | undefined> {
  const site = await db
    .selectFrom("deployment_sites")
    .select(["id", "secret_sealed", "secret_old_sealed", "secret_old_until", "when_deleted"])
    .where("name16", "=", name16)
    .executeTakeFirst();
  if (site === undefined) return undefined;
  const { secret_sealed, secret_old_sealed: old, secret_old_until: until } = site;
  const isInGrace = old !== null && until !== null && Date.parse(until) > now.getTime();
  const sealed = isInGrace ? [secret_sealed, old] : [secret_sealed];
  return {
    deploymentSiteId: site.id,
    graceEnds: isInGrace ? until : undefined,
    secrets: sealed.map((text) => sealer.open(text, secretContext(name16))),
    deleted: site.when_deleted !== null,
  };
}

export async function saveAgentToken(
  db: Queries,
  deploymentSiteId: number,
  digest: string,
  expiresAt: Date,
): Promise<void> {
  await db
    .insertInto("agent_tokens")
    .values({
      digest,
      deployment_site_id: deploymentSiteId,
      expires_at: expiresAt.toISOString(),
    })
    .execute();
}

export async function agentTokenHolder(
  db: Queries,
  digest: string,
  now: Date,
): Promise<{ readonly deploymentSiteId: number; readonly deleted: boolean } | undefined> {
  const row = await db
    .selectFrom("agent_tokens")
    .innerJoin("deployment_sites", "deployment_sites.id", "agent_tokens.deployment_site_id")
    .select(["deployment_site_id", "when_deleted"])
    .where("digest", "=", digest)
    .where("expires_at", ">", now.toISOString())
    .executeTakeFirst();
  return row === undefined
    ? undefined
    : { deploymentSiteId: row.deployment_site_id, deleted: row.when_deleted !== null };
}
