// Where an agent stands in central's journal, in its own words. Central stores what it is told and never
// infers it from receipts: lanes finish out of order, and superseded ranges give no receipt.

import { Type, type Static } from "typebox";
import { Epoch, Seq, Sha256Text, Timestamp } from "./parts.ts";
import { closed } from "./validate.ts";

/**
 * The first entry that was taken and is not done. `since` is when the process that runs took it, by the agent's clock:
 * what was under way at a restart is taken again.
 */
export const OldestUnfinished = closed({
  seq: Seq,
  kind: Type.String({ maxLength: 64 }),
  since: Timestamp,
});
export type OldestUnfinished = Static<typeof OldestUnfinished>;

/**
 * Every entry up to `applied_seq` of the store `epoch` is done; `chain` is the digest there. `epoch` is null
 * if the agent has no state of any store.
 */
export const Position = closed({
  epoch: Type.Union([Epoch, Type.Null()]),
  applied_seq: Seq,
  chain: Sha256Text,
  /**
   * Null if nothing is under way. Later entries that are done do not show in a position until this one is
   * done too.
   */
  oldest_unfinished: Type.Union([OldestUnfinished, Type.Null()]),
});
export type Position = Static<typeof Position>;

/**
 * The same header in an agent's requests for the journal, for a snapshot and for a channel. `extension`: it takes
 * extensions of entries (`journal.ts`) and questions with items (`ask.ts`). `classes`: it takes policies for classes of
 * bots, as entries and in snapshots. `held`: it takes pongs that say that central waits for its store. An agent of the previous release does not send what it does not know.
 */
export const agentTakes = "extension, classes, held";

/**
 * A header of central's answers, including the upgrade to a channel: which members central accepts beyond the
 * messages of the previous release. Schemas are closed, so an agent sends these members only to a central
 * that names them here. To an older central it speaks as the previous release did.
 */
export const takesHeader = "accel-takes";
export const centralTakes = "position, variant-days, host-name";

export type CentralTakes = {
  /** `position` in receipts and reports. */
  readonly positions: boolean;
  /** `today` in the variants of a report. */
  readonly variantDays: boolean;
  /** `host_name` in a report. */
  readonly hostNames: boolean;
};

/** Reads the value of central's `accel-takes`. */
export function readCentralTakes(header: string | readonly string[] | undefined): CentralTakes {
  return {
    positions: names(header, "position"),
    variantDays: names(header, "variant-days"),
    hostNames: names(header, "host-name"),
  };
}

/** Returns whether the value of an agent's `accel-takes` names extensions. */
export function takesExtensions(header: string | readonly string[] | undefined): boolean {
  return names(header, "extension");
}

/** Returns whether the value of an agent's `accel-takes` names classes of bots. */
export function takesClasses(header: string | readonly string[] | undefined): boolean {
  return names(header, "classes");
}

/** Returns whether the value of an agent's `accel-takes` names pongs with `held`. */
export function takesHeld(header: string | readonly string[] | undefined): boolean {
  return names(header, "held");
}

function names(header: string | readonly string[] | undefined, word: string): boolean {
  const words = typeof header === "string" ? header : (header ?? []).join(",");
  return words.split(",").some((one) => one.trim() === word);
}
