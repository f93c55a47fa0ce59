// The agent's link to central: it keeps a channel, polls beside it, follows the journal, and returns receipts
// and reports. While central is away, only news is missing.
//
//   connect   token → history (a snapshot where ours is not central's) → channel, or long polls behind a
//             proxy without WebSocket
//   poll      every 60 s ± 20 %, whatever the channel does
// Both feed one Follower. Receipts go over the channel while there is one, otherwise with the poll.

import { createHash } from "node:crypto";
import { AccelError, codeOf } from "../../core/faults.ts";
import { nextTry, noTries, type ContactEnd, type NextTry } from "../../core/backoff.ts";
import type { Instruments } from "../../base/metrics.ts";
import { sleep, every, orStopped } from "../../base/wait.ts";
import type { RunningImport, CountedBatch, EdgeFacts, Report } from "../../wire/channel.ts";
import type { AgentDb } from "./agent-db.ts";
import type { AnswerDryRun } from "./asked.ts";
import type { CentralClient } from "./central-client.ts";
import type { ChannelEnd } from "./channel.ts";
import { runChannelContact, runLongPollContact, type ContactParts, type Send } from "./contact.ts";
import type { Appliers } from "./entry-outcome.ts";
import { Follower, type FollowerDeps } from "./follower.ts";
import { LinkTelemetry, type LinkStatus } from "./link-telemetry.ts";
import { linkTimings, type LinkTimings } from "./link-timings.ts";
import { ReceiptOutbox } from "./outbox.ts";
import { isNobodyThere } from "./refusal.ts";
import type { AgentToken } from "./session.ts";

/** The longest time for which a drained channel stays away; central says how long. */
const drainMsMax = 600_000;

export type LinkOptions = Instruments & {
  readonly centralUrl: string;
  readonly name16: string;
  readonly agentVersion: string;
  /** An id that is random for each start. */
  readonly bootId: string;
  readonly edge: EdgeFacts | null;
  readonly client: CentralClient;
  readonly db: AgentDb;
  readonly appliers: Appliers;
  readonly applySnapshot: FollowerDeps["applySnapshot"];
  /**
   * Called for each new contact when everything up to the head that it told is applied, so that no clear was
   * missed. Must not throw.
   */
  readonly onHeadApplied: () => void;
  /**
   * Called when this process has stood still for longer than a ping takes, before anything else is asked of central: clears may
   * have been missed. Must not throw.
   */
  readonly onWake: () => void;
  /**
   * Called when central says that this deployment site is deleted: stops serving, durably. Called again when
   * it is said again.
   */
  readonly siteDeleted: () => Promise<void>;
  readonly report: () => Promise<Omit<Report, "instance_id" | "position">>;
  /** Called when central has stored these counts of a report. Must not throw. */
  readonly counted: (batch: CountedBatch) => void;
  /** Answers what a clear would hit; nothing changes. */
  readonly answerDryRun: AnswerDryRun;
  readonly random: () => number;
  readonly now: () => Date;
  readonly timings?: Partial<LinkTimings>;
  readonly stop: AbortSignal;
};

/** What a proxy answers while central is away, or starts. */
const gatewayStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/** Begins at once; central need not be there. Stops on `stop` or disposal, within a second. */
export class Link implements AsyncDisposable {
  /** Resolves when the link has stopped. */
  readonly done: Promise<void>;
  readonly #options: LinkOptions;
  readonly #timings: LinkTimings;
  readonly #stop: AbortSignal;
  readonly #telemetry: LinkTelemetry;
  readonly #outbox: ReceiptOutbox;
  readonly #follower: Follower;
  readonly #parts: ContactParts;
  readonly #own = new AbortController();
  /** Ends the channel that is under way. */
  #channel = new AbortController();
  /** Ends the pause before the next channel. */
  #pause = new AbortController();
  /** When the next channel is tried; undefined while one is up or being tried. */
  #nextTry: Date | undefined;
  #send: Send | undefined;
  #deleted = false;

  constructor(options: LinkOptions) {
    const stop = AbortSignal.any([options.stop, this.#own.signal]);
    const { db, client, registry, health, log, now, random } = options;
    this.#options = options;
    this.#stop = stop;
    const timings = { ...linkTimings, ...options.timings };
    const telemetry = new LinkTelemetry({ registry, health, log, now });
    const outbox = new ReceiptOutbox(db.ledger);
    const { instanceId } = db;
    const follower = new Follower({
      instanceId,
      ledger: db.ledger,
      central: client,
      appliers: options.appliers,
      applySnapshot: options.applySnapshot,
      onHeadApplied: options.onHeadApplied,
      onReceipt: () => outbox.recorded(),
      onFailure: (error) => void this.#failed(error),
      onResync: () => this.#channel.abort(new AccelError("PROTOCOL", "taking a snapshot")),
      telemetry,
      timings,
      random,
      now,
      stop,
    });
    const { report, counted, answerDryRun, agentVersion: agent_version, edge } = options;
    const self = { agent_version, edge };
    const reached = (): void => this.#reached();
    const facts = { client, instanceId, self, report, counted, answerDryRun, reached };
    this.#parts = { ...facts, follower, outbox, telemetry, timings };
    this.#timings = timings;
    this.#telemetry = telemetry;
    this.#outbox = outbox;
    this.#follower = follower;
    this.done = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    await this.done;
  }

  async #run(): Promise<void> {
    const { name16, now, random } = this.#options;
    const { pollPeriodMs: periodMs, closeMs } = this.#timings;
    const stop = this.#stop;
    const poll = async (): Promise<void> => this.#poll();
    const loops = Promise.all([
      this.#connect(),
      this.#watchSleep(),
      runPoll({ name16, periodMs, now, random, stop, poll }),
    ]);
    try {
      await orStopped(loops, stop);
    } finally {
      const enough = new AbortController();
      await Promise.all([
        this.#follower.close(closeMs),
        Promise.race([loops, sleep(closeMs, enough.signal)]),
      ]);
      enough.abort();
      this.#telemetry.become("disconnected");
    }
  }

  status(): LinkStatus {
    const { db, centralUrl } = this.#options;
    const { epoch, applied_seq, oldest_unfinished } = this.#follower.position();
    const head = this.#follower.headTold;
    return {
      state: this.#telemetry.state,
      since: this.#telemetry.since,
      heard_at: this.#telemetry.heardAt ?? null,
      central_url: centralUrl,
      instance_id: db.instanceId,
      epoch,
      applied_seq,
      head_seq: head?.seq ?? null,
      head_told_at: head?.at ?? null,
      lag: head === undefined ? null : Math.max(0, head.seq - applied_seq),
      oldest_unfinished,
      receipts_unacknowledged: db.ledger.receiptCount(),
      next_try_at: this.#nextTry?.toISOString() ?? null,
      last_error: this.#telemetry.lastError ?? null,
    };
  }

  /** Sends the progress of an import if there is a channel; otherwise it is dropped. */
  progress(progress: RunningImport): void {
    this.#send?.({ type: "progress", ...progress });
  }

  /** Sends the corrections that were just written now, not with the next receipt. */
  corrected(): void {
    this.#outbox.recorded();
  }

  /** Notices by the steady clock that this process stood still: stopped, or its host frozen. What central said meanwhile may be lost. */
  async #watchSleep(): Promise<void> {
    const { wakeLookMs, frozenMs } = this.#timings;
    let lookedMs = performance.now();
    const look = (): void => {
      const beforeMs = lookedMs;
      lookedMs = performance.now();
      const stoodMs = lookedMs - beforeMs - wakeLookMs;
      if (stoodMs < frozenMs) return;
      this.#options.onWake();
      this.#telemetry.woke(stoodMs);
      // A new channel tells the head of the journal, which the one before does not.
      this.#channel.abort(new AccelError("CENTRAL_UNREACHABLE", "this process stood still"));
      this.#pause.abort();
    };
    await every(wakeLookMs, look, {
      stop: this.#stop,
      onError: (error) => this.#telemetry.defect(error),
    });
  }

  async #connect(): Promise<void> {
    for (let tries = noTries; !this.#stop.aborted;) {
      const beganMs = performance.now();
      const end = await this.#contact();
      if (performance.now() - beganMs >= this.#timings.stableMs) tries = noTries;
      const next = nextTry(end, tries, this.#options.random(), this.#timings);
      ({ tries } = next);
      await this.#waitForNext(next);
    }
  }

  async #waitForNext({ leastMs, moreMs }: NextTry): Promise<void> {
    this.#nextTry = new Date(this.#options.now().getTime() + leastMs + moreMs);
    await sleep(leastMs, this.#stop);
    this.#pause = new AbortController();
    await sleep(moreMs, AbortSignal.any([this.#stop, this.#pause.signal]));
    this.#nextTry = undefined;
  }

  /** Keeps one contact as long as it lasts. Never rejects. */
  async #contact(): Promise<ContactEnd> {
    let why: string | undefined;
    try {
      const token = await this.#begin();
      if (token === "stopped") return { kind: "failed" };
      const end = await this.#runChannel(token);
      why = whyEnded(end);
      if (end.kind === "drained") {
        const reconnectAfterMs = Math.min(end.reconnectAfterMs, drainMsMax);
        return { kind: "drained", reconnectAfterMs };
      }
      if (end.kind === "revoked") {
        // Whether there is another token for this host's secret says what happened: it was replaced, or the site was deleted.
        this.#options.client.discardToken(token);
        await orStopped(this.#options.client.token(), this.#stop);
      }
      if (end.kind === "ended") {
        if (end.error.code === "TOKEN_EXPIRED") this.#options.client.discardToken(token);
        throw end.error;
      }
      if (end.kind === "refused") await this.#longPoll(end.status);
    } catch (error) {
      await this.#failed(error);
      if (isNobodyThere(error)) return { kind: "refused" };
    } finally {
      if (this.#telemetry.state === "connected") this.#telemetry.become("disconnected", why);
    }
    return { kind: "failed" };
  }

  /** Gets the token and settles the history, before anything else is asked. */
  async #begin(): Promise<AgentToken | "stopped"> {
    const { client, db } = this.#options;
    const token = await orStopped(client.token(), this.#stop);
    if (token === undefined) return "stopped";
    const site = db.get("deployment_site_id");
    if (site !== token.deploymentSiteId) {
      // The settings name another deployment site than before, with another journal.
      if (site !== undefined) db.ledger.forget();
      db.put({ deployment_site_id: token.deploymentSiteId });
    }
    await this.#follower.settleHistory();
    return this.#stop.aborted ? "stopped" : token;
  }

  async #runChannel(token: AgentToken): Promise<ChannelEnd> {
    const { db, bootId } = this.#options;
    this.#channel = new AbortController();
    this.#telemetry.channelBegins();
    return runChannelContact(this.#parts, {
      token: token.text,
      hello: { ...this.#parts.self, instance_id: db.instanceId, boot_id: bootId },
      attach: (send) => {
        this.#send = send;
        return { [Symbol.dispose]: () => (this.#send = undefined) };
      },
      stop: AbortSignal.any([this.#stop, this.#channel.signal]),
    });
  }

  async #longPoll(status: number): Promise<void> {
    const { gatewayRetryMs, upgradeRetryMs } = this.#timings;
    const retryMs = gatewayStatuses.has(status) ? gatewayRetryMs : upgradeRetryMs;
    this.#options.log.info(
      { status, again_after_s: retryMs / 1_000 },
      "no channel to central for now: polling instead",
    );
    this.#nextTry = new Date(this.#options.now().getTime() + retryMs);
    const enough = AbortSignal.timeout(retryMs);
    try {
      await runLongPollContact(this.#parts, AbortSignal.any([this.#stop, enough]));
    } finally {
      this.#nextTry = undefined;
      this.#telemetry.become("disconnected");
    }
  }

  /** Polls once, beside the channel. Never rejects. */
  async #poll(): Promise<void> {
    try {
      if ((await this.#begin()) === "stopped") return;
      await this.#follower.catchUp();
      this.#reached();
      if (this.#send !== undefined) return;
      const { client, db } = this.#options;
      if (this.#telemetry.state === "disconnected") {
        this.#telemetry.become("polling");
        this.#follower.confirmAt(this.#follower.headSeq);
      }
      await this.#outbox.flush(async (batch) =>
        client.postReceipts(
          { instance_id: db.instanceId, receipts: batch, position: this.#follower.position() },
          this.#stop,
        ),
      );
    } catch (error) {
      await this.#failed(error);
      if (this.#telemetry.state === "polling") this.#telemetry.become("disconnected");
    }
  }

  #reached(): void {
    this.#deleted = false;
    this.#telemetry.reached();
    this.#pause.abort();
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#stop.aborted) return;
    this.#telemetry.failed(error);
    if (codeOf(error) !== "SITE_DELETED" || this.#deleted) return;
    this.#deleted = true;
    try {
      // Should the site ever exist again, nothing from before counts.
      this.#options.db.ledger.forget();
      await this.#options.siteDeleted();
    } catch (failure) {
      this.#deleted = false; // Tried again when central says it again.
      this.#telemetry.defect(failure);
    }
  }
}

/** Says what ended a channel for which no fault is told; undefined where one is. */
function whyEnded(end: ChannelEnd): string | undefined {
  switch (end.kind) {
    case "drained":
      return "central asked this agent to come anew, here or to another central: it stops, or has no way to its store";
    case "revoked":
      return "central takes the token of this channel no longer";
    case "stopped":
      return "this agent ended it";
    default:
      return undefined;
  }
}

// The independent poll runs whether the channel is up or not, so that a wedged channel hides nothing. Its
// phase depends on the name, so that agents that were started together do not ask together.

const pollSpread = 0.2;

/** Returns the phase of this name's first poll within the period. */
export function pollPhaseMs(name16: string, periodMs: number): number {
  return createHash("sha256").update(name16).digest().readUIntBE(0, 6) % periodMs;
}

/** Returns the time from now to the next moment with that phase, 0 to `periodMs`. */
export function firstPollMs(phaseMs: number, nowMs: number, periodMs: number): number {
  return (((phaseMs - nowMs) % periodMs) + periodMs) % periodMs;
}

type PollOptions = {
  readonly name16: string;
  readonly periodMs: number;
  readonly now: () => Date;
  readonly random: () => number;
  readonly stop: AbortSignal;
  /** Must not reject. */
  readonly poll: () => Promise<void>;
};

export async function runPoll(options: PollOptions): Promise<void> {
  const { name16, periodMs, now, random, stop, poll } = options;
  const firstMs = firstPollMs(pollPhaseMs(name16, periodMs), now().getTime(), periodMs);
  if (!(await sleep(firstMs, stop))) return;
  await poll();
  await every(periodMs, poll, { stop, spread: pollSpread, random, onError: () => undefined });
}
