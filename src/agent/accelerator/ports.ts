// What the data plane needs beside the cache, declared by its consumer: somebody who judges, somebody who takes the records, a clock.

import type { Decision } from "../../core/serving/decision.ts";
import type { HostBots } from "../../core/serving/serving-state.ts";
import type { Verdict } from "../../core/serving/verdict.ts";
import type { RequestRecord } from "../../wire/request-log.ts";

/** Synchronous, never throws. Asked once for each request; `domain` is the main domain, for what it counts. */
export type Judge = (
  bots: HostBots,
  clientIp: string,
  userAgent: string | undefined,
  domain: string,
) => Verdict;

/** Takes each record once. Never throws, never blocks; what it cannot keep it counts. */
export interface RecordSink {
  /** `isClaimed`: room was kept for it. */
  accept(record: RequestRecord, isClaimed?: boolean): void;
}

/** Where a request is served only with room for its record. */
export interface RecordRoom {
  /** Keeps room for one record, until one is accepted as claimed. False: there is none now. Synchronous. */
  claim(): boolean;
}

/** Takes each decision against a visitor, gives the id that it can be looked up by. Never throws, never blocks; what it cannot keep it counts. */
export interface DecisionSink {
  note(decision: Decision): string;
}

export type Clock = {
  /** Wall clock, ms since the epoch with a fraction. Steps when the host's clock steps. */
  readonly wallMs: () => number;
  /** Like the wall clock, but never goes back: ages are taken with it. */
  readonly ageMs: () => number;
  /** Monotonic, ms with a fraction, from an arbitrary zero. */
  readonly steadyMs: () => number;
};

/** More than this between the wall clock and our idea of it is a step, not the rounding of `Date.now`. */
const stepMs = 5;

export function createClock(): Clock {
  const startedAt = Date.now();
  const startedSteady = performance.now();
  let offset = startedAt - startedSteady;
  const wallMs = (): number => {
    const steady = performance.now();
    const wall = Date.now();
    if (Math.abs(steady + offset - wall) > stepMs) offset = wall - steady;
    return steady + offset;
  };
  return {
    wallMs,
    ageMs: () => Math.max(wallMs(), startedAt + performance.now() - startedSteady),
    steadyMs: () => performance.now(),
  };
}
