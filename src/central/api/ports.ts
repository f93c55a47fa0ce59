// What the customer API needs of the rest of central, given by the composition root. All may be slow; none may be awaited inside a transaction.

import type { Readable } from "node:stream";
import type { Sha256 } from "../../core/ids.ts";
import type { PackageVersion } from "../../core/package-version.ts";
import type { DryRunQuestion, DryRunResult } from "../../wire/ask.ts";
import type { PatternFault } from "../../core/patterns/pattern-fault.ts";
import type { DevloveContext, DevloveValidation } from "../../wire/devlove-validate.ts";

export type JournalWake = {
  /** Called after the commit; must not throw. */
  wake(deploymentSiteIds: readonly number[]): void;
};

export type ImportProgressSeen = {
  readonly phase: string;
  readonly files_done: number;
  readonly files_total: number;
  readonly bytes_done: number;
  readonly bytes_total: number;
};

/** `result` undefined: the instance did not answer in time. */
export type InstanceDryRun = {
  readonly instanceId: string;
  readonly result: DryRunResult | undefined;
};

/** The channels of agents as they are this moment. */
export type Live = {
  isLive(deploymentSiteId: number): boolean;
  importProgress(importId: string): ImportProgressSeen | undefined;
  /** One for each connected instance of the deployment site, by the deadline. Never rejects. */
  dryRun(
    deploymentSiteId: number,
    question: DryRunQuestion,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<readonly InstanceDryRun[]>;
  /** Its secret or the site itself is revoked. */
  closeSite(deploymentSiteId: number): void;
};

export type ReceiptSignal = {
  /** Resolves when any receipt was stored after the call, or the signal aborted. Never rejects. */
  next(signal: AbortSignal): Promise<void>;
};

export type LogQuery = {
  readonly deploymentSiteId: number;
  /** A main domain. */
  readonly domain: string;
  readonly limit: number;
  /** Cursor of the page before. */
  readonly after?: string;
  /** Seconds since the epoch, both included. */
  readonly since?: number;
  readonly until?: number;
};

export type LogPage = {
  /** A JSON array of `LogLine` (`wire/customer/incoming-logs.ts`): up to a thousand of them pass through as they are. */
  readonly logs: string;
  /** Leads on; absent at the end. */
  readonly next?: string | undefined;
};

export type LogReader = {
  /** Newest first. Rejects with NOT_FOUND for a cursor that it did not make. */
  read(query: LogQuery): Promise<LogPage>;
};

export type BlobStore = {
  /** Durable when it resolves; the same bytes twice are one blob. */
  put(bytes: Uint8Array): Promise<Sha256>;
  /** As `put`, of what is made piece by piece: hashing much at once would hold up all others. */
  write(body: AsyncIterable<Uint8Array>): Promise<Sha256>;
  read(sha256: Sha256): Promise<Uint8Array | undefined>;
};

/** A file that was received whole; disposing removes it unless it was released. */
export type StagedPackage = AsyncDisposable & {
  readonly size: number;
  readonly sha256: Sha256;
  /** Whether it is a wheel, as its name says; reasons read behind "the file". */
  check(
    file: string,
  ): Promise<
    | { readonly ok: true; readonly version: PackageVersion }
    | { readonly ok: false; readonly reason: string }
  >;
  /** Durable under the name that it gives. */
  keep(): Promise<string>;
  release(): void;
};

export type PackageStore = {
  /** Rejects with what `bytes` rejects with. */
  stage(bytes: AsyncIterable<Uint8Array>, bytesMax: number): Promise<StagedPackage | "too-large">;
  stream(storedAs: string): Readable;
};

export type PatternCheck = {
  /** Why this is no pattern to clear by; undefined when it is one. */
  check(pattern: string): PatternFault | undefined;
};

export type DevloveJudge = {
  /** All that is wrong with it; what may take long is judged beside the main thread. Rejects with JUDGING_BUSY where it cannot be judged now. */
  devlove(question: {
    readonly schema: string;
    readonly content: string;
    readonly context: Omit<DevloveContext, "backendGuard">;
  }): Promise<DevloveValidation>;
};

export type Ports = {
  readonly journal: JournalWake;
  readonly live: Live;
  readonly receipts: ReceiptSignal;
  readonly logs: LogReader;
  readonly blobs: BlobStore;
  readonly judge: DevloveJudge;
  readonly packages: PackageStore;
  readonly patterns: PatternCheck;
};
