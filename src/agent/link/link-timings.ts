// Every time of the link in one place, so that tests can shorten them.

import { linkBackoff, refusedBackoff, type Backoff } from "../../core/backoff.ts";
import { pingIntervalMs, reportIntervalMs } from "../../wire/channel.ts";

export type LinkTimings = {
  readonly pingIntervalMs: number;
  /** The time from the upgrade to `welcome`. */
  readonly welcomeMs: number;
  /** A receipt that is unanswered for this long shows a dead channel. */
  readonly ackMs: number;
  /** A contact that lasted this long was a good one: the next waits start small again. */
  readonly stableMs: number;
  readonly pollPeriodMs: number;
  readonly longPollMs: number;
  /** The pause between two long polls that were answered at once with nothing. */
  readonly longPollPauseMs: number;
  /** The time after which a channel that a proxy refused is tried again. */
  readonly upgradeRetryMs: number;
  /** The same where the proxy says that central does not answer, which it may again in a moment. */
  readonly gatewayRetryMs: number;
  readonly reportIntervalMs: number;
  /** The time that entries under way have to stop before a snapshot. */
  readonly abandonMs: number;
  /** The time that everything has to stop at the end. What still runs then is left to itself, unrecorded. */
  readonly closeMs: number;
  /** How often the agent looks whether it was frozen, and the time without a look after which it was. */
  readonly wakeLookMs: number;
  readonly frozenMs: number;
  readonly backoff: Backoff;
  /** The same while nothing answers for central. */
  readonly refused: Backoff;
};

export const linkTimings: LinkTimings = {
  pingIntervalMs,
  welcomeMs: 10_000,
  // Central acknowledges what it has stored, and says in its pongs that it keeps what came while its store is away; one of a release before does not say so.
  ackMs: 300_000,
  stableMs: 60_000,
  pollPeriodMs: 60_000,
  longPollMs: 30_000,
  longPollPauseMs: 1_000,
  upgradeRetryMs: 300_000,
  gatewayRetryMs: 10_000,
  reportIntervalMs,
  abandonMs: 10_000,
  closeMs: 500,
  wakeLookMs: 1_000,
  frozenMs: pingIntervalMs,
  backoff: linkBackoff,
  refused: refusedBackoff,
};
