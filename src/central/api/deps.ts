// What the endpoints of the customer API work with: the rest of central, and their settings, given by the
// composition root. The ports may be slow, and none may be awaited inside a transaction.

import type { ChangeBus } from "../agents/changes.ts";
import type { RateLimit } from "../agents/rate-limit.ts";
import type { AnalyticsAnswer, AnalyticsQuery } from "../agents/analytics-view.ts";
import type { FindQuery, FoundRequests, RecordQuery } from "../agents/log-finder.ts";
import type { LogPage, LogQuery } from "../agents/log-reader.ts";
import type { EventStreams } from "./event-streams.ts";
import type { Judge } from "../judging/judge.ts";
import type { Blobs, ObjectsSight, Packages } from "../store/objects/object-store.ts";
import type { Work } from "../store/engine/work.ts";
import type { Authority } from "../settings/authority.ts";
import type { PatternCheck } from "../../base/pattern-check.ts";
import type { BackendRules } from "../../core/serving/backend-url.ts";
import type { DryRunQuestion, DryRunResult } from "../../wire/ask.ts";

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

/** `result` is undefined if the instance did not answer in time. */
export type InstanceDryRun = {
  readonly instanceId: string;
  readonly result: DryRunResult | undefined;
};

/** The channels of agents as they are at this moment. */
export type Live = {
  /** The time since which agents can have connected, ms since the epoch. */
  readonly sinceMs: number;
  /** Whether an agent of the site, or that instance of it, is connected and was heard lately. */
  isLive(deploymentSiteId: number, instance?: string): boolean;
  /** Whether an agent of the site, or that instance of it, lost its channel a moment ago through no doing of its own, and is expected back. */
  isExpected(deploymentSiteId: number, instance?: string): boolean;
  /** Whether that instance is connected, or polls because it can have no channel. */
  isInTouch(deploymentSiteId: number, instance: string): boolean;
  /** For how long nothing was heard on the open channel of that instance, in milliseconds; undefined without one. */
  silentMs(deploymentSiteId: number, instance: string): number | undefined;
  importProgress(importId: string): ImportProgressSeen | undefined;
  /** Asks each connected instance of the deployment site, and answers by the deadline. Never rejects. */
  dryRun(
    deploymentSiteId: number,
    question: DryRunQuestion,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<readonly InstanceDryRun[]>;
  /** Closes the channels of a site that was deleted, or whose secret was revoked. */
  closeSite(deploymentSiteId: number): void;
};

export type ReceiptSignal = {
  /** Resolves when any receipt was stored after the call, or the signal aborted. Never rejects. */
  next(signal: AbortSignal): Promise<void>;
};

export type AnalyticsReader = {
  /** Rejects with LOGS_UNAVAILABLE while it cannot be answered. */
  read(query: AnalyticsQuery): Promise<AnalyticsAnswer>;
};

export type LogReader = {
  /** Reads records, newest first. Rejects with NOT_FOUND for a cursor that it did not make. */
  read(query: LogQuery): Promise<LogPage>;
  /** Searches records. Rejects as `read` does. */
  find(query: FindQuery, gone: AbortSignal): Promise<FoundRequests>;
  /** Returns one record as JSON text; undefined if there is none. */
  record(query: RecordQuery): Promise<string | undefined>;
};

/** Which test of a channel is asked for, and by whom. */
export type TestAsked = {
  readonly customerId: number;
  readonly username: string;
  /** The customer's name of the channel. */
  readonly uid: string;
};
export type TestOutcome =
  | { readonly kind: "queued"; readonly messages: number }
  /** Nobody is subscribed to alerts by mail. */
  | { readonly kind: "nobody" }
  /** Too many messages went out before. */
  | { readonly kind: "limited" };

/** Put a test message into the outbox, in a transaction, as an alert's would be. */
export type ChannelTests = {
  chat(
    work: Work,
    asked: TestAsked,
    channel: { readonly id: number; readonly hookUrl: string },
  ): Promise<TestOutcome>;
  email(work: Work, asked: TestAsked): Promise<TestOutcome>;
};

/** Content-addressed files. They are durable when the promise resolves, and equal bytes are one blob. */
export type VersionBlobs = Pick<Blobs, "put" | "write" | "read">;

export type Ports = {
  readonly changes: Pick<ChangeBus, "publish">;
  readonly events: Pick<EventStreams, "begin">;
  readonly journal: JournalWake;
  readonly live: Live;
  readonly receipts: ReceiptSignal;
  readonly logs: LogReader;
  readonly analytics: AnalyticsReader;
  readonly channelTests: ChannelTests;
  readonly blobs: VersionBlobs;
  /** What holds blobs and packages. */
  readonly objects: ObjectsSight;
  readonly judge: Pick<Judge, "devlove" | "changes">;
  readonly packages: Pick<Packages, "stage" | "open">;
  readonly patterns: Pick<PatternCheck, "check">;
};

/** The backends that a devlove may name beside what is always refused. */
export type DevloveRules = Pick<BackendRules, "otherLoopbackNamesAllowed">;

export type PackageSettings = {
  /** Central's address, as customers reach it. */
  readonly baseUrl: string;
  readonly sizeMax: number;
  /** The address of the bootstrapper; if undefined, nobody is told of it. */
  readonly bootstrapperUrl: string | undefined;
  readonly versions: Readonly<Record<string, string>> | undefined;
  readonly images: Readonly<Record<string, string>> | undefined;
};

export type ApiSettings = {
  readonly trialsPerAddress: number;
  readonly trialsTotal: number;
  readonly marksPerSecond: number;
  readonly marksBurst: number;
  /** How many addresses and ranges a customer may attach in all. */
  readonly botElements: number;
  readonly packages: PackageSettings;
  readonly recoveriesPerAddress: number;
  /** Whether a mail server is set: without one nobody gets a mail. */
  readonly sendsMail: boolean;
  /** Whether chat hooks may lead to private addresses. */
  readonly privateHooksAllowed: boolean;
  /** Whether lists of bots may be fetched from private addresses. */
  readonly privateSourcesAllowed: boolean;
  /** The authority that hosts need to trust for central; undefined if it is a public one. Throws FILE_UNUSABLE. */
  readonly authority: () => Authority | undefined;
  readonly devlove: DevloveRules;
};

export type ResourceDeps = {
  readonly ports: Ports;
  readonly now: () => Date;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly rateLimit: (limit: {
    readonly burst: number;
    readonly perSecond: number;
    readonly keysMax: number;
  }) => RateLimit;
  readonly settings: ApiSettings;
};
