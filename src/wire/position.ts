// Where an agent stands in central's journal, in its own words. Central stores what it is told and never infers it from receipts: lanes finish out of order, and superseded ranges give no receipt.

import { Type, type Static } from "typebox";
import { Epoch, Seq, Sha256Text, Timestamp } from "./parts.ts";
import { closed } from "./validate.ts";

/** The first entry that was taken and is not done. `since`: when it was taken, by the agent's clock. */
export const OldestUnfinished = closed({
  seq: Seq,
  kind: Type.String({ maxLength: 64 }),
  since: Timestamp,
});
export type OldestUnfinished = Static<typeof OldestUnfinished>;

/** Every entry up to `applied_seq` of the store `epoch` is done; `chain` is the digest there. Epoch null: the agent has no state of any store. */
export const Position = closed({
  epoch: Type.Union([Epoch, Type.Null()]),
  applied_seq: Seq,
  chain: Sha256Text,
  /** Null: nothing is under way. What is done above it shows in no position until it is done too. */
  oldest_unfinished: Type.Union([OldestUnfinished, Type.Null()]),
});
export type Position = Static<typeof Position>;

/**
 * Header of central's answers, the upgrade to a channel included: what it takes beyond the messages of the release before. Schemas are closed, so an agent says
 * these members only to a central that names them here; to an older central it speaks as the release before did.
 */
export const takesHeader = "accel-takes";
export const centralTakes = "position";

/** Whether the value of `accel-takes` names positions. */
export function takesPositions(header: string | readonly string[] | undefined): boolean {
  const words = typeof header === "string" ? header : (header ?? []).join(",");
  return words.split(",").some((word) => word.trim() === centralTakes);
}
