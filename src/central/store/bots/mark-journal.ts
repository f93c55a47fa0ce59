// Coalesces what the journals are told of bot sets: the first change after a rest is told in its own transaction, those of the next 50 ms together when
// these are over. A burst of ten thousand marks to five thousand sites is twenty times five thousand entries a second, whatever its size.

import { setTimeout as sleepFor } from "node:timers/promises";
import type { Log } from "../../../base/log.ts";
import { journalVersions, unjournaledSets } from "./bot-versions.ts";
import type { Store } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";

export type MarkJournalDeps = {
  readonly store: Store;
  /** One transaction over the store, with what queries need. */
  readonly transact: (action: (work: Work) => Promise<void>) => Promise<readonly number[]>;
  /** Deployment sites whose journal grew. */
  readonly wake: (deploymentSiteIds: readonly number[]) => void;
  readonly log: Log;
  readonly windowMs?: number;
};

const retryMs = 1_000;

export class MarkJournal implements AsyncDisposable {
  readonly #deps: MarkJournalDeps;
  readonly #windowMs: number;
  readonly #ended = new AbortController();
  #toldMs = -Infinity;
  #waiting = new Set<number>();
  #running: Promise<void> | undefined;

  constructor(deps: MarkJournalDeps) {
    this.#deps = deps;
    this.#windowMs = deps.windowMs ?? 50;
  }

  /** Takes up what a crash left. */
  async open(): Promise<void> {
    const { store } = this.#deps;
    const left = await store.transaction().execute(async (tx) => unjournaledSets({ tx }));
    this.changed(new Set(left));
  }

  /** Takes up what another central left that is gone. Never rejects. */
  async takeUp(): Promise<void> {
    try {
      await this.open();
    } catch (error) {
      this.#deps.log.error({ err: error }, "changes of bot sets that are left are not journaled");
    }
  }

  isDue(): boolean {
    const nowMs = performance.now();
    if (this.#running !== undefined || nowMs - this.#toldMs < this.#windowMs) return false;
    this.#toldMs = nowMs;
    return true;
  }

  changed(setIds: ReadonlySet<number>): void {
    if (setIds.size === 0) return;
    for (const id of setIds) this.#waiting.add(id);
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Ends after telling what waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#running;
  }

  /** Tells the journals. Never rejects: what fails is tried again, at the latest at the next start. */
  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      await this.#rest(this.#toldMs + this.#windowMs - performance.now());
      const setIds = [...this.#waiting];
      this.#waiting.clear();
      this.#toldMs = performance.now();
      try {
        this.#deps.wake(await this.#deps.transact(async (work) => journalVersions(work, setIds)));
      } catch (error) {
        this.#deps.log.error({ err: error }, "changes of bot sets could not be journaled");
        if (this.#ended.signal.aborted) return;
        for (const id of setIds) this.#waiting.add(id);
        await this.#rest(retryMs);
      }
    }
  }

  async #rest(ms: number): Promise<void> {
    if (ms > 0)
      await sleepFor(ms, undefined, { signal: this.#ended.signal }).catch(() => undefined);
  }
}
