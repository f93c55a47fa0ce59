// What the intake takes of the processor for a record, with and without counting, in rounds that alternate.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { RequestCounts } from "../../src/core/analytics/request-counts.ts";
import { DayCounts } from "../../src/central/agents/log-day-counts.ts";
import { LogStore } from "../../src/central/agents/log-store.ts";
import { tempDir } from "../../test/support/temp-dir.ts";
import { medianWithInterval } from "../support/interval.ts";
import type { Figures } from "../support/figures.ts";
import { Traffic, type Batch } from "./traffic.ts";

const beginS = 1_900_000_000;
const lane = { epoch: "00000000000000a3", no: 1 };

class Idle extends RequestCounts {
  override add(): void {}
  override miss(): void {}
}

export function measureIntake(figures: Figures, records: number, rounds: number): void {
  figures.head(
    `processor time of the intake: decode, check and commit ${records.toLocaleString("en")} records, ${rounds} rounds each`,
  );
  for (const [name, rate, size] of [
    ["1 a second, batches of 1,000", 1, 1_000],
    ["100 a second, batches of 2,000", 100, 2_000],
    ["100 a second, batches of 100", 100, 100],
  ] as const) {
    const traffic = new Traffic("cost.example.com", 3);
    const batches = Array.from({ length: Math.round(records / size) }, (_, no) => {
      const fromS = beginS + (no * size) / rate;
      return traffic.batch(size, fromS, fromS + size / rate);
    });
    const costs = { counting: [] as number[], not: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      costs.counting.push(costOf(batches));
      costs.not.push(withoutCounting(() => costOf(batches)));
    }
    const [counting, not] = [medianWithInterval(costs.counting), medianWithInterval(costs.not)];
    const more = `without counting ${not.median.toFixed(2)} (${not.from.toFixed(2)} to ${not.to.toFixed(2)})`;
    figures.add(name, counting.median, "µs/record", undefined, more);
    figures.add(`${name}: with / without`, counting.median / not.median, "×");
  }
}

/** Of this thread, in µs a record. */
function costOf(batches: readonly Batch[]): number {
  using dir = tempDir();
  const logs = join(dir.path, "logs");
  mkdirSync(logs);
  using store = new LogStore(logs, (path) => {
    throw new Error(`${path} is broken`);
  });
  let seq = 0;
  const before = process.threadCpuUsage();
  for (const { body, sent } of batches) {
    const [firstSeq, lastSeq] = [seq + 1, seq + sent.length];
    seq = lastSeq;
    const request = { siteId: 1, lane, firstSeq, lastSeq, encoding: "identity" as const };
    store.append([{ ...request, body, nowMs: beginS * 1e3 }]);
  }
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / seq;
}

function withoutCounting<T>(action: () => T): T {
  const idle = new Idle();
  const counts = Object.getOwnPropertyDescriptors(DayCounts.prototype);
  Object.defineProperties(DayCounts.prototype, {
    of: { ...counts.of, value: () => idle },
    flush: { ...counts.flush, value: () => undefined },
  });
  try {
    return action();
  } finally {
    Object.defineProperties(DayCounts.prototype, { of: counts.of, flush: counts.flush });
  }
}
