// The threads of an agent that visitors would have to wait for. One that takes another agent's place starts them before it takes anything.

import { entryUrl } from "../base/entry.ts";
import { PreparedThreads } from "../base/prepared-threads.ts";
import { workerHeapMiB } from "./accelerator/pool/worker-handle.ts";
import { tableHeapMiB } from "./bots/tables/table-client.ts";
import { indexHeapMiB } from "./cache/index/index-client.ts";
import { spoolHeapMiB } from "./requests/ship/spool-client.ts";

export class AgentThreads implements AsyncDisposable {
  readonly spooler = new PreparedThreads(entryUrl(import.meta.url, "./spooler"));
  readonly indexer = new PreparedThreads(entryUrl(import.meta.url, "./indexer"));
  readonly tabler = new PreparedThreads(entryUrl(import.meta.url, "./tabler"));
  readonly worker = new PreparedThreads(entryUrl(import.meta.url, "./worker"));

  /** Resolves when they are loaded. */
  async prepare(workers: number): Promise<void> {
    this.spooler.start("spool", spoolHeapMiB);
    this.indexer.start("indexer", indexHeapMiB);
    this.tabler.start("tables", tableHeapMiB);
    for (let no = 1; no <= workers; no++) this.worker.start(`accelerator-${no}`, workerHeapMiB);
    await Promise.all(this.#all.map(async (threads) => threads.loaded()));
  }

  /** Ends those that the start had no use for: a host without bot sets has no table thread. Whoever wants one later starts it. */
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
