// Whether the store can be used, by two ways of looking: the connection that holds it, which notices first that a server is gone, and the pool that serves, whose new connections
// a server may be refused that answers well (a former primary). The warning `store_unreachable` is in force while either of them fails, and while others work on the store and this central
// alone cannot. It is one warning then as well, with one advice: that it goes on by itself when PostgreSQL answers would be wrong advice there.

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
type Failing = { readonly text: string; readonly hint: string };

export class StoreSight {
  readonly #deps: SightDeps;
  readonly #failing = new Map<Way, Failing>();
  #isAlone = false;

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

  /** This central alone has no way to the store, or that is over. */
  alone(isAlone: boolean): void {
    this.#isAlone = isAlone;
    this.#tell();
  }

  /** The pool was asked; undefined: it answered. What is no absence, such as an overload, changes nothing. */
  poolAsked(error: unknown): void {
    if (error === undefined) this.#works("pool");
    else if (codeOf(error) === "STORE_UNREACHABLE") this.#failed("pool", error);
  }

  #failed(way: Way, error: unknown): void {
    const { absence, where } = this.#deps;
    const text =
      error instanceof AccelError
        ? error.message
        : `the store ${where} does not answer: ${messageOf(error)}`;
    const isNew = this.#failing.get(way)?.text !== text;
    const hint = error instanceof AccelError ? error.hint : undefined;
    // The last one to fail is told.
    this.#failing.delete(way);
    this.#failing.set(way, { text, hint: hint ?? lookAtPostgres });
    this.#tell();
    if (isNew) absence.is(text);
  }

  #works(way: Way): void {
    const { absence } = this.#deps;
    const wasFailing = this.#failing.delete(way);
    if (this.#failing.size > 0) return;
    if (wasFailing) this.#tell();
    // Calls may have failed between two looks.
    if (way === "pool" || wasFailing) absence.over();
  }

  #tell(): void {
    const { health } = this.#deps;
    const last = [...this.#failing.values()].at(-1);
    if (this.#isAlone) {
      const why = last === undefined ? "" : `: ${last.text}`;
      health.raise("store_unreachable", "error", `${aloneText}${why}`, lookAtOwnWay);
    } else if (last === undefined) health.settle("store_unreachable");
    else health.raise("store_unreachable", "error", last.text, last.hint);
  }
}

const lookAtPostgres = "Look at PostgreSQL, its log, and the network there.";
const aloneText =
  "this central alone has no way to the store: another one works on it. It is not ready, and sends its agents off once its address leads to others";
const lookAtOwnWay = "Look at `store.url` and the network of this host, or stop this central.";
