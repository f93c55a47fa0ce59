// In which ways a fake central misbehaves.

import type { AgentApiError } from "../../src/wire/token.ts";

/** Set and reset at any time. */
export type Faults = {
  /** Every token request and every call is refused with 401 and this. */
  refuse: AgentApiError["code"] | undefined;
  /** Bearer tokens end after this many calls. */
  tokenCalls: number;
  /** The upgrade is answered with this status and no word of central. */
  upgradeStatus: number | undefined;
  /** The channel is there and says welcome, then nothing more: no entries, no acknowledgements, no pongs. */
  wedged: boolean;
  losePongs: boolean;
  /** Pongs say that the store is waited for. */
  holding: boolean;
  /** So many acknowledgements are not sent. */
  loseAcks: number;
  /** The journal is not handed out on the channel. */
  withholdEntries: boolean;
  /** Requests are cut off in the middle. */
  cut: boolean;
  /** Requests are answered after so long. */
  delayMs: number;
  /** Snapshots are answered 503 so often. */
  failSnapshots: number;
  /** A long poll is answered at once, as by a proxy that caches or cuts it. */
  impatient: boolean;
  /** It is of the release before: it says nothing of what it takes beyond that. */
  old: boolean;
};

export const noFaults: Faults = {
  refuse: undefined,
  tokenCalls: Infinity,
  upgradeStatus: undefined,
  wedged: false,
  losePongs: false,
  holding: false,
  loseAcks: 0,
  withholdEntries: false,
  cut: false,
  delayMs: 0,
  failSnapshots: 0,
  impatient: false,
  old: false,
};
