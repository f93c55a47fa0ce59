// Credentials of agents: the sealed secrets of a deployment site, and bearer tokens, of which only the SHA-256 is kept.

import type { Sealer } from "../../../base/seal.ts";
import type { Name16 } from "../../../core/ids.ts";
import type { Queries } from "../engine/database.ts";
import { secretContext } from "./site-secret.ts";

export type SiteSecrets = {
  readonly deploymentSiteId: number;
  readonly current: string;
  /** The secrets of before that are accepted until their grace ends, the newest first. */
  readonly before: readonly { readonly secret: string; readonly graceEnds: string }[];
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
    .select(["id", "secret_sealed", "when_deleted"])
    .where("name16", "=", name16)
    .executeTakeFirst();
  if (site === undefined) return undefined;
  const before = await db
    .selectFrom("old_secrets")
    .select(["secret_sealed", "until"])
    .where("deployment_site_id", "=", site.id)
    .where("until", ">", now.toISOString())
    .orderBy("id", "desc")
    .execute();
  const opened = (sealed: string): string => sealer.open(sealed, secretContext(name16));
  return {
    deploymentSiteId: site.id,
    current: opened(site.secret_sealed),
    before: before.map(({ secret_sealed: sealed, until }) => ({
      secret: opened(sealed),
      graceEnds: until,
    })),
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

export type TokenHolder = {
  readonly deploymentSiteId: number;
  readonly deleted: boolean;
  /** How often the site's channels were ordered to be closed before this token was given. */
  readonly shutCount: number;
};

export async function agentTokenHolder(
  db: Queries,
  digest: string,
  now: Date,
): Promise<TokenHolder | undefined> {
  const row = await db
    .selectFrom("agent_tokens")
    .innerJoin("deployment_sites", "deployment_sites.id", "agent_tokens.deployment_site_id")
    .select(["deployment_site_id", "when_deleted", "shut_count"])
    .where("digest", "=", digest)
    .where("expires_at", ">", now.toISOString())
    .executeTakeFirst();
  return row === undefined
    ? undefined
    : {
        deploymentSiteId: row.deployment_site_id,
        deleted: row.when_deleted !== null,
        shutCount: row.shut_count,
      };
}
