// What an applier resolves with: the outcome that its entry is receipted with.

import { AccelError, messageOf, type FaultCode } from "../../core/faults.ts";

/** Of a clear: when the bytes are deleted too. */
export type LaterOutcome = {
  readonly phase: "gone";
  readonly detail: Readonly<Record<string, unknown>>;
};
/** Both parts of an outcome, as they are by now. */
export type AmendedOutcome = {
  readonly detail: Readonly<Record<string, unknown>>;
  readonly later: LaterOutcome;
};

export type EntryOutcome = {
  readonly phase: "applied" | "failed" | "refused";
  readonly detail: Readonly<Record<string, unknown>>;
  /** Of a clear: resolves when the bytes are gone. */
  readonly later?: Promise<LaterOutcome>;
  /** Of a clear: `tell` is called whenever more is known of it since `later`. */
  readonly onAmended?: (tell: (amended: AmendedOutcome) => void) => void;
};

export const refused = (reason: string, code?: FaultCode): EntryOutcome => ({
  phase: "refused",
  detail: { reason, ...(code === undefined ? {} : { code }) },
});

/** Faults of what was asked for are refusals with their reason; everything else is the caller's to retry or report. */
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
