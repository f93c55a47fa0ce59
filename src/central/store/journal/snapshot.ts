// The whole desired state of a deployment site at one position of its journal, read in one transaction; whole bot sets become blobs.

import { bodyDigest } from "../../../core/journal/journal-chain.ts";
import { emptySetDigest } from "../../../core/addresses/set-digest.ts";
import type { BotSet } from "../../../wire/journal.ts";
import type { BotSetState, Snapshot } from "../../../wire/snapshot.ts";
import { storeEpoch, type Store, type Tx } from "../engine/database.ts";
import { journalHead } from "./journal.ts";
import { lastRestore } from "../engine/restores.ts";
import type { SetContents } from "../bots/set-contents.ts";
import {
  activeViewsetBody,
  botSetsOf,
  domainsBody,
  isShrinkMeant,
  linkedDomains,
  policyBodies,
  readStates,
  type ToldSet,
} from "./site-state.ts";
import { vaultEntries } from "../vault/site-vault.ts";

export type SnapshotDeps = {
  /** A store that reads, for whole sets take a while; the connection that writes must not wait for them. */
  readonly reader: Store;
  readonly contents: SetContents;
};

/** `takesClasses`: whether the agent takes what policies say of classes of bots. */
export async function readSnapshot(
  deps: SnapshotDeps,
  deploymentSiteId: number,
  takesClasses: boolean,
): Promise<Snapshot> {
  return deps.reader
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(async (tx) => {
      const state = await readState(tx, deps.contents, deploymentSiteId);
      if (!takesClasses) return state;
      const { classes } = await policyBodies(tx, deploymentSiteId);
      return { ...state, policy_classes: classes };
    });
}

async function readState(
  tx: Tx,
  contents: SetContents,
  deploymentSiteId: number,
): Promise<Snapshot> {
  const { seq, chain } = await journalHead(tx, deploymentSiteId);
  const viewsets: Snapshot["viewsets"] = [];
  const bots: BotSetState[] = [];
  for (const { id } of await linkedDomains(tx, deploymentSiteId)) {
    const viewset = await activeViewsetBody(tx, id);
    if (viewset !== undefined) {
      const seq = await viewsetSeq(tx, deploymentSiteId, id, viewset.viewset_id);
      viewsets.push({ ...viewset, seq });
    }
    for (const row of await botSetsOf(tx, id))
      if (row.version > 0) bots.push(await stateOf(tx, contents, row));
  }
  return {
    epoch: await storeEpoch(tx),
    seq,
    chain,
    ...(await readStates(tx, deploymentSiteId)),
    viewsets,
    bots,
    vault_entries: await vaultEntries(tx, deploymentSiteId),
    imports: await runningImports(tx, deploymentSiteId),
    ...((await lastRestore(tx))?.clear_now === true && { clear_now: true }),
  };
}

async function viewsetSeq(
  tx: Tx,
  deploymentSiteId: number,
  domainId: number,
  viewsetId: number,
): Promise<number | null> {
  const row = await tx
    .selectFrom("viewset_deployments")
    .select("seq")
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("domain_id", "=", domainId)
    .where("viewset_id", "=", viewsetId)
    .executeTakeFirst();
  return row?.seq ?? null;
}

async function runningImports(tx: Tx, deploymentSiteId: number): Promise<Snapshot["imports"]> {
  const rows = await tx
    .selectFrom("imports")
    .innerJoin("domains", "domains.id", "imports.domain_id")
    .select(["imports.id", "domains.name"])
    .where("imports.deployment_site_id", "=", deploymentSiteId)
    .where("imports.state", "=", "started")
    .orderBy("imports.when_started")
    .execute();
  const imports: Snapshot["imports"] = [];
  for (const { id, name } of rows) {
    const entry = await tx
      .selectFrom("journal")
      .select("seq")
      .where("deployment_site_id", "=", deploymentSiteId)
      .where("body_digest", "=", bodyDigest({ import_id: id, domain: name }))
      .executeTakeFirst();
    if (entry !== undefined) imports.push({ seq: entry.seq, import_id: id, domain: name });
  }
  return imports;
}

/** One set as it is now; that of a linked host without marks is empty. Undefined where the host is not linked to the site. */
export async function readBotSet(
  { reader, contents }: SnapshotDeps,
  deploymentSiteId: number,
  host: string,
  set: BotSet,
): Promise<BotSetState | undefined> {
  return reader
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(async (tx): Promise<BotSetState | undefined> => {
      const { domains } = await domainsBody(tx, deploymentSiteId);
      const main = domains.find(
        ({ name, sub_domains }) => name === host || sub_domains.some((sub) => sub.name === host),
      );
      if (main === undefined) return undefined;
      const linked = await linkedDomains(tx, deploymentSiteId);
      const domainId = linked.find(({ name }) => name === main.name)?.id ?? 0;
      const rows = await botSetsOf(tx, domainId);
      const digest = emptySetDigest;
      const empty = { id: 0, host, kind: set, version: 0, count: 0, digest, meant_from: 0 };
      const row = rows.find((one) => one.host === host && one.kind === set) ?? empty;
      return stateOf(tx, contents, row);
    });
}

async function stateOf(tx: Tx, contents: SetContents, row: ToldSet): Promise<BotSetState> {
  return {
    domain: row.host,
    set: row.kind,
    version: row.version,
    count: row.count,
    digest: row.digest,
    blob: await contents.blobOf(tx, row),
    shrink_meant: isShrinkMeant(row),
  };
}
