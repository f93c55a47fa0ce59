// Imports of views and devlove from a deployment: asked for here, ended by the agent's receipt (import-completion.ts).

import { sitesOfDomain } from "../journal/links.ts";
import { append, type Work } from "../engine/work.ts";

export type ImportRow = {
  readonly id: string;
  readonly state: "started" | "done" | "failed";
  readonly error: string | null;
  readonly viewsetId: number | null;
  readonly files: number | null;
  readonly bytes: number | null;
  readonly whenStarted: string;
  readonly whenEnded: string | null;
};

export type ImportTarget = {
  readonly domainId: number;
  readonly domain: string;
  readonly deploymentSiteId: number;
  readonly viewsetName: string;
};

/** A name is taken by a version of the domain, and by an import that has not ended. */
export async function startImport(
  work: Work,
  target: ImportTarget,
): Promise<"started" | "not-linked" | "name-taken" | "running"> {
  const { tx, at } = work;
  const { domainId, domain, deploymentSiteId, viewsetName } = target;
  // Its agent would refuse it, perhaps after weeks.
  if (!(await sitesOfDomain(work, domainId)).includes(deploymentSiteId)) return "not-linked";
  const version = await tx
    .selectFrom("viewsets")
    .select("id")
    .where("domain_id", "=", domainId)
    .where("name", "=", viewsetName)
    .executeTakeFirst();
  if (version !== undefined) return "name-taken";
  const running = await tx
    .selectFrom("imports")
    .select("id")
    .where("domain_id", "=", domainId)
    .where("viewset_name", "=", viewsetName)
    .where("state", "=", "started")
    .executeTakeFirst();
  if (running !== undefined) return "running";
  const id = work.randomHex(8);
  await tx
    .insertInto("imports")
    .values({
      id,
      domain_id: domainId,
      deployment_site_id: deploymentSiteId,
      viewset_name: viewsetName,
      state: "started",
      error: null,
      without_site: null,
      viewset_id: null,
      files: null,
      bytes: null,
      when_started: at,
      when_ended: null,
    })
    .execute();
  await append(work, [deploymentSiteId], "viewset.import", { import_id: id, domain });
  return "started";
}

/** The last one of that name. */
export async function findImport(
  { tx }: Work,
  target: Omit<ImportTarget, "domain">,
): Promise<ImportRow | undefined> {
  return tx
    .selectFrom("imports")
    .select([
      "id",
      "state",
      "error",
      "viewset_id as viewsetId",
      "files",
      "bytes",
      "when_started as whenStarted",
      "when_ended as whenEnded",
    ])
    .where("domain_id", "=", target.domainId)
    .where("deployment_site_id", "=", target.deploymentSiteId)
    .where("viewset_name", "=", target.viewsetName)
    .orderBy("when_started", "desc")
    .executeTakeFirst();
}
