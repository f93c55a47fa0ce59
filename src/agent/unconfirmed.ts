// What happens when central has not said in time that no clear was missed before this start: the settings
// decide, and the operator is told.

import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import { sleep } from "../base/wait.ts";
import type { IndexClient } from "./cache/index/index-client.ts";

export type UnconfirmedParts = {
  readonly index: Pick<IndexClient, "stats" | "setUnconfirmedServes">;
  /** Whether central has ever given this host a state, even in an earlier run. */
  readonly hasState: () => boolean;
  readonly unconfirmed: "revalidate" | "serve";
  readonly health: Pick<Health, "raise">;
  readonly log: Pick<Log, "warn">;
};

/**
 * Applies the setting and warns. Never rejects. `confirmed` is aborted when central's word comes after all.
 */
export async function startUnconfirmed(
  { index, hasState, unconfirmed, health, log }: UnconfirmedParts,
  confirmed: AbortSignal,
): Promise<void> {
  if (unconfirmed === "serve") index.setUnconfirmedServes();
  // On a new host nothing is cached, so no clear can have been missed.
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

/** Whether nothing is cached. An index that does not answer may hold anything. */
async function isEmpty(index: UnconfirmedParts["index"]): Promise<boolean> {
  try {
    const { isOpen, entries } = await index.stats();
    return isOpen && entries === 0;
  } catch {
    return false;
  }
}

export type WakeParts = {
  readonly index: Pick<IndexClient, "isConfirmed" | "setUnconfirmed" | "setUnconfirmedServes">;
  readonly unconfirmed: "revalidate" | "serve";
  /** The longest time for which the origin is asked for everything, in milliseconds. */
  readonly catchUpMs: number;
  readonly stop: AbortSignal;
};

/**
 * Doubts what is stored after this process stood still, until central has told the head of its journal and that is applied. If central
 * cannot be reached within `catchUpMs`, the agent goes on serving, as one that is cut off while it runs does.
 */
export class WakeDoubt {
  readonly #parts: WakeParts;
  #over = new AbortController();

  constructor(parts: WakeParts) {
    this.#parts = parts;
  }

  /** Begins the doubt. What was in doubt before stays so for as long as it would. */
  begin(): void {
    const { index, unconfirmed, catchUpMs, stop } = this.#parts;
    if (unconfirmed === "serve" || !index.isConfirmed) return;
    index.setUnconfirmed();
    this.#over = new AbortController();
    void this.#wait(catchUpMs, AbortSignal.any([stop, this.#over.signal]));
  }

  async #wait(ms: number, over: AbortSignal): Promise<void> {
    if (await sleep(ms, over)) this.#parts.index.setUnconfirmedServes();
  }

  /** Central has told the head, and everything up to it is applied. */
  end(): void {
    this.#over.abort();
  }
}
