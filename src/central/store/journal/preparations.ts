// Asking the agents of a domain's sites to prepare a version, for an activation on all of them or on none
// (core/serving/fleet-activation.ts), and giving that up.

import { sql } from "kysely";
import { holdSecondsMax } from "../../../wire/journal.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Queries } from "../engine/database.ts";
import { insertListed } from "../engine/listed.ts";
import { append, type Work } from "../engine/work.ts";

/** An activation that is not decided yet. */
export type Preparation = {
  readonly id: number;
  readonly domainId: number;
  readonly domain: string;
  readonly customerId: number;
  readonly viewsetId: number;
  readonly viewsetName: string;
  readonly manifest: Sha256;
  /** ISO 8601. */
  readonly deadline: string;
};

/** The time for which agents hold what they prepared beyond the deadline, until they hear of the decision. */
const holdBeyondS = 300;

/** Returns the activations that are not decided yet: of one domain, of which there is one at most, or of all. */
export async function openPreparations(
  db: Queries,
  domainId?: number,
): Promise<readonly Preparation[]> {
  return db
    .selectFrom("fleet_activations")
    .innerJoin("domains", "domains.id", "fleet_activations.domain_id")
    .innerJoin("viewsets", "viewsets.id", "fleet_activations.viewset_id")
    .select([
      "fleet_activations.id",
      "fleet_activations.domain_id as domainId",
      "domains.name as domain",
      "domains.customer_id as customerId",
      "viewset_id as viewsetId",
      "viewsets.name as viewsetName",
      "fleet_activations.manifest_blob as manifest",
      "deadline",
    ])
    .where("fleet_activations.state", "=", "preparing")
    .$if(domainId !== undefined, (query) =>
      query.where("fleet_activations.domain_id", "=", domainId ?? 0),
    )
    .orderBy("fleet_activations.id")
    .execute();
}

/** Asks the sites, or asks them again: their votes are the receipts of the latest entry. */
export async function askToPrepare(
  work: Work,
  preparation: Preparation,
  siteIds: readonly number[],
): Promise<void> {
  const { id, domain, viewsetId, viewsetName, manifest, deadline } = preparation;
  const leftS = Math.max(0, Math.ceil((Date.parse(deadline) - Date.parse(work.at)) / 1_000));
  const entries = await append(work, siteIds, "viewset.prepare", {
    domain,
    viewset_id: viewsetId,
    viewset_name: viewsetName,
    manifest,
    activation_id: id,
    hold_s: Math.min(leftS + holdBeyondS, holdSecondsMax),
  });
  await insertListed(
    work.tx,
    "fleet_activation_sites",
    { activation_id: "integer", deployment_site_id: "integer", seq: "bigint" },
    entries.map(({ deploymentSiteId, seq }) => {
      return { activation_id: id, deployment_site_id: deploymentSiteId, seq };
    }),
    sql`ON CONFLICT (activation_id, deployment_site_id) DO UPDATE SET seq = excluded.seq`,
  );
}

/** Asks sites that a domain was linked to while a version of it is prepared. */
export async function askNewSites(
  work: Work,
  domainId: number,
  siteIds: readonly number[],
): Promise<void> {
  for (const preparation of await openPreparations(work.tx, domainId))
    await askToPrepare(work, preparation, siteIds);
}

/** Ends an activation without a decision: nothing changes anywhere, and the agents let go what they hold. */
export async function giveUpPreparation(
  work: Work,
  { id, domain }: Pick<Preparation, "id" | "domain">,
  reason: string,
): Promise<void> {
  await work.tx
    .updateTable("fleet_activations")
    .set({ state: "aborted", reason, when_ended: work.at })
    .where("id", "=", id)
    .execute();
  const asked = await work.tx
    .selectFrom("fleet_activation_sites")
    .innerJoin("fleet_activations", "fleet_activations.id", "activation_id")
    .innerJoin("domain_links", (join) =>
      join
        .onRef("domain_links.domain_id", "=", "fleet_activations.domain_id")
        .onRef("domain_links.deployment_site_id", "=", "fleet_activation_sites.deployment_site_id"),
    )
    .select("fleet_activation_sites.deployment_site_id as siteId")
    .where("activation_id", "=", id)
    .execute();
  const siteIds = asked.map(({ siteId }) => siteId);
  await append(work, siteIds, "viewset.withdrawn", { domain, activation_id: id });
}

/** Gives up what is prepared of a domain, because something else came between. */
export async function giveUpPreparations(
  work: Work,
  domainId: number,
  reason: string,
): Promise<void> {
  for (const preparation of await openPreparations(work.tx, domainId))
    await giveUpPreparation(work, preparation, reason);
}
