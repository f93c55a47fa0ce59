// What a worker and main say to each other about purge requests. Both are of one build, so nothing is validated.

import type { PurgeShare } from "../../../core/purge/purge-items.ts";

/** Asks main to clear what each share says. */
export type PurgeOrder = {
  readonly no: number;
  readonly shares: readonly PurgeShare[];
};

export type PurgeOutcome =
  /** It is in force here, durably, and the other accelerators will be told. `ids` has a clear for each share. */
  | { readonly kind: "cleared"; readonly ids: readonly string[]; readonly matched: number }
  /** One of the items cannot be meant. */
  | { readonly kind: "refused"; readonly message: string }
  /** It was not cleared, or not durably; the sender may try again. */
  | { readonly kind: "failed"; readonly message: string };

export type PurgeAnswered = { readonly no: number; readonly outcome: PurgeOutcome };
