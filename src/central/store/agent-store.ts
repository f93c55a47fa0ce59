// The store as the agents' side sees it: one object over the queries, in the shape that `central/agents/ports.ts` asks for.

import { sql } from "kysely";
import type { Sealer } from "../../base/seal.ts";
import type { Name16, Sha256 } from "../../core/ids.ts";
import type { Hello, Report } from "../../wire/channel.ts";
import { journalPageEntriesMax, type BotSet, type JournalEntry } from "../../wire/journal.ts";
import type { Receipt } from "../../wire/receipt.ts";
import { agentTokenHolder, saveAgentToken, siteSecrets } from "./agent-tokens.ts";
import type { BlobFiles } from "./blobs.ts";
import { storeEpoch, type Store } from "./database.ts";
import type { AlertRules } from "./domain-reports.ts";
import { confirmLogs, saveHello, saveReport } from "./instances.ts";
import { chainAt, journalHead, readJournal } from "./journal.ts";
import { saveReceipts, type ReceiptDeps } from "./receipts.ts";
import { SetContents } from "./set-contents.ts";
import { SharedCommits } from "./shared-commits.ts";
import { certificatesBlob } from "./site-vault.ts";
import { readBotSet, readSnapshot } from "./snapshot.ts";

export type AgentStoreDeps = Omit<ReceiptDeps, "blobs" | "commits"> & {
  readonly blobs: BlobFiles;
  /** For long reads, beside `store`. */
  readonly reader: Store;
  readonly sealer: Sealer;
  /** What counts as slow. */
  readonly alertRules?: AlertRules;
};

/** Half of a channel message. */
const pageBytesMax = 4 * 2 ** 20;

export async function openAgentStore(deps: AgentStoreDeps) {
  const { store, sealer, now } = deps;
  const at = (): string => now().toISOString();
  const commits = new SharedCommits(store);
  const snapshots = { reader: deps.reader, contents: new SetContents(deps) };
  return {
    epoch: await storeEpoch(store),
    credentials: (name16: Name16) => siteSecrets(store, sealer, name16, now()),
    saveToken: (siteId: number, digest: string, expiresAt: Date) =>
      saveAgentToken(store, siteId, digest, expiresAt),
    tokenHolder: (digest: string) => agentTokenHolder(store, digest, now()),
    head: (siteId: number) => journalHead(store, siteId),
    chainAt: (siteId: number, seq: number) => chainAt(store, siteId, seq),
    entriesAfter: (siteId: number, seq: number) => readPage(store, siteId, seq),
    snapshot: (siteId: number) => readSnapshot(snapshots, siteId),
    botSet: (siteId: number, domain: string, set: BotSet) =>
      readBotSet(snapshots, siteId, domain, set),
    certificates: (siteId: number, sha256: Sha256) => certificatesBlob(store, siteId, sha256),
    saveHello: (siteId: number, hello: Hello) =>
      commits.run(async (tx) => saveHello(tx, siteId, hello, at())),
    saveReport: (siteId: number, report: Report) =>
      commits.run(async (tx) => saveReport(tx, siteId, report, at(), deps.alertRules)),
    saveReceipts: (siteId: number, instanceId: string, receipts: readonly Receipt[]) =>
      saveReceipts({ ...deps, commits }, siteId, instanceId, receipts),
    confirmLogs: (siteId: number) => commits.run(async (tx) => confirmLogs(tx, siteId, at())),
  };
}

/** Nearly always one of these is all there is: one query for each agent that a change is told to. */
const fewEntries = 3;

/** Of more than a few the sizes are asked for first, so that a page of large bodies is never read whole. */
async function readPage(
  store: Store,
  deploymentSiteId: number,
  afterSeq: number,
): Promise<{ readonly entries: readonly JournalEntry[]; readonly isLast: boolean }> {
  const few = await readJournal(store, deploymentSiteId, afterSeq, fewEntries);
  if (few.length < fewEntries) return { entries: few, isLast: true };
  const sizes = await store
    .selectFrom("journal")
    .innerJoin("journal_bodies", "journal_bodies.digest", "journal.body_digest")
    .select(sql<number>`octet_length(journal_bodies.body)`.as("bytes"))
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("seq", ">", afterSeq)
    .orderBy("seq")
    .limit(journalPageEntriesMax)
    .execute();
  let bytes = 0;
  const tooMany = sizes.findIndex((row) => (bytes += row.bytes) > pageBytesMax);
  const count = tooMany < 0 ? sizes.length : Math.max(1, tooMany);
  const entries = await readJournal(store, deploymentSiteId, afterSeq, count);
  return { entries, isLast: count === sizes.length && count < journalPageEntriesMax };
}
