// Problems that visitors can cause as often as they like, logged as often as a person can read them: one line a problem and period.

import type { Log } from "../../../base/log.ts";

const periodMs = 10_000;
/** Keys are made of domains and fixed words; beyond this many the oldest is forgotten. */
const keysMax = 1_000;

export class ProblemLog {
  readonly #log: Log;
  readonly #steadyMs: () => number;
  readonly #told = new Map<string, { readonly atMs: number; leftOut: number }>();

  constructor(log: Log, steadyMs: () => number) {
    this.#log = log;
    this.#steadyMs = steadyMs;
  }

  /** `leftOut` tells of how many there was no line since the last one. */
  tell(level: "warn" | "error", domain: string | null, text: string, error: unknown): void {
    const key = `${level} ${domain} ${text}`;
    const nowMs = this.#steadyMs();
    const before = this.#told.get(key);
    if (before !== undefined && nowMs - before.atMs < periodMs) {
      before.leftOut++;
      return;
    }
    this.#told.delete(key);
    this.#told.set(key, { atMs: nowMs, leftOut: 0 });
    const oldest = this.#told.keys().next().value;
    if (this.#told.size > keysMax && oldest !== undefined) this.#told.delete(oldest);
    this.#log[level]({ domain, err: error, leftOut: before?.leftOut ?? 0 }, text);
  }
}
