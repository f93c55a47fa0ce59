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
import type { EntryKey } from "../../cache/entry.ts";
import { Flight, type FlightDeps, type FlightPlan, type Landing } from "./flight.ts";

/**
 * The most flights in the background of one worker; each is a connection to an origin that no visitor waits
 * for.
 */
const backgroundMax = 32;
/** How long a URL that gave nothing to share is asked for by each alone. */
const unsharedMs = 10_000;
/** The most URLs that are remembered so: at 200 bytes each, about 1 MiB. */
const unsharedMax = 4_096;

/** Backend and settings are objects of one state: those of another are others, even where they say the same. */
type Wanted = Pick<FlightPlan, "key" | "mark" | "backend" | "settings" | "selecting">;

export class Flights implements AsyncDisposable {
  readonly #deps: FlightDeps;
  readonly #byUrl = new Map<string, readonly Flight[]>();
  readonly #running = new Map<Flight, Promise<void>>();
  /** By URL: until when, by the steady clock. They are in order of time. */
  readonly #unshared = new Map<string, number>();
  #background = 0;
  #lastKey: EntryKey | undefined;
  #lastUrl = "";

  constructor(deps: FlightDeps) {
    this.#deps = deps;
  }

  /** Returns a fetch whose answer the request may have, as far as is known. */
  find({ key, mark, backend, settings, selecting }: Wanted): Flight | undefined {
    const told = [ruleChoiceName, ...ruleVaryNames(settings)];
    if (variesByRule(settings.cookies)) told.push(toldCookiesName);
    return this.#byUrl.get(this.#urlOf(key))?.find((flight) => {
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
    const until = this.#unshared.get(this.#urlOf(key));
    return until === undefined || until < this.#deps.clock.steadyMs();
  }

  /** `mayShare`: others may join. The caller joins in the same step. */
  start(plan: FlightPlan, mayShare: boolean): Flight {
    const flight = new Flight(this.#deps, plan);
    const url = this.#urlOf(plan.key);
    const isOpen = mayShare && !plan.request.hasCookies;
    if (isOpen) this.#enter(flight, url);
    // Before whoever joins is told.
    flight.onLanded((landing) => {
      if (landing.kind !== "shared") this.#leave(flight, url);
      else if (mayShare && !isOpen) this.#enter(flight, url);
      if (gaveSomething(landing)) this.#unshared.delete(url);
      else if (landing.kind !== "failed" && isOpen) this.#remember(url);
    });
    this.#running.set(flight, this.#run(flight, url));
    return flight;
  }

  async #run(flight: Flight, url: string): Promise<void> {
    await flight.run();
    this.#leave(flight, url);
    this.#running.delete(flight);
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
    const flight = this.start(plan, true);
    void this.#running.get(flight)?.finally(() => this.#background--);
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
    this.#byUrl.set(url, [flight, ...(this.#byUrl.get(url) ?? [])]);
  }

  #leave(flight: Flight, url: string): void {
    const all = this.#byUrl.get(url);
    if (all === undefined) return;
    const rest = all.filter((other) => other !== flight);
    if (rest.length === 0) this.#byUrl.delete(url);
    else this.#byUrl.set(url, rest);
  }

  #remember(url: string): void {
    this.#unshared.delete(url);
    const [oldest] = this.#unshared.keys();
    if (this.#unshared.size >= unsharedMax && oldest !== undefined) this.#unshared.delete(oldest);
    this.#unshared.set(url, this.#deps.clock.steadyMs() + unsharedMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const flight of this.#running.keys()) flight.abort();
    await Promise.all(this.#running.values());
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
