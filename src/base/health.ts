// Health as coded warnings: one list feeds status, /readyz, metrics, the status page and the reports to central.

import { durationText } from "../core/quantities.ts";
import { isEvent, type WarningCode } from "./warning-codes.ts";

export type Severity = "info" | "warning" | "error";
export type HealthWarning = {
  readonly code: string;
  readonly severity: Severity;
  readonly text: string;
  /** When it was found first, ISO 8601. */
  readonly since: string;
  readonly hint: string;
};

/** When a warning began: not before the one, and not after the other; ISO 8601. Null: nobody looked before it was found. */
export type Beginning = { readonly notBefore: string | null; readonly since: string };

/** A warning as it is told to operators. */
export type ToldWarning = HealthWarning & {
  /** When it was known last not to be in force, ISO 8601; null: nobody looked before `since`. */
  readonly not_before: string | null;
};

/** A warning in force, as the next process is told of it. */
export type KnownWarning = Beginning & { readonly id: string };

/** What the process before this one knew. */
export type Recalled = {
  readonly warnings: readonly KnownWarning[];
  /** When they were known, ISO 8601. */
  readonly seen: string;
};

/** What is found within this time after a start was so before it, or may have been. */
const foundAtStartMs = 10_000;
/** Some warnings take a minute to be found. */
const recalledForMs = 120_000;

type Warned = HealthWarning & Pick<Beginning, "notBefore">;

export class Health {
  readonly #warnings = new Map<string, Warned>();
  readonly #now: () => Date;
  readonly #advice: (hint: string) => string;
  #startedMs: number;
  /** The warnings that were in force in the process before and have not been found to be over, by id. */
  readonly #recalled = new Map<string, Beginning>();
  /** When the process before knew what was in force, ISO 8601; null: that is not known. */
  #seenBefore: string | null = null;

  /** `advice` writes a hint for the unit that warns; those who raise it do not know which one that is. */
  constructor(now: () => Date, advice: (hint: string) => string = (hint) => hint) {
    this.#now = now;
    this.#advice = advice;
    this.#startedMs = now().getTime();
  }

  /**
   * Raises a warning. Raising it again keeps `since` and renews the text. `key` tells apart several warnings
   * of one code (a domain, a lane).
   */
  /** `began`: when it began, where that is known. */
  raise(
    code: WarningCode,
    severity: Severity,
    text: string,
    hint: string,
    key = "",
    began?: Beginning,
  ): void {
    const id = `${code}/${key}`;
    const { since, notBefore } = began ?? this.#warnings.get(id) ?? this.#beginning(id, code);
    const advice = this.#advice(hint);
    this.#warnings.set(id, { code, severity, text, since, hint: advice, notBefore });
  }

  /** Writes a hint as this program's warnings have it, for a line of its log. */
  adviceOf(hint: string): string {
    return this.#advice(hint);
  }

  settle(code: WarningCode, key = ""): void {
    const id = `${code}/${key}`;
    this.#warnings.delete(id);
    this.#recalled.delete(id);
  }

  /** Settles all warnings of other codes: those who raised them are no more. */
  settleAllBut(codes: readonly WarningCode[]): void {
    const kept = new Set<string>(codes);
    for (const [id, { code }] of this.#warnings) if (!kept.has(code)) this.#warnings.delete(id);
  }

  list(): readonly HealthWarning[] {
    return Array.from(this.#warnings.values(), ({ code, severity, text, since, hint }) => ({
      code,
      severity,
      text,
      since,
      hint,
    }));
  }

  /** Returns the warnings in force, with what is known of when each began. */
  told(): readonly ToldWarning[] {
    return Array.from(this.#warnings.values(), ({ notBefore, ...warning }) => ({
      ...warning,
      not_before: notBefore,
    }));
  }

  /** Returns the warnings in force for the next process, with those of the process before that may still be found again. */
  known(): readonly KnownWarning[] {
    const isSoon = this.#now().getTime() - this.#startedMs <= recalledForMs;
    const known = new Map<string, Beginning>([
      ...(isSoon ? this.#recalled : []),
      ...this.#warnings,
    ]);
    return Array.from(known, ([id, { since, notBefore }]) => ({ id, since, notBefore }));
  }

  /**
   * Takes what the process before knew when it was there last. What was in force then and is found again soon has been in force all the time; what was not, began
   * after that. What tells of an event is not recalled, for it is another event.
   */
  recall({ warnings, seen }: Recalled): void {
    this.#seenBefore = seen;
    // A successor waited for the process before until now.
    this.#startedMs = this.#now().getTime();
    for (const { id, since, notBefore } of warnings) this.#recalled.set(id, { since, notBefore });
    for (const [id, warning] of this.#warnings) {
      if (isEvent(warning.code)) continue;
      const { since, notBefore } = this.#recalled.get(id) ?? { ...warning, notBefore: seen };
      this.#warnings.set(id, { ...warning, since, notBefore });
    }
  }

  #beginning(id: string, code: WarningCode): Beginning {
    const now = this.#now();
    const since = now.toISOString();
    const runMs = now.getTime() - this.#startedMs;
    if (isEvent(code)) return { since, notBefore: since };
    const before = this.#recalled.get(id);
    if (before !== undefined && runMs <= recalledForMs) return before;
    return { since, notBefore: runMs < foundAtStartMs ? this.#seenBefore : since };
  }
}

/** A bound so near to when something was found is told as that moment. */
const nearMs = 10_000;

/** Writes how sure it is that a warning began when it was found; "" where it is. `duration` writes seconds. */
export function beginningText(
  { since, notBefore }: Beginning,
  duration: (seconds: number) => string = durationText,
): string {
  if (notBefore === null) return " or before, found at a start";
  const gapMs = Date.parse(since) - Date.parse(notBefore);
  return gapMs > nearMs ? ` or up to ${duration(gapMs / 1_000)} before, while nobody looked` : "";
}
