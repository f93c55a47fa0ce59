// Fills central's request logs and the numbers of them by its own threads, as they are filled in production: batches in, folds beside them, days removed by
// the retention of the settings. Only the time is given.

import { existsSync } from "node:fs";
import { silentLog } from "../../src/base/log.ts";
import { LogThread } from "../../src/central/agents/log-client.ts";
import { Ledger, Traffic, type Batch } from "./traffic.ts";

/** A domain with what was sent of it. */
export class Sender {
  readonly siteId: number;
  readonly traffic: Traffic;
  readonly ledger = new Ledger();

  constructor(siteId: number, domain: string, seed: number) {
    this.siteId = siteId;
    this.traffic = new Traffic(domain, seed);
  }
}

export type Filling = {
  readonly stateDir: string;
  readonly slow: Sender;
  readonly fast: Sender;
  /** Seconds since the epoch. */
  readonly slowSinceS: number;
  readonly fastSinceS: number;
  readonly untilS: number;
  readonly say: (line: string) => void;
};

export const slowRate = 1;
export const fastRate = 100;
const slowBatch = 1_000;
const fastBatch = 2_000;
const lane = { epoch: "00000000000000a1", no: 1 };
/** The defaults of the settings. */
const retention = { ageMs: 30 * 86_400_000, bytesMax: 20 * 2 ** 30 };
const analyticsBytesMax = 2 * 2 ** 30;
const waitingMax = 8;

export async function fill(filling: Filling): Promise<{ readonly records: number }> {
  const { stateDir, slow, fast, slowSinceS, fastSinceS, untilS, say } = filling;
  if (!existsSync(`${stateDir}/logs`)) throw new Error("central has not been started yet");
  await using thread = new LogThread({
    entry: new URL("../../src/central/logger.ts", import.meta.url),
    directory: `${stateDir}/logs`,
    analytics: { path: `${stateDir}/analytics.db`, bytesMax: analyticsBytesMax },
    log: silentLog(),
    broken: (path) => {
      throw new Error(`${path} is broken`);
    },
  });
  const intake = new Intake(thread);
  let day = dayOf(slowSinceS);
  const sliceS = slowBatch / slowRate;
  for (let fromS = slowSinceS; fromS < untilS; fromS += sliceS) {
    const toS = Math.min(fromS + sliceS, untilS);
    const stepS = fastBatch / fastRate;
    for (let at = Math.max(fromS, fastSinceS); at < toS; at += stepS) {
      const end = Math.min(at + stepS, toS);
      await intake.take(fast, fast.traffic.batch(Math.round((end - at) * fastRate), at, end), end);
    }
    await intake.take(
      slow,
      slow.traffic.batch(Math.round((toS - fromS) * slowRate), fromS, toS),
      toS,
    );
    intake.foldBeside(toS);
    if (dayOf(toS) === day) continue;
    day = dayOf(toS);
    await intake.end();
    await thread.retain(retention, toS * 1e3);
    if (day % 10 === 0) say(`${new Date(toS * 1e3).toISOString()}: ${intake.records} records`);
  }
  await intake.end();
  await thread.fold(untilS * 1e3);
  return { records: intake.records };
}

const dayOf = (atS: number): number => Math.floor(atS / 86_400);

class Intake {
  readonly #thread: LogThread;
  readonly #seqs = new Map<number, number>();
  #waiting: Promise<void>[] = [];
  #folding: Promise<void> | undefined;
  records = 0;

  constructor(thread: LogThread) {
    this.#thread = thread;
  }

  /** Resolves when another batch may come. */
  async take({ siteId, ledger }: Sender, batch: Batch, nowS: number): Promise<void> {
    const count = batch.sent.length;
    if (count === 0) return;
    const firstSeq = (this.#seqs.get(siteId) ?? 0) + 1;
    const lastSeq = firstSeq + count - 1;
    this.#seqs.set(siteId, lastSeq);
    const request = { siteId, lane, firstSeq, lastSeq, encoding: "identity" as const };
    this.#waiting.push(this.#commit({ ...request, body: batch.body, nowMs: nowS * 1e3 }));
    ledger.add(batch);
    this.records += count;
    if (this.#waiting.length >= waitingMax) await this.#waiting.shift();
  }

  /** Folds what there is unless that is under way. In production it is asked for once a minute. */
  foldBeside(nowS: number): void {
    this.#folding ??= this.#fold(nowS);
  }

  async end(): Promise<void> {
    await Promise.all(this.#waiting);
    this.#waiting = [];
    await this.#folding;
  }

  async #fold(nowS: number): Promise<void> {
    await this.#thread.fold(nowS * 1e3);
    this.#folding = undefined;
  }

  async #commit(request: Parameters<LogThread["append"]>[0]): Promise<void> {
    const { kind } = await this.#thread.append(request);
    if (kind !== "committed") throw new Error(`a batch was not committed: ${kind}`);
  }
}
