// Viewset versions of a domain: what it served, serves and could serve, and the activation of one.

import type { Sha256 } from "../../../core/ids.ts";
import {
  activationsShown,
  type ActivationState,
  type ViewsetVersion,
} from "../../../wire/customer/viewset.ts";
import { announceViewset, sitesOfDomain } from "../journal/links.ts";
import { holdBlobs } from "./blob-rows.ts";
import { fleetRecords, isOfFleet } from "./fleet-records.ts";
import { giveUpPreparations } from "../journal/preparations.ts";
import { isAbsent, readProofs } from "../journal/proof.ts";
import type { Tx } from "../engine/database.ts";
import type { PageRange, Work } from "../engine/work.ts";

/** The parts of which a manifest is composed. */
export type ActivationBasis = {
  readonly viewsetId: number;
  readonly schema: string;
  readonly content: string;
  /** Manifest blob with the views; null: the host's own directory. */
  readonly filesBlob: string | null;
};

export async function versionNamed(
  work: Work,
  domainId: number,
  name: string,
): Promise<number | undefined> {
  const row = await work.tx
    .selectFrom("viewsets")
    .select("id")
    .where("domain_id", "=", domainId)
    .where("name", "=", name)
    .executeTakeFirst();
  return row?.id;
}

export async function listVersions(
  work: Work,
  domainId: number,
  { after, limit, isNewestFirst = false }: PageRange,
): Promise<readonly ViewsetVersion[]> {
  const { active_viewset_id: activeId } = await work.tx
    .selectFrom("domains")
    .select("active_viewset_id")
    .where("id", "=", domainId)
    .executeTakeFirstOrThrow();
  const rows = await work.tx
    .selectFrom("viewsets")
    .select(["id", "name", "comment", "when_created", "when_obsoleted"])
    .where("domain_id", "=", domainId)
    .$if(!isNewestFirst, (query) => query.where("id", ">", after).orderBy("id"))
    .$if(isNewestFirst, (query) => query.orderBy("id", "desc"))
    .$if(isNewestFirst && after > 0, (query) => query.where("id", "<", after))
    .limit(limit)
    .execute();
  const activations = await activationsOf(
    work,
    rows.map(({ id }) => id),
  );
  const activityOf = new Map(
    rows.map(({ id }) => [
      id,
      { isActive: id === activeId, activations: activations.get(id) ?? [] },
    ]),
  );
  const fleets = await fleetRecords(work, domainId, activityOf);
  const isForAll = activeId !== null && (await isOfFleet(work, activeId));
  const versions: ViewsetVersion[] = [];
  for (const row of rows) {
    const deployments = row.id === activeId ? await activatedAt(work, domainId, row.id) : [];
    const fleet = fleets.get(row.id);
    versions.push({
      ...row,
      activations: activations.get(row.id) ?? [],
      is_active: row.id === activeId,
      activation: row.id === activeId ? activationOf(deployments, isForAll) : null,
      deployments,
      ...(fleet !== undefined && { fleet }),
    });
  }
  return versions;
}

/** `manifest` was composed of `basis`, which must still be what is stored. */
export async function activateVersion(
  work: Work,
  domainId: number,
  basis: ActivationBasis,
  manifest: Sha256,
): Promise<"activated" | "changed"> {
  if (!(await isBasis(work.tx, domainId, basis))) return "changed";
  await giveUpPreparations(work, domainId, "another activation of the domain came between");
  await makeActive(work, domainId, basis.viewsetId, manifest);
  return "activated";
}

/** Whether a version still has the parts of which its manifest was composed. */
export async function isBasis(tx: Tx, domainId: number, basis: ActivationBasis): Promise<boolean> {
  const stored = await readBasis(tx, domainId, basis.viewsetId);
  return (
    stored !== undefined &&
    stored.schema === basis.schema &&
    stored.content === basis.content &&
    stored.filesBlob === basis.filesBlob
  );
}

/** Makes a version the active one, by the manifest that was composed for it, and tells the sites. */
export async function makeActive(
  work: Work,
  domainId: number,
  viewsetId: number,
  manifest: Sha256,
): Promise<void> {
  const { tx } = work;
  await tx
    .updateTable("fleet_activations")
    .set({ state: "replaced" })
    .where("domain_id", "=", domainId)
    .where("state", "in", ["activated", "failing"])
    .execute();
  await tx
    .updateTable("viewsets")
    .set({ when_obsoleted: work.at })
    .where("domain_id", "=", domainId)
    .where("id", "!=", viewsetId)
    .where("id", "=", (query) =>
      query.selectFrom("domains").select("active_viewset_id").where("id", "=", domainId),
    )
    .execute();
  await tx
    .updateTable("viewsets")
    .set({ when_obsoleted: null, manifest_blob: manifest })
    .where("id", "=", viewsetId)
    .execute();
  await holdBlobs(tx, [manifest]);
  await tx
    .updateTable("domains")
    .set({ active_viewset_id: viewsetId })
    .where("id", "=", domainId)
    .execute();
  await noteActivation(work, domainId, viewsetId);
  await announceViewset(work, domainId, await sitesOfDomain(work, domainId));
}

/** Of a domain; further ones are forgotten. */
const activationsKept = 1_000;

async function noteActivation(
  { tx, at }: Work,
  domainId: number,
  viewsetId: number,
): Promise<void> {
  await tx
    .insertInto("viewset_activations")
    .values({ domain_id: domainId, viewset_id: viewsetId, at })
    .execute();
  const tooOld = await tx
    .selectFrom("viewset_activations")
    .select("id")
    .where("domain_id", "=", domainId)
    .orderBy("id", "desc")
    .offset(activationsKept)
    .limit(1)
    .executeTakeFirst();
  if (tooOld !== undefined)
    await tx
      .deleteFrom("viewset_activations")
      .where("domain_id", "=", domainId)
      .where("id", "<=", tooOld.id)
      .execute();
}

/** The last activations of each of the versions, the oldest first. */
async function activationsOf(
  { tx }: Work,
  viewsetIds: readonly number[],
): Promise<ReadonlyMap<number, string[]>> {
  const found = new Map<number, string[]>(viewsetIds.map((id) => [id, []]));
  if (viewsetIds.length === 0) return found;
  const rows = await tx
    .selectFrom("viewset_activations")
    .select(["viewset_id", "at"])
    .where("viewset_id", "in", viewsetIds)
    .orderBy("id")
    .execute();
  for (const { viewset_id: id, at } of rows) found.get(id)?.push(at);
  return new Map([...found].map(([id, times]) => [id, times.slice(-activationsShown)]));
}

export async function readBasis(
  tx: Tx,
  domainId: number,
  viewsetId: number,
): Promise<ActivationBasis | undefined> {
  // A version holds one devlove file per schema; the newest schema is the one with the last id.
  return tx
    .selectFrom("viewsets")
    .innerJoin("devlove_files", "devlove_files.viewset_id", "viewsets.id")
    .select([
      "viewsets.id as viewsetId",
      "devlove_files.schema_id as schema",
      "devlove_files.content",
      "viewsets.files_blob as filesBlob",
    ])
    .where("viewsets.domain_id", "=", domainId)
    .where("viewsets.id", "=", viewsetId)
    .orderBy("devlove_files.id", "desc")
    .executeTakeFirst();
}

/** What a version consists of. */
export type VersionContents = {
  readonly id: number;
  readonly name: string;
  /** Manifest blob with the views; null: the host's own directory. */
  readonly filesBlob: Sha256 | null;
  /** The content of its devlove file of each schema. */
  readonly devlove: ReadonlyMap<string, string>;
};

export async function readContents(
  { tx }: Work,
  domainId: number,
  viewsetId: number,
): Promise<VersionContents | undefined> {
  const row = await tx
    .selectFrom("viewsets")
    .select(["id", "name", "files_blob as filesBlob"])
    .where("domain_id", "=", domainId)
    .where("id", "=", viewsetId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const files = await tx
    .selectFrom("devlove_files")
    .select(["schema_id", "content"])
    .where("viewset_id", "=", viewsetId)
    .orderBy("schema_id")
    .execute();
  return { ...row, devlove: new Map(files.map((one) => [one.schema_id, one.content])) };
}

export async function activeVersionId({ tx }: Work, domainId: number): Promise<number | null> {
  const row = await tx
    .selectFrom("domains")
    .select("active_viewset_id")
    .where("id", "=", domainId)
    .executeTakeFirst();
  return row?.active_viewset_id ?? null;
}

type DeploymentActivation = ViewsetVersion["deployments"][number];

async function activatedAt(
  work: Work,
  domainId: number,
  viewsetId: number,
): Promise<DeploymentActivation[]> {
  const rows = await work.tx
    .selectFrom("viewset_deployments")
    .select(["deployment_site_id as deploymentSiteId", "seq"])
    .where("domain_id", "=", domainId)
    .where("viewset_id", "=", viewsetId)
    .orderBy("deployment_site_id")
    .execute();
  const proofAt = await readProofs(work.tx, rows, Date.parse(work.at));
  return rows.map((place) => {
    const proof = proofAt(place);
    const { state, error, lastSeen } = proof;
    const refusals = proof.receipts.filter(({ phase }) => phase !== "applied" && phase !== "gone");
    const isPinned = refusals.every(({ detail }) => detail["pinned"] === true);
    const serving = state === "failed" ? servingOf(refusals[0]?.detail["serving"]) : undefined;
    return {
      deployment_site_id: place.deploymentSiteId,
      state: isAbsent(proof) ? "absent" : state === "failed" && isPinned ? "pinned" : state,
      ...(error !== undefined && { error }),
      ...(serving !== undefined && { serving }),
      ...(lastSeen !== undefined && { last_seen: lastSeen }),
    };
  });
}

/** Reads what an agent told of the version that it serves instead. */
function servingOf(told: unknown): DeploymentActivation["serving"] {
  if (typeof told !== "object" || told === null) return undefined;
  const { viewset_id: id, viewset_name: name } = { ...told } as Record<string, unknown>;
  return typeof id === "number" && Number.isSafeInteger(id) && typeof name === "string"
    ? { viewset_id: id, viewset_name: name }
    : undefined;
}

/** Pure. Nothing is proved where no deployment serves the domain. `isForAll`: all were to have it, or none. */
export function activationOf(
  deployments: readonly DeploymentActivation[],
  isForAll = false,
): ActivationState {
  const present = deployments.filter(({ state }) => state !== "absent");
  const isWithout = ({ state }: DeploymentActivation): boolean =>
    state === "failed" || state === "pinned";
  if (isForAll && present.some(isWithout) && !present.every(isWithout)) return "split";
  for (const worst of ["failed", "pinned"] as const)
    if (present.some(({ state }) => state === worst)) return worst;
  if (present.length === 0) return deployments.length > 0 ? "absent" : "pending";
  return present.every(({ state }) => state === "applied") ? "applied" : "pending";
}
