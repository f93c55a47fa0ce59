// The fetches in flight of one worker: who may share one, and those that no visitor waits for (stale-while-revalidate).
//
// A request joins only while nothing was cleared or invalidated since the fetch's first read (clearMark), and only what was begun under its own
// devlove: another may have another backend, or other rules. What is private is not shared: then every visitor asks alone, and for a while nobody waits
// for such a URL again to find that out. A fetch that carries its visitor's cookies is nobody else's until its answer turns out to be anybody's, and says
// nothing of what the others would get.

import {
  isVariantFor,
  ruleChoiceName,
  ruleVaryNames,
  toldCookiesName,
} from "../../../core/http/http-vary.ts";
import { variesByRule } from "../../../core/http/request-cookies.ts";
import { Roster } from "../../../core/roster.ts";
import type { EntryKey } from "../../cache/entry.ts";
import { Flight, type FlightDeps, type FlightPlan, type Landing } from "./flight.ts";

/**
 * The most flights in the background of one worker; each is a connection to an origin that no visitor waits
 * for.
 */
const backgroundMax = 32;
/** How long a URL that gave nothing to share is asked for by each alone. */
const unsharedMs = 10_000;
/** The most URLs that are remembered so, in two halves; those of the older half go at once. At 200 bytes each, about 1 MiB. */
const unsharedMax = 4_096;

/** Backend and settings are objects of one state: those of another are others, even where they say the same. */
type Wanted = Pick<FlightPlan, "key" | "mark" | "backend" | "settings" | "selecting">;

/** The fetches of one URL that others may join. */
type Joinable = { flights: readonly Flight[] };
type Running = { readonly flight: Flight; readonly ended: Promise<void> };

export class Flights implements AsyncDisposable {
  readonly #deps: FlightDeps;
  readonly #byUrl = new Map<string, Joinable>();
  readonly #running = new Roster<Running>();
  readonly #unshared: Unshared;
  #background = 0;
  #lastKey: EntryKey | undefined;
  #lastUrl = "";

  constructor(deps: FlightDeps) {
    this.#deps = deps;
    this.#unshared = new Unshared(deps.clock);
  }

  /** Returns a fetch whose answer the request may have, as far as is known. */
  find({ key, mark, backend, settings, selecting }: Wanted): Flight | undefined {
    const told = [ruleChoiceName, ...ruleVaryNames(settings)];
    if (variesByRule(settings.cookies)) told.push(toldCookiesName);
    return this.#byUrl.get(this.#urlOf(key))?.flights.find((flight) => {
      const { plan, landing } = flight;
      if (plan.mark !== mark || flight.isAborted) return false;
      if (plan.backend !== backend || plan.settings !== settings) return false;
      // What varies by the origin's word is known when it has landed, what varies by the rule before.
      if (told.some((name) => plan.selecting(name) !== selecting(name))) return false;
      if (landing === undefined) return true;
      return (
        landing.kind === "shared" &&
        landing.body.isJoinable &&
        isVariantFor(landing.meta.vary, selecting)
      );
    });
  }

  /** Whether waiting for another's answer has a point. */
  isShared(key: EntryKey): boolean {
    return !this.#unshared.has(this.#urlOf(key));
  }

  /** `mayShare`: others may join. The caller joins in the same step. */
  start(plan: FlightPlan, mayShare: boolean): Flight {
    return this.#start(plan, mayShare).flight;
  }

  #start(plan: FlightPlan, mayShare: boolean): Running {
    const flight = new Flight(this.#deps, plan);
    const url = this.#urlOf(plan.key);
    const isOpen = mayShare && !plan.request.hasCookies;
    if (isOpen) this.#enter(flight, url);
    // Before whoever joins is told.
    flight.onLanded((landing) => {
      if (landing.kind !== "shared") this.#leave(flight, url);
      else if (mayShare && !isOpen) this.#enter(flight, url);
      if (gaveSomething(landing)) this.#unshared.forget(url);
      else if (landing.kind !== "failed" && isOpen) this.#unshared.add(url);
    });
    const ended = flight.run().finally(() => {
      this.#leave(flight, url);
      this.#running.delete(running);
    });
    const running = { flight, ended };
    this.#running.add(running);
    return running;
  }

  /** Refreshes in the background: by one fetch at a time for each variant, and by so many in all. */
  refresh(plan: FlightPlan): void {
    if (this.find(plan) !== undefined) return;
    const { accel_agent_cache_background_total: counted } = this.#deps.metrics;
    const { domain } = plan.key;
    if (this.#background >= backgroundMax) {
      counted.inc({ domain, outcome: "refused" });
      return;
    }
    counted.inc({ domain, outcome: "started" });
    this.#background++;
    void this.#start(plan, true).ended.finally(() => this.#background--);
  }

  /** Several questions are asked about one request. */
  #urlOf(key: EntryKey): string {
    if (key !== this.#lastKey) {
      this.#lastKey = key;
      this.#lastUrl = nameOf(key);
    }
    return this.#lastUrl;
  }

  #enter(flight: Flight, url: string): void {
    const joinable = this.#byUrl.get(url);
    if (joinable === undefined) this.#byUrl.set(url, { flights: [flight] });
    else joinable.flights = [flight, ...joinable.flights];
  }

  #leave(flight: Flight, url: string): void {
    const joinable = this.#byUrl.get(url);
    if (joinable === undefined) return;
    // Also where it goes: what a Map has lost, its tables of before may still hold.
    joinable.flights = joinable.flights.filter((other) => other !== flight);
    if (joinable.flights.length === 0) this.#byUrl.delete(url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = [...this.#running];
    for (const { flight } of running) flight.abort();
    await Promise.all(running.map(({ ended }) => ended));
  }
}

/** The URLs that gave nothing to share lately. When half of what is remembered is full, the other half is forgotten as a whole: nothing is taken out one by one. */
class Unshared {
  readonly #clock: FlightDeps["clock"];
  /** By URL: until when, by the steady clock; 0 where it is forgotten. */
  #newer = new Map<string, number>();
  #older = new Map<string, number>();

  constructor(clock: FlightDeps["clock"]) {
    this.#clock = clock;
  }

  has(url: string): boolean {
    const until = this.#newer.get(url) ?? this.#older.get(url);
    return until !== undefined && until >= this.#clock.steadyMs();
  }

  add(url: string): void {
    if (this.#newer.size >= unsharedMax / 2) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(url, this.#clock.steadyMs() + unsharedMs);
  }

  forget(url: string): void {
    if (this.#older.has(url)) this.#older.set(url, 0);
    if (this.#newer.has(url)) this.#newer.set(url, 0);
  }
}

/**
 * Returns whether the landing has something for others. A response to be confirmed for each visitor is no
 * more shared than a private one.
 */
function gaveSomething(landing: Landing): boolean {
  if (landing.kind !== "shared" && landing.kind !== "confirmed") return false;
  const { freshForS, initialAgeS } = landing.kind === "shared" ? landing.meta : landing.entry;
  return freshForS > initialAgeS;
}

/** No part of a URL has a blank. */
function nameOf({ host, path, query }: EntryKey): string {
  return `${host} ${path} ${query}`;
}
