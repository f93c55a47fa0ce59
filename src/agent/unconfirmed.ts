// What follows when central has not said in time that no clear was missed before this start: the settings decide, and the operator is told.

import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import type { IndexClient } from "./cache/index/index-client.ts";

export type UnconfirmedParts = {
  readonly index: Pick<IndexClient, "stats" | "setUnconfirmedServes">;
  /** Central has given this host a state before, be it in an earlier run. */
  readonly hasState: () => boolean;
  readonly unconfirmed: "revalidate" | "serve";
  readonly health: Pick<Health, "raise">;
  readonly log: Pick<Log, "warn">;
};

/**
 * Starts the time of waiting for central's word. Never rejects. `confirmed` is aborted when the word comes
 * after all.
 */
export async function startUnconfirmed(
  { index, hasState, unconfirmed, health, log }: UnconfirmedParts,
  confirmed: AbortSignal,
): Promise<void> {
  if (unconfirmed === "serve") index.setUnconfirmedServes();
  // A new host: there is nothing that a clear could have been missed for.
  if (!hasState() && (await isEmpty(index))) return;
  if (confirmed.aborted) return;
  const what = unconfirmed === "serve" ? "served as they are" : "fetched again from the origin";
  health.raise(
    "clears_unconfirmed",
    "warning",
    `central has not confirmed that no clear was missed; cached responses are ${what}`,
    "Clears given meanwhile take effect when central answers.",
  );
  log.warn({ unconfirmed }, "starting before central has confirmed that no clear was missed");
}

/** An index that does not answer may hold anything. */
async function isEmpty(index: UnconfirmedParts["index"]): Promise<boolean> {
  try {
    const { isOpen, entries } = await index.stats();
    return isOpen && entries === 0;
  } catch {
    return false;
  }
}
