// A token bucket: something may happen `burst` times at once and `perSecond` times a second in the long run.
// Time is an argument.

export type BudgetRules = { readonly burst: number; readonly perSecond: number };

export class Budget {
  readonly #rules: BudgetRules;
  #left: number;
  #atMs: number;

  constructor(rules: BudgetRules, nowMs: number) {
    this.#rules = rules;
    this.#left = rules.burst;
    this.#atMs = nowMs;
  }

  /** Returns false if it has happened too often. */
  take(nowMs: number): boolean {
    const { burst, perSecond } = this.#rules;
    const refilled = (Math.max(0, nowMs - this.#atMs) / 1_000) * perSecond;
    this.#left = Math.min(burst, this.#left + refilled);
    this.#atMs = Math.max(this.#atMs, nowMs);
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
