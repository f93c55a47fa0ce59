// What agents proved of a bot set: where its last version stands in the journal of each deployment, and the receipts of that entry.

import type { MarkDeployment } from "../../../wire/customer/bot.ts";
import type { BotSet } from "../../../wire/journal.ts";
import { sitesOfDomain } from "../journal/links.ts";
import {
  isAbsent,
  readProofs,
  type JournalPlace,
  type Proof,
  type ReceiptSeen,
} from "../journal/proof.ts";
import type { Work } from "../engine/work.ts";

/** The set of a customer. */
export type SetPlace = {
  readonly customerId: number;
  /** A main domain or a sub-domain. */
  readonly host: string;
  readonly set: BotSet;
};

/** `entries`: places in the deployment's journal of entries that lead to this version or a later one, as they were seen. */
export type MarkDeploymentState = MarkDeployment & { readonly entries: readonly number[] };
export type MarkFound = {
  readonly version: number;
  readonly deployments: readonly MarkDeploymentState[];
};

/**
 * Returns what is proved by now of the version that `before` was about; without it, of the newest. A set that
 * changes all the time is proved by whichever of its entries is receipted, so those that `before` saw are
 * looked at, too. Undefined means that there is no such set.
 */
export async function findMarkProof(
  work: Work,
  place: SetPlace,
  before?: MarkFound,
): Promise<MarkFound | undefined> {
  const set = await setAt(work, place);
  if (set === undefined) return undefined;
  const version = before?.version ?? set.version;
  const told = await work.tx
    .selectFrom("bot_set_deployments")
    .select(["deployment_site_id as id", "seq"])
    .where("bot_set_id", "=", set.id)
    .where("version", ">=", version)
    .execute();
  const seqOf = new Map(told.map(({ id, seq }) => [id, seq]));
  const seen = new Map(before?.deployments.map((one) => [one.deployment_site_id, one.entries]));
  const sites = (await sitesOfDomain(work, set.domain_id)).map((siteId) => {
    const last = seqOf.get(siteId);
    const known = seen.get(siteId) ?? [];
    const entries = last === undefined || known.includes(last) ? known : [...known, last];
    return { siteId, entries };
  });
  const asked = sites.flatMap(({ siteId: deploymentSiteId, entries }) =>
    placesAsked(entries).map((seq) => ({ deploymentSiteId, seq })),
  );
  const proofAt = await readProofs(work.tx, asked, Date.parse(work.at));
  return { version, deployments: sites.map((site) => provedAt(site, proofAt, place)) };
}

async function setAt({ tx }: Work, { customerId, host, set }: SetPlace) {
  const place = { "domains.customer_id": customerId, "bot_sets.host": host, "bot_sets.kind": set };
  return tx
    .selectFrom("bot_sets")
    .innerJoin("domains", "domains.id", "bot_sets.domain_id")
    .select(["bot_sets.id", "bot_sets.domain_id", "bot_sets.version"])
    .where((one) => one.and(place))
    .executeTakeFirst();
}

/** No entry has this place: what is proved of it is nothing, by all instances that there are. */
const untold = Number.MAX_SAFE_INTEGER;

/** The newest first. */
function placesAsked(entries: readonly number[]): readonly number[] {
  return entries.length === 0 ? [untold] : entries.toReversed();
}

/** Pure. The newest entry that is applied; where none is, what came of the newest. */
function provedAt(
  { siteId, entries }: { readonly siteId: number; readonly entries: readonly number[] },
  proofAt: (place: JournalPlace) => Proof,
  place: SetPlace,
): MarkDeploymentState {
  let newest: MarkDeployment | undefined;
  for (const seq of placesAsked(entries)) {
    const deployment = markedAt(siteId, place, proofAt({ deploymentSiteId: siteId, seq }));
    if (deployment.state === "applied") return { ...deployment, entries };
    newest ??= deployment;
  }
  return { ...(newest as MarkDeployment), entries }; // The loop runs at least once.
}

/** Pure. */
function markedAt(deploymentSiteId: number, place: SetPlace, proof: Proof): MarkDeployment {
  const instances = proof.instances.map((instance) => {
    const kept = keptReason(instance.receipts, place);
    const error = kept ?? instance.error;
    return {
      instance_id: instance.instanceId,
      state: kept === undefined ? instance.state : ("failed" as const),
      took_ms: tookMsOf(instance.receipts),
      last_seen: instance.lastSeen,
      ...(error !== undefined && { error }),
    };
  });
  const kept = keptReason(proof.receipts, place);
  const proved = isAbsent(proof) ? "absent" : proof.state;
  const state = kept === undefined ? proved : "failed";
  const error = kept ?? proof.error;
  return {
    deployment_site_id: deploymentSiteId,
    state,
    took_ms: tookMsOf(proof.receipts),
    ...(state === "pending" && proof.lastSeen !== undefined && { last_seen: proof.lastSeen }),
    ...(error !== undefined && { error }),
    instances: instances.toSorted((a, b) => (a.instance_id < b.instance_id ? -1 : 1)),
  };
}

/** A snapshot is applied although the agent kept a set that would have shrunk beyond reason. */
function keptReason(receipts: readonly ReceiptSeen[], { host, set }: SetPlace): string | undefined {
  for (const { detail } of receipts) {
    const kept: unknown = detail["kept_sets"];
    if (!Array.isArray(kept)) continue;
    const own = kept.find((one) => Object(one).domain === host && Object(one).set === set);
    if (own !== undefined) return String(Object(own).reason);
  }
  return undefined;
}

/** The longest; null where none applied. */
function tookMsOf(receipts: readonly ReceiptSeen[]): number | null {
  const applied = receipts.filter(({ phase }) => phase === "applied");
  return applied.length === 0 ? null : Math.max(...applied.map(({ tookMs }) => tookMs));
}
