// Activating a version on all instances of a domain's sites or on none: begun, stepped until it is decided or given up,
// and taken back where its trial fails. What comes next is decided in core/serving/fleet-activation.ts.

import { nextFleetStep, type Member } from "../../../core/serving/fleet-activation.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Queries, Tx } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { Work } from "../engine/work.ts";
import { sitesOfDomain } from "../journal/links.ts";
import { recordAudit } from "../people/audit.ts";
import {
  askToPrepare,
  giveUpPreparation,
  giveUpPreparations,
  openPreparations,
  type Preparation,
} from "../journal/preparations.ts";
import { readProofs } from "../journal/proof.ts";
import { holdBlobs } from "./blob-rows.ts";
import { memberRows, voteOf, type Instance } from "./fleet-records.ts";
import { isBasis, makeActive, type ActivationBasis } from "./viewsets.ts";

/** Who is in touch, as it is known outside the store. */
export type InTouch = {
  /** Whether the instance is connected, or polls because it can have no channel. */
  readonly isLive: (deploymentSiteId: number, instanceId: string) => boolean;
  /** The time since which this process could have heard of agents, ms since the epoch. */
  readonly sinceMs: number;
};

/** An instance that is not connected and was not seen for so long is lost: it polls each minute at least. */
export const lostAfterMs = 90_000;

export type NewFleetActivation = {
  readonly domainId: number;
  /** `manifest` was composed of it, and it must still be what is stored. */
  readonly basis: ActivationBasis;
  readonly manifest: Sha256;
  readonly deadlineMs: number;
};

/** `nobody`: no instance of the domain's sites is connected, so nobody could vote. */
export type FleetBegun = "begun" | "changed" | "nobody";

export async function beginFleetActivation(
  work: Work,
  { domainId, basis, manifest, deadlineMs }: NewFleetActivation,
  inTouch: InTouch,
): Promise<FleetBegun> {
  const { tx, at } = work;
  if (!(await isBasis(tx, domainId, basis))) return "changed";
  const siteIds = await sitesOfDomain(work, domainId);
  const live = [
    ...(await liveInstances(tx, siteIds, inTouch)),
    ...(await comingBack(work, siteIds, inTouch)),
  ];
  if (live.length === 0) return "nobody";
  const [open] = await openPreparations(tx, domainId);
  // Asked once more, as by a client that heard no answer: it goes on.
  if (open?.viewsetId === basis.viewsetId && open.manifest === manifest) return "begun";
  await giveUpPreparations(work, domainId, "another activation of the domain came between");
  const { id } = await tx
    .insertInto("fleet_activations")
    .values({
      domain_id: domainId,
      viewset_id: basis.viewsetId,
      manifest_blob: manifest,
      before_viewset_id: null,
      state: "preparing",
      reason: null,
      when_started: at,
      deadline: new Date(Date.parse(at) + deadlineMs).toISOString(),
      when_ended: null,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await holdBlobs(tx, [manifest]);
  await addMembers(work, id, live);
  const [preparation] = await openPreparations(tx, domainId);
  if (preparation !== undefined) await askToPrepare(work, preparation, siteIds);
  return "begun";
}

/** What became of the activations that are under way; `waiting` ones are not decided yet. */
export type FleetStepped = {
  readonly id: number;
  readonly customerId: number;
  readonly domain: string;
  readonly viewset: string;
  readonly outcome: "waiting" | "activated" | "aborted" | "returned" | "stays";
  readonly reason?: string;
};

/** Takes the next step of each activation that is under way. Each is decided by this transaction or not at all. */
export async function stepFleetActivations(
  work: Work,
  inTouch: InTouch,
): Promise<readonly FleetStepped[]> {
  const stepped: FleetStepped[] = [];
  for (const preparation of await openPreparations(work.tx))
    stepped.push(await stepOne(work, preparation, inTouch));
  stepped.push(...(await takeBackFailing(work)));
  for (const one of stepped) if (one.outcome !== "waiting") await audit(work, one);
  return stepped;
}

async function audit(work: Work, { id, customerId, domain, viewset, ...end }: FleetStepped) {
  const { outcome, reason = null } = end;
  await recordAudit(work, {
    via: "central",
    who: "central",
    user_id: null,
    customer_id: customerId,
    action: `activation on all ${outcome}`,
    ids: { activation_id: id },
    change: { domain, viewset, reason },
    address: null,
    request_id: null,
  });
}

/** Whether any activation is under way. */
export async function hasFleetActivations(db: Queries): Promise<boolean> {
  const row = await db
    .selectFrom("fleet_activations")
    .select("id")
    .where("state", "in", ["preparing", "failing"])
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

async function stepOne(
  work: Work,
  preparation: Preparation,
  inTouch: InTouch,
): Promise<FleetStepped> {
  const { id, domainId, domain, customerId, viewsetId, manifest, deadline } = preparation;
  const told = { id, customerId, domain, viewset: preparation.viewsetName };
  const siteIds = await sitesOfDomain(work, domainId);
  await addMembers(work, id, await liveInstances(work.tx, siteIds, inTouch));
  await addMembers(work, id, await answering(work.tx, id));
  const { members, toAskAgain } = await readMembers(work, preparation, inTouch);
  await askToPrepare(work, preparation, toAskAgain);
  const step = nextFleetStep({ members, isPastDeadline: work.at >= deadline });
  if (step.kind === "wait") return { ...told, outcome: "waiting" };
  if (step.kind === "abort") {
    await giveUpPreparation(work, preparation, step.reason);
    return { ...told, outcome: "aborted", reason: step.reason };
  }
  const before = await versionBefore(work.tx, preparation);
  await makeActive(work, domainId, viewsetId, manifest);
  await work.tx
    .updateTable("fleet_activations")
    .set({
      state: "activated",
      before_viewset_id: before,
      when_ended: work.at,
    })
    .where("id", "=", id)
    .execute();
  return { ...told, outcome: "activated" };
}

/** Returns the version that a failed trial goes back to. One that is decided on twice goes back to what was before it. */
async function versionBefore(tx: Tx, { domainId, viewsetId }: Preparation): Promise<number | null> {
  const { active_viewset_id: active } = await tx
    .selectFrom("domains")
    .select("active_viewset_id")
    .where("id", "=", domainId)
    .executeTakeFirstOrThrow();
  if (active !== viewsetId) return active;
  const own = await tx
    .selectFrom("fleet_activations")
    .select("before_viewset_id")
    .where("viewset_id", "=", viewsetId)
    .where("state", "in", ["activated", "failing"])
    .executeTakeFirst();
  return own?.before_viewset_id ?? null;
}

async function liveInstances(
  tx: Tx,
  siteIds: readonly number[],
  { isLive }: Pick<InTouch, "isLive">,
): Promise<readonly Instance[]> {
  if (siteIds.length === 0) return [];
  const rows = await tx
    .selectFrom("instances")
    .select(["deployment_site_id as deploymentSiteId", "instance_id as instanceId"])
    .where("deployment_site_id", "in", siteIds)
    .execute();
  return rows.filter((one) => isLive(one.deploymentSiteId, one.instanceId));
}

/** Returns the instances that answered the question. One may have no channel, and poll. */
async function answering(tx: Tx, id: number): Promise<readonly Instance[]> {
  return tx
    .selectFrom("fleet_activation_sites as asked")
    .innerJoin("receipts", (join) =>
      join
        .onRef("receipts.deployment_site_id", "=", "asked.deployment_site_id")
        .onRef("receipts.seq", "=", "asked.seq"),
    )
    .select([
      "receipts.deployment_site_id as deploymentSiteId",
      "receipts.instance_id as instanceId",
    ])
    .where("asked.activation_id", "=", id)
    .where("receipts.detail", "not like", '%"snapshot":true%')
    .distinct()
    .execute();
}

/** For so long before a start of central an instance may have been seen last, and be on its way back. */
const seenBeforeStartMs = 180_000;

/**
 * After a start of central agents connect one after the other, within a minute: those that were in touch before it and have
 * not been heard since are members all the same.
 */
async function comingBack(
  { tx, at }: Work,
  siteIds: readonly number[],
  { sinceMs }: Pick<InTouch, "sinceMs">,
): Promise<readonly Instance[]> {
  if (siteIds.length === 0 || Date.parse(at) - sinceMs > lostAfterMs) return [];
  return tx
    .selectFrom("instances")
    .select(["deployment_site_id as deploymentSiteId", "instance_id as instanceId"])
    .where("deployment_site_id", "in", siteIds)
    .where("last_seen", ">=", new Date(sinceMs - seenBeforeStartMs).toISOString())
    .where("last_seen", "<", new Date(sinceMs).toISOString())
    .execute();
}

async function addMembers(work: Work, id: number, live: readonly Instance[]): Promise<void> {
  const rows = live.map(({ deploymentSiteId, instanceId }) => ({
    activation_id: id,
    deployment_site_id: deploymentSiteId,
    instance_id: instanceId,
    when_joined: work.at,
  }));
  for (const part of parts(rows))
    await work.tx
      .insertInto("fleet_activation_members")
      .values(part)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
}

type MembersRead = {
  readonly members: readonly Member[];
  /** Sites of which an instance took a snapshot in place of the question. */
  readonly toAskAgain: readonly number[];
};

async function readMembers(
  work: Work,
  { id, domainId }: Preparation,
  inTouch: InTouch,
): Promise<MembersRead> {
  const nowMs = Date.parse(work.at);
  const rows = await memberRows(work.tx, id, domainId);
  const proofOf = await readProofs(work.tx, rows, nowMs);
  const toAskAgain = new Set<number>();
  const members: Member[] = [];
  for (const row of rows) {
    const { deploymentSiteId, instanceId, seq, lastSeen } = row;
    const told = proofOf(row).instances.find((one) => one.instanceId === instanceId);
    const vote = voteOf(told, seq, id);
    const isCovered = told?.receipts.some(({ detail }) => detail["snapshot"] === true);
    if (vote.kind === "awaited" && isCovered === true) toAskAgain.add(deploymentSiteId);
    const silentMs = Math.min(nowMs - Date.parse(lastSeen), nowMs - inTouch.sinceMs);
    const isLost = !inTouch.isLive(deploymentSiteId, instanceId) && silentMs > lostAfterMs;
    members.push({ deploymentSiteId, instanceId, isLost, vote });
  }
  return { members, toAskAgain: [...toAskAgain] };
}

/** Returns to the version before where a trial failed, on every site. */
async function takeBackFailing(work: Work): Promise<readonly FleetStepped[]> {
  const { tx } = work;
  const failing = await tx
    .selectFrom("fleet_activations as activation")
    .innerJoin("domains", "domains.id", "activation.domain_id")
    .innerJoin("viewsets", "viewsets.id", "activation.viewset_id")
    .leftJoin("viewsets as before", "before.id", "activation.before_viewset_id")
    .select([
      "activation.id",
      "activation.domain_id as domainId",
      "domains.customer_id as customerId",
      "activation.reason",
      "domains.name as domain",
      "viewsets.name as viewset",
      "before.id as beforeId",
      "before.manifest_blob as beforeManifest",
    ])
    .where("activation.state", "=", "failing")
    .execute();
  const stepped: FleetStepped[] = [];
  for (const {
    id,
    domainId,
    customerId,
    domain,
    viewset,
    beforeId,
    beforeManifest,
    ...row
  } of failing) {
    const reason = row.reason ?? "its trial failed";
    const isReturned = beforeId !== null && beforeManifest !== null;
    if (isReturned) {
      await giveUpPreparations(work, domainId, "the version in force failed its trial");
      await makeActive(work, domainId, beforeId, beforeManifest);
    }
    const none = `${reason}; there is no version before it to return to`;
    await tx
      .updateTable("fleet_activations")
      .set(
        isReturned
          ? { state: "returned", when_ended: work.at }
          : { state: "activated", reason: none },
      )
      .where("id", "=", id)
      .execute();
    const outcome = isReturned ? "returned" : "stays";
    stepped.push({ id, customerId, domain, viewset, outcome, reason: isReturned ? reason : none });
  }
  return stepped;
}
