// Agents that send full batches of request records to central at a steady rate, as the way in while something else is measured.

import { zstdCompressSync } from "node:zlib";
import { sleep } from "../../src/base/wait.ts";
import { batchRecordsMax } from "../../src/wire/request-log.ts";
import { connectAgent } from "../../test/support/fake-agent.ts";
import { batchOf, type FillSite } from "./log-fill.ts";

export type Site = FillSite & { readonly name16: string; readonly secret16: string };

const intakeSites = 4;
/** Connection numbers of what is sent. */
export const takenFrom = 1_000_000_000;

/** Agents of some sites that send full batches at the rate until disposed. */
export class LogIntake implements AsyncDisposable {
  readonly #stop = new AbortController();
  readonly #began = performance.now();
  readonly #running: Promise<unknown>;
  records = 0;

  /** `rate`: records a second of all together. */
  constructor(url: string, sites: readonly Site[], rate: number) {
    const senders = sites.slice(0, intakeSites);
    const periodMs = (1_000 * batchRecordsMax * senders.length) / rate;
    this.#running = Promise.all(senders.map(async (site) => this.#send(url, site, periodMs)));
  }

  get seconds(): number {
    return (performance.now() - this.#began) / 1_000;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #send(url: string, site: Site, periodMs: number): Promise<void> {
    const agent = await connectAgent(url, site.name16, site.secret16);
    // Made once: making them would hold up the reads that are measured in this process.
    const body = zstdCompressSync(batchOf(site, takenFrom, Date.now(), 0.1));
    for (let last = batchRecordsMax; !this.#stop.signal.aborted; last += batchRecordsMax) {
      const sentAt = performance.now();
      const { status } = await agent.call("/request-logs", {
        method: "POST",
        headers: {
          "accel-lane": "00000000000000f2/1",
          "accel-first-seq": String(last - batchRecordsMax + 1),
          "accel-last-seq": String(last),
          "content-encoding": "zstd",
        },
        body,
      });
      if (status !== 200) throw new Error(`a batch was answered ${status}`);
      this.records += batchRecordsMax;
      await sleep(Math.max(0, periodMs - (performance.now() - sentAt)), this.#stop.signal);
    }
  }
}
