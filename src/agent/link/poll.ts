// The independent poll: beside the channel, whether that is up or not, so that one that is wedged hides nothing. Spread over the fleet by name, so that agents that were started together do not ask together.

import { createHash } from "node:crypto";
import { every, sleep } from "../../base/wait.ts";

export const pollSpread = 0.2;

/** Where in the period this name's first poll lies. */
export function pollPhaseMs(name16: string, periodMs: number): number {
  return createHash("sha256").update(name16).digest().readUIntBE(0, 6) % periodMs;
}

/** From now to the next moment with that phase; 0 to `periodMs`. */
export function firstPollMs(phaseMs: number, nowMs: number, periodMs: number): number {
  return (((phaseMs - nowMs) % periodMs) + periodMs) % periodMs;
}

export type PollOptions = {
  readonly name16: string;
  readonly periodMs: number;
  readonly now: () => Date;
  readonly random: () => number;
  readonly stop: AbortSignal;
  /** Must not reject. */
  readonly poll: () => Promise<void>;
};

export async function runPoll(options: PollOptions): Promise<void> {
  const { name16, periodMs, now, random, stop, poll } = options;
  const firstMs = firstPollMs(pollPhaseMs(name16, periodMs), now().getTime(), periodMs);
  if (!(await sleep(firstMs, stop))) return;
  await poll();
  await every(periodMs, poll, { stop, spread: pollSpread, random, onError: () => undefined });
}
