// Activations on all or none, as they are read: who is asked, how each instance voted, and what the API shows.

import type { Vote } from "../../../core/serving/fleet-activation.ts";
import type { ViewsetVersion } from "../../../wire/customer/viewset.ts";
import type { Queries } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { TableRow } from "../engine/schema.ts";
import type { Work } from "../engine/work.ts";
import { readProofs, type InstanceProof } from "../journal/proof.ts";

export type Instance = { readonly deploymentSiteId: number; readonly instanceId: string };

export type MemberRow = Instance & { readonly seq: number; readonly lastSeen: string };

/** Members of sites that the domain is still linked to, with the place where their site was asked last. */
export async function memberRows(
  tx: Queries,
  id: number,
  domainId: number,
): Promise<readonly MemberRow[]> {
  return tx
    .selectFrom("fleet_activation_members as member")
    .innerJoin("domain_links", (join) =>
      join
        .onRef("domain_links.deployment_site_id", "=", "member.deployment_site_id")
        .on("domain_links.domain_id", "=", domainId),
    )
    .innerJoin("fleet_activation_sites as asked", (join) =>
      join
        .onRef("asked.deployment_site_id", "=", "member.deployment_site_id")
        .onRef("asked.activation_id", "=", "member.activation_id"),
    )
    .innerJoin("instances", (join) =>
      join
        .onRef("instances.deployment_site_id", "=", "member.deployment_site_id")
        .onRef("instances.instance_id", "=", "member.instance_id"),
    )
    .select([
      "member.deployment_site_id as deploymentSiteId",
      "member.instance_id as instanceId",
      "asked.seq",
      "last_seen as lastSeen",
    ])
    .where("member.activation_id", "=", id)
    .orderBy("member.deployment_site_id")
    .orderBy("member.instance_id")
    .execute();
}

/**
 * Pure. Only a receipt of the question itself is a vote: a snapshot behind it says nothing of what was prepared, and an instance that broke off for a later
 * order did not vote.
 */
export function voteOf(
  told: Pick<InstanceProof, "receipts" | "error"> | undefined,
  seq: number,
  activationId: number,
): Vote {
  const own = told?.receipts.filter((receipt) => receipt.seq === seq) ?? [];
  const isNo = own.some(
    ({ phase, detail }) =>
      (phase === "failed" && detail["code"] !== "SUPERSEDED") || phase === "refused",
  );
  if (isNo) return { kind: "no", reason: told?.error ?? "without a reason" };
  const isYes = own.some(
    ({ phase, detail }) =>
      phase === "applied" &&
      detail["prepared"] === true &&
      detail["activation_id"] === activationId,
  );
  return { kind: isYes ? "yes" : "awaited" };
}

type FleetRecord = NonNullable<ViewsetVersion["fleet"]>;

/** What is known of the activations of one version, of either kind. */
export type VersionActivity = {
  readonly isActive: boolean;
  /** When it became the active one, the oldest first. */
  readonly activations: readonly string[];
};

/**
 * Pure. Whether an activation on all or none is over, and the version was activated in another way since: then it says nothing of how the version stands. What was
 * decided notes its own activation at its end; what was given up notes none.
 */
export function isOverruled(
  { state, endedAt }: { readonly state: FleetRowState; readonly endedAt: string | null },
  { isActive, activations }: VersionActivity,
): boolean {
  const last = activations.at(-1) ?? "";
  switch (state) {
    case "preparing":
    case "activated":
    case "failing":
      return false;
    case "aborted":
      return last >= (endedAt ?? "");
    case "replaced":
    case "returned":
      return isActive || last > (endedAt ?? "");
    default:
      return state satisfies never;
  }
}

type FleetRowState = TableRow<"fleet_activations">["state"];

/** Returns the latest activation on all or none of each of these versions that has one, unless the version was activated in another way since. */
export async function fleetRecords(
  work: Work,
  domainId: number,
  activityOf: ReadonlyMap<number, VersionActivity>,
): Promise<ReadonlyMap<number, FleetRecord>> {
  const records = new Map<number, FleetRecord>();
  for (const part of parts([...activityOf.keys()])) {
    const rows = await work.tx
      .selectFrom("fleet_activations")
      .select(["id", "viewset_id", "state", "reason", "when_started", "deadline", "when_ended"])
      .where("viewset_id", "in", part)
      .orderBy("id")
      .execute();
    const latest = new Map(rows.map((row) => [row.viewset_id, row] as const));
    for (const [viewsetId, { id, viewset_id: _, state, ...row }] of latest) {
      const activity = activityOf.get(viewsetId);
      if (activity !== undefined && isOverruled({ state, endedAt: row.when_ended }, activity))
        continue;
      const votes = await votesOf(work, id, domainId);
      // Until it is taken back, which takes a moment, a version that failed is what the fleet serves.
      records.set(viewsetId, { ...row, state: state === "failing" ? "activated" : state, votes });
    }
  }
  return records;
}

/** Whether the version is in force because a fleet decided on it, for all. */
export async function isOfFleet({ tx }: Work, viewsetId: number): Promise<boolean> {
  const row = await tx
    .selectFrom("fleet_activations")
    .select("id")
    .where("viewset_id", "=", viewsetId)
    .where("state", "in", ["activated", "failing"])
    .executeTakeFirst();
  return row !== undefined;
}

async function votesOf(
  { tx, at }: Work,
  activationId: number,
  domainId: number,
): Promise<FleetRecord["votes"]> {
  const votes: FleetRecord["votes"] = [];
  const members = await memberRows(tx, activationId, domainId);
  const proofOf = await readProofs(tx, members, Date.parse(at));
  for (const member of members) {
    const { deploymentSiteId: site, instanceId, seq } = member;
    const told = proofOf(member).instances.find((one) => one.instanceId === instanceId);
    const { kind: vote, ...why } = voteOf(told, seq, activationId);
    votes.push({ deployment_site_id: site, instance_id: instanceId, vote, ...why });
  }
  return votes;
}
