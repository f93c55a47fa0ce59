// The whole desired state of a deployment site at one position of its journal, read in one transaction; whole bot sets become blobs.

import { canonicalJson } from "../../core/canonical-json.ts";
import { bodyDigest } from "../../core/journal-chain.ts";
import type { Sha256 } from "../../core/ids.ts";
import { emptySetDigest } from "../../core/set-digest.ts";
import type { BotSet } from "../../wire/journal.ts";
import type { BotSetState, Snapshot } from "../../wire/snapshot.ts";
import { storeEpoch, type Store, type Tx } from "./database.ts";
import { journalHead } from "./journal.ts";
import {
  activeViewsetBody,
  botSetElements,
  botSetsOf,
  domainsBody,
  linkedDomains,
  policyBody,
  type BotSetRow,
} from "./site-state.ts";

export type SnapshotDeps = {
  readonly store: Store;
  readonly blobs: { put(bytes: Uint8Array): Promise<Sha256> };
};

type SetRead = { readonly row: BotSetRow; readonly content: Uint8Array };

export async function readSnapshot(
  { store, blobs }: SnapshotDeps,
  deploymentSiteId: number,
): Promise<Snapshot> {
  const { sets, ...state } = await store
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(async (tx) => readState(tx, deploymentSiteId));
  const bots: BotSetState[] = [];
  for (const set of sets) bots.push(await stateOf(blobs, set));
  return { ...state, bots };
}

async function readState(
  tx: Tx,
  deploymentSiteId: number,
): Promise<Omit<Snapshot, "bots"> & { readonly sets: readonly SetRead[] }> {
  const { seq, chain } = await journalHead(tx, deploymentSiteId);
  const viewsets: Snapshot["viewsets"] = [];
  const sets: SetRead[] = [];
  for (const { id } of await linkedDomains(tx, deploymentSiteId)) {
    const viewset = await activeViewsetBody(tx, id);
    if (viewset !== undefined) viewsets.push(viewset);
    for (const row of await botSetsOf(tx, id))
      if (row.version > 0) sets.push({ row, content: await contentOf(tx, row) });
  }
  return {
    epoch: await storeEpoch(tx),
    seq,
    chain: chain as Sha256, // Written by appendJournal alone.
    domains: await domainsBody(tx, deploymentSiteId),
    policy: await policyBody(tx, deploymentSiteId),
    viewsets,
    imports: await runningImports(tx, deploymentSiteId),
    sets,
  };
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
  { store, blobs }: SnapshotDeps,
  deploymentSiteId: number,
  host: string,
  set: BotSet,
): Promise<BotSetState | undefined> {
  const read = await store
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(async (tx): Promise<SetRead | undefined> => {
      const { domains } = await domainsBody(tx, deploymentSiteId);
      const main = domains.find(
        ({ name, sub_domains }) => name === host || sub_domains.some((sub) => sub.name === host),
      );
      if (main === undefined) return undefined;
      const linked = await linkedDomains(tx, deploymentSiteId);
      const domainId = linked.find(({ name }) => name === main.name)?.id ?? 0;
      const rows = await botSetsOf(tx, domainId);
      const row = rows.find((one) => one.host === host && one.kind === set);
      if (row !== undefined) return { row, content: await contentOf(tx, row) };
      const digest = emptySetDigest as Sha256; // 64 hex digits.
      const empty = { id: 0, host, kind: set, version: 0, count: 0, digest };
      return { row: empty, content: Buffer.from("[]") };
    });
  return read === undefined ? undefined : stateOf(blobs, read);
}

async function contentOf(tx: Tx, row: BotSetRow): Promise<Uint8Array> {
  return Buffer.from(canonicalJson(await botSetElements(tx, row.id)));
}

async function stateOf(
  blobs: SnapshotDeps["blobs"],
  { row, content }: SetRead,
): Promise<BotSetState> {
  return {
    domain: row.host,
    set: row.kind,
    version: row.version,
    count: row.count,
    digest: row.digest,
    blob: await blobs.put(content),
  };
}
