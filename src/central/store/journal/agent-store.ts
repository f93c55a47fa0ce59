// The store as the agents' side sees it: one object over the queries. Every method is one read or one transaction; all throw only on defects and broken disks.

import { setImmediate } from "node:timers/promises";
import type { Sealer } from "../../../base/seal.ts";
import { Together } from "../../../base/together.ts";
import type { Name16, Sha256 } from "../../../core/ids.ts";
import type { Hello, Report } from "../../../wire/channel.ts";
import type { BotSet } from "../../../wire/journal.ts";
import type { Position } from "../../../wire/position.ts";
import type { Receipt } from "../../../wire/receipt.ts";
import type { ReleaseTold } from "../../../wire/rollout.ts";
import { agentTokenHolder, saveAgentToken, siteSecrets } from "./agent-tokens.ts";
import { storeEpoch, type Store, type Tx } from "../engine/database.ts";
import type { ReadCommittedUnit } from "../engine/read-committed.ts";
import type { AlertRules } from "../content/domain-reports.ts";
import {
  confirmDeliveries,
  saveHellos,
  saveReports,
  type GivenHello,
  type GivenReport,
  type LogDelivery,
} from "./instances.ts";
import { chainAt, journalHead } from "./journal.ts";
import { JournalPages } from "./journal-pages.ts";
import { ReceiptIntake, type ReceiptDeps } from "./receipts.ts";
import { purgedHost } from "./purges.ts";
import { SetContents } from "../bots/set-contents.ts";
import { instancesSeenSince } from "./instances-seen.ts";
import { rowsAtOnce } from "../engine/listed.ts";
import { isStoreUnreachable } from "../engine/postgres-faults.ts";
import { SharedCommits } from "../engine/shared-commits.ts";
import { certificatesBlob } from "../vault/site-vault.ts";
import { readBotSet, readSnapshot } from "./snapshot.ts";
import { tellClassesAgain } from "./told-classes.ts";
import type { Blobs } from "../objects/object-store.ts";
import { saveStanding, wantedOf } from "../rollouts/standings.ts";

export type AgentStoreDeps = Omit<ReceiptDeps, "blobs" | "commits"> & {
  readonly blobs: Blobs;
  /** A store for long reads, beside `store`. */
  readonly reader: Store;
  readonly sealer: Sealer;
  /** The rules for what counts as slow. */
  readonly alertRules?: AlertRules;
};

export type AgentStore = Awaited<ReturnType<typeof openAgentStore>>;

type NamedHost = { readonly domain: string; readonly host: string | null };

export async function openAgentStore(deps: AgentStoreDeps) {
  const { store, sealer, now } = deps;
  const at = (agoMs = 0): string => new Date(now().getTime() - agoMs).toISOString();
  const commits = new SharedCommits(store);
  const pages = new JournalPages(store);
  const receiptIntake = new ReceiptIntake({ ...deps, commits });
  const hellos = together<GivenHello>(
    commits,
    "hellos",
    async (tx, all) => saveHellos(tx, all, at()),
    rowsAtOnce(store),
  );
  const reports = together<GivenReport>(commits, "reports", async (tx, all) =>
    saveReports(tx, all, at(), deps.alertRules),
  );
  const deliveries = together<LogDelivery>(commits, "log_confirmations", async (tx, all) =>
    confirmDeliveries(tx, all, at()),
  );
  const snapshots = { reader: deps.reader, contents: new SetContents(deps) };
  return {
    epoch: await storeEpoch(store),
    /** Asks for something small. Rejects while the store is away. */
    answers: () => storeEpoch(store),
    /** Returns the instances that were heard of within so many milliseconds. */
    seenWithin: (ms: number) => instancesSeenSince(store, at(ms)),
    credentials: (name16: Name16) => siteSecrets(store, sealer, name16, now()),
    saveToken: (siteId: number, digest: string, expiresAt: Date) =>
      commits.run(async (tx) => saveAgentToken(tx, siteId, digest, expiresAt)),
    /** Undefined for a token that is unknown, expired or revoked. */
    tokenHolder: (digest: string) => agentTokenHolder(store, digest, now()),
    head: (siteId: number) => journalHead(store, siteId),
    chainAt: (siteId: number, seq: number) => chainAt(store, siteId, seq),
    entriesAfter: (siteId: number, seq: number) => pages.after(siteId, seq),
    snapshot: (siteId: number, takesClasses: boolean) =>
      readSnapshot(snapshots, siteId, takesClasses),
    /** Tells a site of classes of bots again if the instance refused that, or, without an instance, if it was told. Returns whether the journal grew. */
    tellClassesAgain: (siteId: number, instanceId?: string) =>
      tellClassesAgain({ store, commits, at }, siteId, instanceId),
    /** Undefined for a domain that is not linked to the site. */
    botSet: (siteId: number, domain: string, set: BotSet) =>
      readBotSet(snapshots, siteId, domain, set),
    /** Undefined for a domain that is not linked to the site, and for a sub-domain that it has not. */
    purgedHost: (siteId: number, named: NamedHost) => purgedHost(store, siteId, named),
    /** A blob of the site's own: its certificates as they are now. */
    certificates: (siteId: number, sha256: Sha256) => certificatesBlob(store, siteId, sha256),
    saveHello: (siteId: number, hello: Hello) => hellos.ask({ deploymentSiteId: siteId, hello }),
    /** Saves a report; what it counts is added once. */
    saveReport: (siteId: number, report: Report) =>
      reports.ask({ deploymentSiteId: siteId, report }),
    /** Saves how an instance stands with its release, and returns what holds for it. */
    tellRelease: async (siteId: number, told: ReleaseTold) => {
      await commits.run(async (tx) => saveStanding(tx, siteId, told, at()));
      return wantedOf(store, siteId, told.instance_id);
    },
    /**
     * Idempotent by (site, instance, seq, phase); effects on imports and clears are in the same transaction. What lies beyond the head is left out. `position`: what
     * the agent told beside them.
     */
    saveReceipts: (
      siteId: number,
      instanceId: string,
      receipts: readonly Receipt[],
      position?: Position,
    ) => receiptIntake.save(siteId, instanceId, receipts, position),
    /** The instance delivered logs just now; undefined: one of the site did, and does not say which. */
    confirmLogs: (siteId: number, instanceId: string | undefined) =>
      deliveries.ask({ deploymentSiteId: siteId, instanceId }),
  };
}

/** Some 50 ms of the store; reports may have 100 KB each. */
const toldAtOnce = 250;

/** Writes what many agents tell at once by the same statements. */
function together<T>(
  commits: SharedCommits,
  unit: ReadCommittedUnit,
  write: (tx: Tx, all: readonly T[]) => Promise<void>,
  weightMax = toldAtOnce,
): Together<T, void> {
  return new Together<T, void>({
    gather: () => setImmediate(),
    weightMax,
    failsAll: isStoreUnreachable,
    run: async (all) => {
      await commits.run(async (tx) => write(tx, all), unit);
      return all.map(() => undefined);
    },
  });
}
