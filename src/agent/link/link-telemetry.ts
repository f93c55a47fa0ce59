// What the link shows of itself: status, metrics, health warnings, log lines. It decides nothing.

import { isWarningCode, type WarningCode } from "../../base/warning-codes.ts";
import { codeOf, hintOf, messageOf, systemCode, type FaultCode } from "../../core/faults.ts";
import type { Health, Severity } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import { journalKinds, laneOf, type JournalEntry, type KnownEntry } from "../../wire/journal.ts";
import type { OldestUnfinished } from "../../wire/position.ts";
import type { Receipt } from "../../wire/receipt.ts";

export type LinkState = "connected" | "polling" | "disconnected";

export type LinkFault = {
  readonly code: FaultCode;
  readonly message: string;
  readonly hint: string;
  /** When it last failed in this way. */
  readonly at: string;
  /** When central answered again; null if it has not since. */
  readonly over_at: string | null;
};

export type LinkStatus = {
  readonly state: LinkState;
  readonly since: string;
  /** When central was heard last, over the channel or by a poll; null if it was not since this start. */
  readonly heard_at: string | null;
  readonly central_url: string;
  readonly instance_id: string;
  readonly epoch: string | null;
  readonly applied_seq: number;
  /** The head that central told last, at `head_told_at`; null if it told none since this start. */
  readonly head_seq: number | null;
  readonly head_told_at: string | null;
  readonly lag: number | null;
  /**
   * The unfinished entry that the position waits for; null if it waits only for entries that are still to
   * come. It shows that a lag is due to a long download, say, and not to clears.
   */
  readonly oldest_unfinished: OldestUnfinished | null;
  readonly receipts_unacknowledged: number;
  /** When the next channel is tried; null while one is up or being tried. It is earlier if a poll finds central. */
  readonly next_try_at: string | null;
  readonly last_error: LinkFault | null;
};

export const linkMetrics = {
  accel_agent_link_connected: {
    kind: "gauge",
    help: "1 while the channel to central is up, otherwise 0.",
  },
  accel_agent_link_reconnects_total: {
    kind: "counter",
    help: "Channels to central that were opened after the first one.",
  },
  accel_agent_journal_applied_seq: {
    kind: "gauge",
    help: "The entry of central's journal up to which everything is done.",
  },
  accel_agent_journal_head_seq: {
    kind: "gauge",
    help: "The newest entry of central's journal that this agent knows of; absent until central has stated it since the start.",
  },
  accel_agent_journal_entries_total: {
    kind: "counter",
    help: "Outcomes of journal entries by kind and phase of the receipt.",
    labels: ["kind", "phase"],
  },
} as const;

/** A loss of contact is reported as information at once and as a warning when it lasts this long. */
const lossIsWarningMs = 30_000;

export class LinkTelemetry {
  readonly #health: Health;
  readonly #log: Log;
  readonly #metrics;
  readonly #now: () => Date;
  #state: LinkState = "disconnected";
  #since: string;
  #heardAt: Date | undefined;
  #lastError: LinkFault | undefined;
  /** The code of the loss that is going on, and when it began by the monotonic clock. */
  #loss: { readonly code: FaultCode; readonly beganMs: number } | undefined;
  readonly #waiting = new Set<number>();
  #channels = 0;

  constructor(options: {
    readonly registry: Registry;
    readonly health: Health;
    readonly log: Log;
    readonly now: () => Date;
  }) {
    this.#health = options.health;
    this.#log = options.log;
    this.#now = options.now;
    this.#metrics = createMetrics(linkMetrics, options.registry);
    this.#since = options.now().toISOString();
    this.#metrics.accel_agent_journal_head_seq.remove(); // Absent until known: 0 would be a claim.
  }

  get state(): LinkState {
    return this.#state;
  }

  get since(): string {
    return this.#since;
  }

  get lastError(): LinkFault | undefined {
    return this.#lastError;
  }

  get heardAt(): string | undefined {
    return this.#heardAt?.toISOString();
  }

  /** Notes that something came from central. */
  heard(): void {
    this.#heardAt = this.#now();
  }

  woke(stoodMs: number): void {
    const line = { stood_still_s: Math.round(stoodMs / 1_000) };
    this.#log.warn(line, "this process stood still; the link to central is opened anew");
  }

  channelBegins(): void {
    if (this.#channels++ > 0) this.#metrics.accel_agent_link_reconnects_total.inc();
  }

  /** `why`: what ended the contact before, where that is no fault, which is told of itself. */
  become(state: LinkState, why?: string): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since = this.#now().toISOString();
    this.#metrics.accel_agent_link_connected.set(state === "connected" ? 1 : 0);
    this.#log.info({ state, ...(why !== undefined && { why }) }, "link to central");
  }

  /** Notes that central answered as it should. */
  reached(): void {
    if (this.#lastError?.over_at === null)
      this.#lastError = { ...this.#lastError, over_at: this.#now().toISOString() };
    if (this.#loss === undefined) return;
    this.#log.info("central answers again");
    this.#health.settle(warningOf(this.#loss.code), "link");
    this.#loss = undefined;
  }

  failed(error: unknown): void {
    const code = codeOf(error);
    const hint = hintOf(error);
    const message = messageOf(error);
    this.#lastError = { code, message, hint, at: this.#now().toISOString(), over_at: null };
    if (this.#loss?.code !== code) {
      if (this.#loss !== undefined) this.#health.settle(warningOf(this.#loss.code), "link");
      this.#loss = { code, beganMs: performance.now() };
      this.#log.warn({ code, hint: this.#health.adviceOf(hint) }, message);
    }
    const lastsMs = performance.now() - this.#loss.beganMs;
    this.#health.raise(warningOf(code), severityOf(code, lastsMs), message, hint, "link");
  }

  /** `headSeq` is undefined while central has told none. */
  position(appliedSeq: number, headSeq: number | undefined): void {
    this.#metrics.accel_agent_journal_applied_seq.set(appliedSeq);
    if (headSeq !== undefined) this.#metrics.accel_agent_journal_head_seq.set(headSeq);
  }

  settled(kind: KnownEntry["kind"], { seq, phase, detail, took_ms }: Receipt): void {
    this.#metrics.accel_agent_journal_entries_total.inc({ kind, phase });
    const line = { seq, kind, phase, took_ms };
    if (phase === "applied" || phase === "gone") this.#log.info(line, "journal entry");
    else this.#log.warn({ ...line, detail }, "journal entry");
    if (this.#waiting.delete(seq)) this.#health.settle("entry_waiting", String(seq));
  }

  refused({ seq, kind }: JournalEntry, reason: string): void {
    const label = Object.hasOwn(journalKinds, kind) ? kind : "unknown";
    this.#metrics.accel_agent_journal_entries_total.inc({ kind: label, phase: "refused" });
    this.#log.warn({ seq, kind }, reason);
  }

  /** Notes that an entry is obeyed without its extension. */
  unread({ seq, kind }: JournalEntry, reason: string): void {
    this.#log.warn({ seq, kind }, `${reason}; its body is obeyed, which asks for as much or more`);
  }

  /** Notes that an entry failed and is tried again. */
  waiting(entry: KnownEntry, error: unknown): void {
    const text = `entry ${entry.seq} (${laneOf(entry)}) waits for another try: ${messageOf(error)}`;
    const hint = hintOf(error);
    this.#waiting.add(entry.seq);
    this.#health.raise("entry_waiting", "warning", text, hint, String(entry.seq));
    this.#log.debug({ seq: entry.seq, kind: entry.kind, code: codeOf(error) }, text);
  }

  /** Notes that the second part of a clear failed; the clear is applied again at the next start. */
  late({ seq, kind }: KnownEntry, error: unknown): void {
    this.#log.warn({ seq, kind, code: codeOf(error) }, `not finished: ${messageOf(error)}`);
  }

  /** Notes that a snapshot takes the place of the entries that were under way. Without a reason it is the first one: each agent begins so, behind `join`. */
  resync(reason: string | undefined): void {
    if (reason === undefined)
      this.#log.info(
        "no state yet, as at a first start: taking the snapshot of central; its domains are served once it is applied",
      );
    else this.#log.warn({ reason }, "taking a snapshot from central");
    for (const seq of this.#waiting) this.#health.settle("entry_waiting", String(seq));
    this.#waiting.clear();
  }

  /** Notes that a snapshot failed for another reason than that central cannot be reached. */
  snapshotFailed(error: unknown): void {
    const text = `central's snapshot could not be applied: ${messageOf(error)}`;
    this.#health.raise("snapshot_pending", "error", text, hintOf(error));
    this.#log.error({ code: codeOf(error) }, text);
  }

  snapshotTaken(seq: number): void {
    this.#health.settle("snapshot_pending");
    this.#log.info({ seq }, "snapshot applied");
  }

  unwritable(error: unknown): void {
    const text = `agent.db cannot be written: ${messageOf(error)}`;
    const hint = isDiskFull(error) ? fullHint : unwritableHint;
    this.#health.raise("state_unwritable", "error", text, hint);
    this.#log.error(text);
  }

  written(): void {
    this.#health.settle("state_unwritable");
  }

  reportFailed(error: unknown): void {
    this.#log.warn({ code: codeOf(error) }, `a report was left out: ${messageOf(error)}`);
  }

  defect(error: unknown): void {
    this.#log.error({ err: error }, `link: ${messageOf(error)}`);
  }
}

const fullHint =
  "The disk of the state directory is full: make room on it. What waits is written then, by itself.";
const unwritableHint =
  "Check that the user of the agent may write in the state directory, and that its disk is in order.";

const isDiskFull = (error: unknown): boolean =>
  ["SQLITE_FULL", "ENOSPC", "EDQUOT"].includes(systemCode(error) ?? "") ||
  /database or disk is full|ENOSPC|no space left/i.test(messageOf(error));

function severityOf(code: FaultCode, lastsMs: number): Severity {
  if (code === "SITE_DELETED") return "error";
  return code === "CENTRAL_UNREACHABLE" && lastsMs < lossIsWarningMs ? "info" : "warning";
}

/** Most faults of the link have a warning of their name. */
function warningOf(code: FaultCode): WarningCode {
  const name = code.toLowerCase();
  return isWarningCode(name) ? name : "link_failing";
}
