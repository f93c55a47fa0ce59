// What is logged of a store that is away: a line when it goes, and one when it is back, with how long that was and what failed meanwhile. Every part of central meets the
// absence with every call, in thousands of lines that would say the same.

import type { Log } from "../base/log.ts";
import { failureBehind, isStoreAway, isStoreUnreachable } from "./store/engine/postgres-faults.ts";
import { messageOf } from "../core/faults.ts";

export type AbsenceOptions = {
  readonly log: Pick<Log, "info" | "error">;
  /** Names server and database, and no secret. */
  readonly where: string;
  readonly monotonicMs: () => number;
};

type Absence = {
  readonly sinceMs: number;
  readonly failed: Map<string, number>;
  /** What the last line said, and when. */
  reason: string;
  toldMs: number;
};

/** A server that goes gives three reasons within a second. */
const toldAgainMs = 10_000;

export class StoreAbsence {
  readonly #options: AbsenceOptions;
  #absence: Absence | undefined;

  constructor(options: AbsenceOptions) {
    this.#options = options;
  }

  /** Whether it is known that the store is away. */
  get isOpen(): boolean {
    return this.#absence !== undefined;
  }

  /** The store is away. It is told again only where the reason is another one, and not at once. */
  is(reason: string): Absence {
    const { log, where, monotonicMs } = this.#options;
    const nowMs = monotonicMs();
    const before = this.#absence;
    if (before !== undefined && (before.reason === reason || nowMs - before.toldMs < toldAgainMs))
      return before;
    this.#absence = { sinceMs: nowMs, failed: new Map(), ...before, reason, toldMs: nowMs };
    log.error({ store: where, reason }, "the store cannot be used");
    return this.#absence;
  }

  /** A call failed since the store is away. `what`: what a line of the log would say. */
  met(error: unknown, what: string): void {
    // Each way of failing has words of its own; the first of an absence says enough.
    const { failed } = this.#absence ?? this.is(messageOf(error));
    failed.set(what, (failed.get(what) ?? 0) + 1);
  }

  over(): void {
    if (this.#absence === undefined) return;
    const { log, where, monotonicMs } = this.#options;
    const { sinceMs, failed } = this.#absence;
    this.#absence = undefined;
    const awayS = Math.round((monotonicMs() - sinceMs) / 100) / 10;
    log.info(
      { store: where, away_s: awayS, failed: Object.fromEntries(failed) },
      "the store answers again",
    );
  }
}

type Line = (...given: readonly unknown[]) => void;
type Failed = { readonly err?: unknown; readonly [failureBehind]?: unknown };

/**
 * Returns a log whose warnings and errors with such an error behind them are counted in place of written. A silent server lets all connections wait, so that nobody gets one: while the store
 * is known to be away that is the same, and else it may be an overload, which is written.
 */
export function quietLog(log: Log, absence: Pick<StoreAbsence, "met" | "isOpen">): Log {
  const quiet =
    (write: Line): Line =>
    (...given) => {
      const [facts, text] = given;
      const { err, [failureBehind]: error = err } = Object(facts) as Failed;
      if (isStoreUnreachable(error) || (absence.isOpen && isStoreAway(error)))
        return absence.met(error, String(text));
      write(...given);
    };
  const own: Log = Object.create(log);
  // The level is that of the log at each line.
  return Object.assign(own, {
    warn: quiet((...given) => Reflect.apply(log.warn, log, given)),
    error: quiet((...given) => Reflect.apply(log.error, log, given)),
  });
}
