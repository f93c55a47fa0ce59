// Receipts of agents, stored once each, with what follows from them in the same transaction.

import type { Receipt } from "../../wire/receipt.ts";
import type { Store, Tx } from "./database.ts";
import { touchInstance } from "./instances.ts";
import { endImport, failImport, judgeImport, type ImportDeps } from "./import-completion.ts";
import { journalHead } from "./journal.ts";
import { countOf, parseDetail, type Detail } from "./receipt-detail.ts";
import type { SharedCommits } from "./shared-commits.ts";
import { parts } from "./work.ts";

export type ReceiptDeps = ImportDeps & {
  readonly store: Store;
  readonly commits: SharedCommits;
  readonly now: () => Date;
};

/** A receipt beyond the journal's head speaks of another history and is left out. */
export async function saveReceipts(
  deps: ReceiptDeps,
  deploymentSiteId: number,
  instanceId: string,
  receipts: readonly Receipt[],
): Promise<void> {
  // Files are read and judged before the transaction: nothing waits for the disk inside it.
  const imports = await importsOf(deps.store, deploymentSiteId, receipts);
  const judged = new Map<Receipt, Awaited<ReturnType<typeof judgeImport>>>();
  for (const [receipt, importId] of imports)
    if (receipt.phase === "applied")
      judged.set(receipt, await judgeImport(deps, importId, receipt.detail));
  const at = deps.now().toISOString();
  await deps.commits.run(async (tx) => {
    const { seq: headSeq } = await journalHead(tx, deploymentSiteId);
    const own = receipts.filter(({ seq }) => seq <= headSeq);
    await touchInstance(tx, { deploymentSiteId, instanceId }, at);
    await insertReceipts(tx, deploymentSiteId, instanceId, own, at);
    await advance(tx, deploymentSiteId, instanceId, own);
    for (const receipt of own) {
      const importId = imports.get(receipt);
      if (importId === undefined) continue;
      const judgement = judged.get(receipt);
      if (judgement !== undefined) await endImport(tx, importId, judgement, at);
      else if (receipt.phase !== "gone") await failImport(tx, importId, reasonOf(receipt), at);
    }
  });
}

async function insertReceipts(
  tx: Tx,
  deploymentSiteId: number,
  instanceId: string,
  receipts: readonly Receipt[],
  at: string,
): Promise<void> {
  for (const part of parts(receipts))
    await tx
      .insertInto("receipts")
      .values(
        part.map(({ seq, phase, detail, took_ms }) => ({
          deployment_site_id: deploymentSiteId,
          instance_id: instanceId,
          seq,
          phase,
          detail: JSON.stringify(detail),
          took_ms,
          when_received: at,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(["deployment_site_id", "instance_id", "seq", "phase"]).doNothing(),
      )
      .execute();
  for (const receipt of receipts)
    if (correctionOf(receipt.detail) > 0)
      await correct(tx, deploymentSiteId, instanceId, receipt, at);
}

const correctionOf = (detail: Detail): number => countOf(detail, "correction") ?? 0;

/** Inserted just now or before; where it says something newer than what is stored, that is stored. */
async function correct(
  tx: Tx,
  deploymentSiteId: number,
  instanceId: string,
  { seq, phase, detail }: Receipt,
  at: string,
): Promise<void> {
  const own = { deployment_site_id: deploymentSiteId, instance_id: instanceId, seq, phase };
  const { detail: json } = await tx
    .selectFrom("receipts")
    .select("detail")
    .where((where) => where.and(own))
    .executeTakeFirstOrThrow();
  const stored = parseDetail(json);
  if (correctionOf(stored) >= correctionOf(detail)) return;
  // A snapshot at this place covers the entries before it all the same.
  const kept = stored["snapshot"] === true ? stored : {};
  await tx
    .updateTable("receipts")
    .set({ detail: JSON.stringify({ ...kept, ...detail }), when_received: at })
    .where((where) => where.and(own))
    .execute();
}

/** After a snapshot the instance stands at its position, whatever hello said. */
async function advance(
  tx: Tx,
  deploymentSiteId: number,
  instanceId: string,
  receipts: readonly Receipt[],
): Promise<void> {
  const seqs = receipts
    .filter(({ phase, detail }) => phase === "applied" && detail["snapshot"] === true)
    .map(({ seq }) => seq);
  if (seqs.length === 0) return;
  const seq = Math.max(...seqs);
  await tx
    .updateTable("instances")
    .set({ applied_seq: seq })
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("instance_id", "=", instanceId)
    .where("applied_seq", "<", seq)
    .execute();
}

/** Which receipts end an import: what the journal says of their entry, not what they say. */
async function importsOf(
  store: Store,
  deploymentSiteId: number,
  receipts: readonly Receipt[],
): Promise<ReadonlyMap<Receipt, string>> {
  const imports = new Map<Receipt, string>();
  for (const part of parts(receipts)) {
    const rows = await store
      .selectFrom("journal")
      .innerJoin("journal_bodies", "journal_bodies.digest", "journal.body_digest")
      .select(["seq", "journal_bodies.body as body"])
      .where("deployment_site_id", "=", deploymentSiteId)
      .where("kind", "=", "viewset.import")
      .where(
        "seq",
        "in",
        part.map(({ seq }) => seq),
      )
      .execute();
    for (const { seq, body } of rows) {
      // Written by appendJournal from a checked body.
      const { import_id: importId } = JSON.parse(body) as { readonly import_id: string };
      for (const receipt of part)
        // A snapshot at this position says nothing of the import.
        if (receipt.seq === seq && receipt.detail["snapshot"] !== true)
          imports.set(receipt, importId);
    }
  }
  return imports;
}

function reasonOf({ phase, detail }: Receipt): string {
  const reason = detail["reason"];
  return typeof reason === "string" && reason !== "" ? reason : `the agent ${phase} it`;
}
