// Whether the store can be used, by two ways of looking: the connection that holds it, which notices first that a server is gone, and the pool that serves, whose new connections
// a server may be refused that answers well (a former primary). The warning `store_unreachable` is in force while either of them fails.

import type { Health } from "../base/health.ts";
import { AccelError, codeOf, messageOf } from "../core/faults.ts";
import type { StoreAbsence } from "./store-absence.ts";

export type SightDeps = {
  readonly health: Pick<Health, "raise" | "settle">;
  readonly absence: Pick<StoreAbsence, "is" | "over">;
  /** Names server and database, and no secret. */
  readonly where: string;
};

type Way = "hold" | "pool";

export class StoreSight {
  readonly #deps: SightDeps;
  readonly #failing = new Map<Way, string>();

  constructor(deps: SightDeps) {
    this.#deps = deps;
  }

  /** The connection that holds the store ended, or could not be made again. */
  holdLost(error: unknown): void {
    this.#failed("hold", error);
  }

  holdBack(): void {
    this.#works("hold");
  }

  /** The pool was asked; undefined: it answered. What is no absence, such as an overload, changes nothing. */
  poolAsked(error: unknown): void {
    if (error === undefined) this.#works("pool");
    else if (codeOf(error) === "STORE_UNREACHABLE") this.#failed("pool", error);
  }

  #failed(way: Way, error: unknown): void {
    const { health, absence, where } = this.#deps;
    const text =
      error instanceof AccelError
        ? error.message
        : `the store ${where} does not answer: ${messageOf(error)}`;
    const isNew = this.#failing.get(way) !== text;
    this.#failing.set(way, text);
    const hint = error instanceof AccelError ? error.hint : undefined;
    health.raise("store_unreachable", "error", text, hint ?? lookAtPostgres);
    if (isNew) absence.is(text);
  }

  #works(way: Way): void {
    const { health, absence } = this.#deps;
    const wasFailing = this.#failing.delete(way);
    if (this.#failing.size > 0) return;
    if (wasFailing) health.settle("store_unreachable");
    // Calls may have failed between two looks.
    if (way === "pool" || wasFailing) absence.over();
  }
}

const lookAtPostgres = "Look at PostgreSQL, its log, and the network there.";
