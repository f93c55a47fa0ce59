// Health as coded warnings: one list feeds status, /readyz, metrics, the status page and the reports to central.

import type { WarningCode } from "./warning-codes.ts";

export type Severity = "info" | "warning" | "error";
export type HealthWarning = {
  readonly code: string;
  readonly severity: Severity;
  readonly text: string;
  readonly since: string;
  readonly hint: string;
};

export class Health {
  readonly #warnings = new Map<string, HealthWarning>();
  readonly #now: () => Date;

  constructor(now: () => Date) {
    this.#now = now;
  }

  /**
   * Raises a warning. Raising it again keeps `since` and renews the text. `key` tells apart several warnings
   * of one code (a domain, a lane).
   */
  raise(code: WarningCode, severity: Severity, text: string, hint: string, key = ""): void {
    const id = `${code}/${key}`;
    const since = this.#warnings.get(id)?.since ?? this.#now().toISOString();
    this.#warnings.set(id, { code, severity, text, since, hint });
  }

  settle(code: WarningCode, key = ""): void {
    this.#warnings.delete(`${code}/${key}`);
  }

  /** Settles all warnings of other codes: those who raised them are no more. */
  settleAllBut(codes: readonly WarningCode[]): void {
    const kept = new Set<string>(codes);
    for (const [id, { code }] of this.#warnings) if (!kept.has(code)) this.#warnings.delete(id);
  }

  list(): readonly HealthWarning[] {
    return [...this.#warnings.values()];
  }
}
