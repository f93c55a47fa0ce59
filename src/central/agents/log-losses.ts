// Request records that agents told as lost, by day of arrival, deployment site and reason: what an operator asks
// central for when an agent says that records were dropped.

import { lossReasons } from "../../wire/request-log.ts";

/** The reasons under which central counts losses: those of agents, and some of its own. */
export const centralLossReasons = [
  ...lossReasons,
  /** Agents had released what a restored central lacks. */
  "lost_in_restore",
  /** Agents had released what the database of request logs lacks: a failover, or a restore of it, lost commits. */
  "lost_in_failover",
  /** A newer release of the agent has a word for it that this central does not know. */
  "other",
] as const;
export type CentralLossReason = (typeof centralLossReasons)[number];

export function centralLossReason(told: string): CentralLossReason {
  return centralLossReasons.find((reason) => reason === told) ?? "other";
}

/** What one day's file has of one deployment site and reason. */
export type DayLoss = {
  readonly siteId: number;
  /** As the agent told it. */
  readonly reason: string;
  /** So many records are known to be lost. */
  readonly atLeast: number;
  /** The numbers that the gaps cover: more than so many are not. */
  readonly atMost: number;
  /** When the first and the last of the gaps arrived. */
  readonly firstMs: number;
  readonly lastMs: number;
};
export type LossOfDay = DayLoss & {
  /** YYYY-MM-DD, of arrival (UTC). */
  readonly day: string;
};
export type LossDays = {
  /** The days that were looked at, the newest first. */
  readonly days: readonly string[];
  readonly losses: readonly LossOfDay[];
  /** Days whose files are broken. */
  readonly unreadable: readonly string[];
};
