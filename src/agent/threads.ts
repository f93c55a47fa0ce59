// The threads of an agent that visitors would have to wait for. One that takes another agent's place starts them before it takes anything.

import { availableParallelism } from "node:os";
import { entryUrl } from "../base/entry.ts";
import { agentHeapMiB } from "../base/heap-limits.ts";
import { PreparedThreads } from "../base/prepared-threads.ts";
import type { AgentSettings } from "./settings/fields.ts";

export class AgentThreads implements AsyncDisposable {
  readonly spooler = new PreparedThreads(entryUrl(import.meta.url, "./spooler"));
  readonly indexer = new PreparedThreads(entryUrl(import.meta.url, "./indexer"));
  readonly tabler = new PreparedThreads(entryUrl(import.meta.url, "./tabler"));
  readonly worker = new PreparedThreads(entryUrl(import.meta.url, "./worker"));
  #hasTabler = false;

  /** Starts them. Resolves when they are loaded. */
  async prepare(workers: number): Promise<void> {
    this.spooler.start("spool", agentHeapMiB.spooler);
    this.indexer.start("indexer", agentHeapMiB.indexer);
    for (let no = 1; no <= workers; no++)
      this.worker.start(`accelerator-${no}`, agentHeapMiB.worker);
    await Promise.all(this.#all.map(async (threads) => threads.loaded()));
  }

  /** Starts the one that only hosts with bot sets wait for. Has no effect a second time. */
  prepareTabler(): void {
    if (!this.#hasTabler) this.tabler.start("tables", agentHeapMiB.tabler);
    this.#hasTabler = true;
  }

  /** Ends those that the start had no use for. Whoever wants one later starts it. */
  async endUnused(): Promise<void> {
    await this[Symbol.asyncDispose]();
  }

  get #all(): readonly PreparedThreads[] {
    return [this.spooler, this.indexer, this.tabler, this.worker];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map(async (threads) => threads[Symbol.asyncDispose]()));
  }
}

const workersMax = 16;

/** Returns the number of threads that serve visitors. */
export function workersOf(settings: AgentSettings): number {
  const chosen = settings["accelerator.workers"];
  return chosen === 0 ? Math.min(availableParallelism(), workersMax) : chosen;
}
