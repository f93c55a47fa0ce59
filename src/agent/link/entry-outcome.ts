// One entry through its applier: tried again while central cannot be asked, a few times where a repetition may help, and in the end a receipt that says what became of it.

import { AccelError, codeOf, messageOf, type FaultCode } from "../../core/faults.ts";
import { backoffMs, type Backoff } from "../../core/backoff.ts";
import { sleep } from "../../base/wait.ts";
import type { KnownEntry } from "../../wire/journal.ts";
import type { Receipt } from "../../wire/receipt.ts";
import type { JobSignals } from "./lanes.ts";
import { isBetweenUs } from "./refusal.ts";

/** The outcome of a clear whose bytes are deleted too. */
export type LaterOutcome = {
  readonly phase: "gone";
  readonly detail: Readonly<Record<string, unknown>>;
};
/** Both parts of an outcome, as they are by now. */
export type AmendedOutcome = {
  readonly detail: Readonly<Record<string, unknown>>;
  readonly later: LaterOutcome;
};

/** The effect is durable before this is given. */
export type EntryOutcome = {
  readonly phase: "applied" | "failed" | "refused";
  readonly detail: Readonly<Record<string, unknown>>;
  /** Resolves when the bytes of a clear are deleted too. */
  readonly later?: Promise<LaterOutcome>;
  /** Calls `tell` whenever more is known of a clear since `later`. */
  readonly onAmended?: (tell: (amended: AmendedOutcome) => void) => void;
};

export const refused = (reason: string, code?: FaultCode): EntryOutcome => ({
  phase: "refused",
  detail: { reason, ...(code === undefined ? {} : { code }) },
});

/** Turns faults of what was asked for into refusals with their reason. Everything else is the caller's to retry or report. */
export async function refusing(
  codes: readonly FaultCode[],
  action: () => Promise<EntryOutcome>,
): Promise<EntryOutcome> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof AccelError && codes.includes(error.code))
      return refused(messageOf(error), error.code);
    throw error;
  }
}

/**
 * Each makes the effect durable, under the entry's own identity: called again with the same entry it gives the same outcome. Throws what is retried or
 * receipted as failed; what it throws when `stop` has aborted is told to nobody, and nothing has changed then.
 */
export type Appliers = {
  readonly [K in KnownEntry["kind"]]: (
    entry: Extract<KnownEntry, { kind: K }>,
    stop: AbortSignal,
  ) => Promise<EntryOutcome>;
};

/** `later`: the receipt of the second part; undefined where it failed, told by `onLate`. `onAmended`: both receipts anew, each time. */
export type Settled = {
  readonly receipt: Receipt;
  readonly later?: Promise<Receipt | undefined>;
  readonly onAmended?: (tell: (receipts: readonly Receipt[]) => void) => void;
};

export type SettleOptions = {
  readonly appliers: Appliers;
  readonly signals: JobSignals;
  readonly backoff: Backoff;
  readonly random: () => number;
  /** Told before each wait for another try. */
  readonly onWait: (error: unknown) => void;
  readonly onLate: (error: unknown) => void;
};

/**
 * The most tries after faults that may be retried but are not between us and central, such as a blob that
 * arrives damaged.
 */
const triesMax = 5;
const reasonCharsMax = 1_000;

/** `stopped`: there was no outcome before. Never rejects. */
export async function settleEntry(
  entry: KnownEntry,
  options: SettleOptions,
): Promise<Settled | "stopped"> {
  const { signals, random, backoff, onWait } = options;
  const { stop, superseded } = signals;
  const beganMs = performance.now();
  const tookMs = (): number => Math.round(performance.now() - beganMs);
  const awake = AbortSignal.any([stop, superseded]);
  const ending = endsEarly(entry) ? awake : stop;
  for (let attempt = 0; ; attempt++) {
    try {
      const outcome = await applierOf(entry, options.appliers)(entry, ending);
      return settledOf(entry.seq, outcome, { tookMs, onLate: options.onLate });
    } catch (error) {
      if (stop.aborted) return "stopped";
      const fault = ending.aborted && isOfEnding(error, superseded) ? endedFor(superseded) : error;
      const again =
        !ending.aborted && (isBetweenUs(error) || (isRetryable(error) && attempt + 1 < triesMax));
      if (again) {
        onWait(error);
        await sleep(backoffMs(attempt, random(), backoff), awake);
      }
      if (stop.aborted) return "stopped";
      if (again && !superseded.aborted) continue;
      const detail = superseded.aborted
        ? { ...describe(fault), superseded_by: Number(superseded.reason) }
        : describe(fault);
      return { receipt: { seq: entry.seq, phase: "failed", detail, took_ms: tookMs() } };
    }
  }
}

function settledOf(
  seq: number,
  { phase, detail, later, onAmended }: EntryOutcome,
  { tookMs, onLate }: { readonly tookMs: () => number } & Pick<SettleOptions, "onLate">,
): Settled {
  const receipt: Receipt = { seq, phase, detail, took_ms: tookMs() };
  if (later === undefined) return { receipt };
  let goneTookMs = 0;
  const second = later.then(
    (gone): Receipt => ({ seq, ...gone, took_ms: (goneTookMs = tookMs()) }),
    (error: unknown) => {
      onLate(error);
      return undefined;
    },
  );
  if (onAmended === undefined) return { receipt, later: second };
  return {
    receipt,
    later: second,
    onAmended: (tell) =>
      onAmended((amended) =>
        tell([
          { ...receipt, detail: amended.detail },
          { seq, ...amended.later, took_ms: goneTookMs },
        ]),
      ),
  };
}

export function refusedReceipt(seq: number, reason: string): Receipt {
  return { seq, phase: "refused", detail: { reason: clip(reason) }, took_ms: 0 };
}

/**
 * Whether it ends, if it can, when a later entry takes its place: an activation may download for hours, and what it has of the files stays for the
 * next one. The others are short, or what comes later builds on them, as a delta does on the set before.
 */
function endsEarly({ kind }: KnownEntry): boolean {
  return kind === "viewset.activated";
}

/** It says nothing about the entry: what it waited for was broken off. */
function isOfEnding(error: unknown, { reason }: AbortSignal): boolean {
  return (
    error === reason ||
    isBetweenUs(error) ||
    (error instanceof Error && error.name === "AbortError")
  );
}

function endedFor({ reason: seq }: AbortSignal): AccelError {
  return new AccelError("SUPERSEDED", `entry ${seq} took its place before it was in force`);
}

function isRetryable(error: unknown): boolean {
  return error instanceof AccelError && error.retryable;
}

function describe(error: unknown): { readonly reason: string; readonly code: string } {
  return { reason: clip(messageOf(error)), code: codeOf(error) };
}

function clip(text: string): string {
  return text.length <= reasonCharsMax ? text : `${text.slice(0, reasonCharsMax)}…`;
}

export function applierOf({ kind }: KnownEntry, appliers: Appliers) {
  // Each takes the entries of its own kind, which no type can say of a union.
  return appliers[kind] as (entry: KnownEntry, stop: AbortSignal) => Promise<EntryOutcome>;
}
