// The agent's own sums, looked at all the time: accepted = committed + spooled + in memory + dropped, in sum and in each lane, and no sum of a run
// ever shrinks.

import { setTimeout as sleep } from "node:timers/promises";

export type Sums = {
  readonly accepted: number;
  readonly committed: number;
  readonly spooled: number;
  readonly inMemory: number;
  readonly dropped: number;
  readonly droppedBy: ReadonlyMap<string, number>;
  readonly unproven: number;
  /** What central has of runs whose disk took nothing: the agent cannot tell as what. */
  readonly unknown: number;
};

const name = "accel_agent_log_";
const everyMs = 150;

export class BalanceWatch implements AsyncDisposable {
  samples = 0;
  readonly violations: string[] = [];
  last: Sums | undefined;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  /** `metrics` rejects while nobody answers; `run` names what sums belong to. */
  constructor(metrics: () => Promise<string>, run: () => unknown) {
    this.#running = this.#watch(metrics, run);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #watch(metrics: () => Promise<string>, run: () => unknown): Promise<void> {
    let lastRun: unknown;
    while (!this.#stop.signal.aborted) {
      await sleep(everyMs);
      const before = run();
      const text = await metrics().catch(() => undefined);
      if (text === undefined || run() !== before) continue;
      this.look(text, before === lastRun ? this.last : undefined);
      lastRun = before;
    }
  }

  look(text: string, before: Sums | undefined): void {
    const sums = parseSums(text);
    if (sums === undefined) return; // It has only begun.
    this.samples++;
    this.last = sums;
    if (!isBalanced(sums)) this.violations.push(`unbalanced: ${JSON.stringify(sums)}`);
    for (const [lane, ofLane] of parseLanes(text))
      if (!isBalanced(ofLane)) this.violations.push(`lane ${lane}: ${JSON.stringify(ofLane)}`);
    if (before === undefined) return;
    for (const key of ["accepted", "committed", "dropped"] as const)
      if (sums[key] < before[key])
        this.violations.push(`${key} went from ${before[key]} to ${sums[key]}`);
    // What was unproven may turn out to be at central: it is unknown then.
    const besideOf = ({ unproven, unknown }: Sums): number => unproven + unknown;
    if (besideOf(sums) < besideOf(before))
      this.violations.push(`beside the sum: from ${besideOf(before)} to ${besideOf(sums)}`);
  }
}

type BareSums = Omit<Sums, "droppedBy" | "unproven" | "unknown">;

export function isDrained({ spooled, inMemory }: Sums): boolean {
  return spooled === 0 && inMemory === 0;
}

function isBalanced({ accepted, committed, spooled, inMemory, dropped }: BareSums): boolean {
  return (
    accepted === committed + spooled + inMemory + dropped &&
    Math.min(committed, spooled, inMemory, dropped) >= 0
  );
}

/** Undefined while the program does not have them yet. */
export function parseSums(text: string): Sums | undefined {
  const accepted = valueOf(text, "records_accepted_total");
  if (accepted === undefined) return undefined;
  const droppedLine = new RegExp(
    `^${name}records_dropped_total\\{reason="([^"]*)"\\} (\\d+)$`,
    "gm",
  );
  const droppedBy = new Map(
    [...text.matchAll(droppedLine)].map(([, reason = "", value]) => [reason, Number(value)]),
  );
  return {
    accepted,
    committed: valueOf(text, "records_committed_total") ?? 0,
    spooled: valueOf(text, "records_spooled") ?? 0,
    inMemory: valueOf(text, "records_in_memory") ?? 0,
    dropped: [...droppedBy.values()].reduce((sum, count) => sum + count, 0),
    droppedBy,
    unproven: valueOf(text, "records_unproven_total") ?? 0,
    unknown: valueOf(text, "records_unknown_total") ?? 0,
  };
}

function valueOf(text: string, metric: string): number | undefined {
  const value = new RegExp(`^${name}${metric} (\\S+)$`, "m").exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

function parseLanes(text: string): ReadonlyMap<string, BareSums> {
  const lanes = new Map<string, Record<string, number>>();
  for (const [, labels = "", value] of text.matchAll(
    /^accel_agent_log_lane_records\{([^}]*)\} (\S+)$/gm,
  )) {
    const lane = /lane="([^"]*)"/.exec(labels)?.[1] ?? "";
    const state = /state="([^"]*)"/.exec(labels)?.[1] ?? "";
    lanes.set(lane, { ...lanes.get(lane), [state]: Number(value) });
  }
  return new Map(
    [...lanes].map(([lane, states]) => [
      lane,
      {
        accepted: states["accepted"] ?? 0,
        committed: states["committed"] ?? 0,
        spooled: states["spooled"] ?? 0,
        inMemory: states["in_memory"] ?? 0,
        dropped: states["dropped"] ?? 0,
      },
    ]),
  );
}
