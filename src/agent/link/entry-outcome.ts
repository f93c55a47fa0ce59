// One entry through its applier: it is tried again while central cannot be asked, and a few times where a
// repetition may help; in the end a receipt says what became of it.

import { AccelError, codeOf, isShortage, messageOf, type FaultCode } from "../../core/faults.ts";
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
/** Both parts of the outcome of a clear, as they are known by now. */
export type AmendedOutcome = {
  readonly detail: Readonly<Record<string, unknown>>;
  readonly later: LaterOutcome;
};

/** What an applier made of an entry. The effect is durable before an applier returns this. */
export type EntryOutcome = {
  readonly phase: "applied" | "failed" | "refused";
  readonly detail: Readonly<Record<string, unknown>>;
  /** Resolves when the bytes of a clear are deleted too. */
  readonly later?: Promise<LaterOutcome>;
  /** Registers `tell`, to be called whenever more becomes known of a clear after `later`. */
  readonly onAmended?: (tell: (amended: AmendedOutcome) => void) => void;
};

export const refused = (reason: string, code?: FaultCode): EntryOutcome => ({
  phase: "refused",
  detail: { reason, ...(code === undefined ? {} : { code }) },
});

/**
 * Runs `action` and turns faults with one of these codes into refusals with their reason. Any other fault
 * passes through, for the caller to retry or report.
 */
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
 * One function for each kind of entry. It makes the effect durable under the entry's own identity: called
 * again with the same entry, it gives the same outcome. What it throws is retried or receipted as failed.
 * What it throws once `stop` has aborted is told to nobody, and nothing has changed then.
 */
export type Appliers = {
  readonly [K in KnownEntry["kind"]]: (
    entry: Extract<KnownEntry, { kind: K }>,
    stop: AbortSignal,
  ) => Promise<EntryOutcome>;
};

/**
 * An entry that has a receipt. `later` resolves with the receipt of the second part, or with undefined if
 * that failed, which `onLate` was told. `onAmended` registers a function that is given both receipts anew,
 * each time.
 */
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
  /** Called before each wait for another try. */
  readonly onWait: (error: unknown) => void;
  readonly onLate: (error: unknown) => void;
};

/**
 * The most tries after faults that may be retried but are not between us and central, such as a blob that
 * arrives damaged.
 */
const triesMax = 5;
const reasonCharsMax = 1_000;

/**
 * Applies an entry until there is an outcome. `stopped`: it was stopped before there was one. Never rejects.
 */
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
        !ending.aborted &&
        (isPassing(error, entry) || (isRetryable(error) && attempt + 1 < triesMax));
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
 * Whether the entry ends early when a later one takes its place. An activation does: it may download for
 * hours, and the files that it has fetched stay for the next one. The others are short, or later entries
 * build on them, as a delta builds on the set before it.
 */
function endsEarly({ kind }: KnownEntry): boolean {
  return kind === "viewset.activated" || kind === "viewset.prepare";
}

/** Whether the error says nothing about the entry but that its wait was broken off. */
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

/** Whether the fault is none of the entry's, and ends some time: central cannot be asked now, or this host has no room. */
function isPassing(error: unknown, entry: KnownEntry): boolean {
  return isBetweenUs(error) || waitsForRoom(entry, error);
}

/** The kinds of which somebody waits for the outcome, and may begin another one. */
const toldOfShortage = ["cache.clear", "viewset.import", "viewset.prepare"];

/** A shortage of room ends some time; an entry waits for that unless somebody waits for its outcome. */
export function waitsForRoom({ kind }: KnownEntry, error: unknown): boolean {
  return isShortage(error) && !toldOfShortage.includes(kind);
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
  // Each applier takes the entries of its own kind, which no type can say of a union.
  return appliers[kind] as (entry: KnownEntry, stop: AbortSignal) => Promise<EntryOutcome>;
}
