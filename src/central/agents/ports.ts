// What the agent side of central needs from the store: declared here, given by the composition root.

import type { Readable } from "node:stream";
import type { Name16, Sha256 } from "../../core/ids.ts";
import type { JournalHead, JournalPart } from "../../core/journal/journal-part.ts";
import type { Hello, Report } from "../../wire/channel.ts";
import type { BotSet, JournalEntry } from "../../wire/journal.ts";
import type { Position } from "../../wire/position.ts";
import type { Receipt } from "../../wire/receipt.ts";
import type { BotSetState, Snapshot } from "../../wire/snapshot.ts";

export type SiteCredentials = {
  readonly deploymentSiteId: number;
  /** What is accepted now: the secret, and the one before it within its grace. */
  readonly secrets: readonly string[];
  readonly deleted: boolean;
};

/** Every method is one read or one transaction; all throw only on defects and broken disks. */
export type AgentStore = {
  readonly epoch: string;
  credentials(name16: Name16): Promise<SiteCredentials | undefined>;
  saveToken(deploymentSiteId: number, digest: string, expiresAt: Date): Promise<void>;
  /** Undefined for a token that is unknown, expired or revoked. */
  tokenHolder(
    digest: string,
  ): Promise<{ readonly deploymentSiteId: number; readonly deleted: boolean } | undefined>;
  head(deploymentSiteId: number): Promise<JournalHead>;
  chainAt(deploymentSiteId: number, seq: number): Promise<string | undefined>;
  entriesAfter(deploymentSiteId: number, seq: number): Promise<JournalPart<JournalEntry>>;
  snapshot(deploymentSiteId: number): Promise<Snapshot>;
  /** Undefined for a domain that is not linked to the site. */
  botSet(deploymentSiteId: number, domain: string, set: BotSet): Promise<BotSetState | undefined>;
  /** A blob of the site's own: its certificates as they are now. */
  certificates(deploymentSiteId: number, sha256: Sha256): Promise<Uint8Array | undefined>;
  saveHello(deploymentSiteId: number, hello: Hello): Promise<void>;
  /**
   * Idempotent by (site, instance, seq, phase); effects on imports and clears are in the same transaction. What lies beyond the head is left out. `position`: what
   * the agent told beside them.
   */
  saveReceipts(
    deploymentSiteId: number,
    instanceId: string,
    receipts: readonly Receipt[],
    position?: Position,
  ): Promise<void>;
  /** What it counts is added once. */
  saveReport(deploymentSiteId: number, report: Report): Promise<void>;
  /** The instance delivered logs just now; undefined: one of the site did, and does not say which. */
  confirmLogs(deploymentSiteId: number, instanceId: string | undefined): Promise<void>;
};

/** `mismatch`: another digest than announced; nothing is kept. */
export type BlobPut = "stored" | "mismatch" | "too large" | "aborted";

export type AgentBlobs = {
  /** Size of a whole blob; undefined where there is none. */
  sizeOf(sha256: Sha256): Promise<number | undefined>;
  /** `first` and `last` are positions of bytes, both included. */
  stream(sha256: Sha256, first: number, last: number): Readable;
  missing(wanted: readonly Sha256[]): Promise<readonly Sha256[]>;
  /** Durable when it resolves with "stored". Never throws for what the sender did. */
  receive(sha256: Sha256, body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<BlobPut>;
};

/** Tells that a site's journal grew. Within one process `wake.ts`; between processes something like LISTEN/NOTIFY takes its place. */
export type WakeBus = {
  publish(deploymentSiteIds: Iterable<number>): void;
  /** The listener must not throw. */
  subscribe(listener: (deploymentSiteIds: readonly number[]) => void): Disposable;
};
