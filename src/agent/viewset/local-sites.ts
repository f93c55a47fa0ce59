// The sites of the settings as they lie on this host: read at start, watched, looked at now and then and watched anew each hour, since a watch may miss
// what it should tell.

import type { Registry } from "../../base/metrics.ts";
import { every } from "../../base/wait.ts";
import type { LocalSite } from "../../core/serving/compose-state.ts";
import { WatchedSite, type LocalSiteOptions } from "./local-site.ts";
import { inParallel, Slots } from "./parallel.ts";
import { createCensusMetrics } from "./site-census.ts";
import type { SiteLocation } from "./site-walk.ts";
import { openChokidar, type OpenWatcher } from "./site-watch.ts";

export type LocalSitesOptions = Omit<LocalSiteOptions, "openWatcher" | "census"> & {
  /** Setting `sites`. */
  readonly sites: readonly SiteLocation[];
  readonly registry: Registry;
  /** For tests. */
  readonly openWatcher?: OpenWatcher;
  readonly lookIntervalMs?: number;
  readonly rescanIntervalMs?: number;
};

/** Two look-ups a site: 10,000 sites cost about a second of each period. */
const lookIntervalMs = 30_000;
const sitesAtOnce = 8;
const rescanIntervalMs = 3_600_000;
/** Counting is many small questions to the disk. */
const countsAtOnce = 2;

export class LocalSites implements AsyncDisposable {
  readonly #sites: ReadonlyMap<string, WatchedSite>;
  readonly #own: AbortController;
  readonly #stop: AbortSignal;
  readonly #watching: Promise<void>;
  readonly #looking: Promise<void>;
  readonly #rescanning: Promise<void>;

  /** The sites have been looked at once; they stop with `own`, which is the instance's. */
  constructor(
    sites: ReadonlyMap<string, WatchedSite>,
    own: AbortController,
    options: LocalSitesOptions,
  ) {
    const { log, stop, lookIntervalMs: lookMs = lookIntervalMs } = options;
    this.#sites = sites;
    this.#own = own;
    this.#stop = AbortSignal.any([stop, own.signal]);
    const onError = (error: unknown): void => {
      if (!this.#stop.aborted) log.warn({ err: error }, "looking at the sites on this host");
    };
    this.#watching = this.#each(async (site) => site.watch()).catch(onError);
    const timing = { stop: this.#stop, spread: 0.2, onError };
    this.#looking = every(lookMs, async () => this.look(), timing);
    const rescanMs = options.rescanIntervalMs ?? rescanIntervalMs;
    this.#rescanning = every(rescanMs, async () => this.rescan(), timing);
  }

  get(domain: string): LocalSite | undefined {
    return this.#sites.get(domain)?.site;
  }

  /** Resolves when all watches are set. Nothing needs to wait for it: what changes before is found by the next look. */
  async watching(): Promise<void> {
    await this.#watching;
  }

  /** Now instead of within half a minute: call it when the names of domains have changed, which decide what a devlove may say. */
  async look(): Promise<void> {
    await this.#each(async (site) => site.look());
  }

  /** Every watch is set anew, and the directories are counted. */
  async rescan(): Promise<void> {
    await this.#each(async (site) => site.rescan());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    // A watch that is never ready is waited for by nobody once it is closed.
    await Promise.all([...this.#sites.values()].map(async (site) => site[Symbol.asyncDispose]()));
    await this.#watching;
    await this.#looking;
    await this.#rescanning;
  }

  async #each(action: (site: WatchedSite) => Promise<void>): Promise<void> {
    await inParallel(this.#sites.values(), sitesAtOnce, action, this.#stop);
  }
}

/** Resolves when every devlove file was read. Invalid and missing ones are warnings, never errors. */
export async function openLocalSites(options: LocalSitesOptions): Promise<LocalSites> {
  const own = new AbortController();
  const stop = AbortSignal.any([options.stop, own.signal]);
  const { health, log, registry } = options;
  const census = {
    metrics: createCensusMetrics(registry),
    slots: new Slots(countsAtOnce),
    nowMs: () => performance.now(),
    health,
    log,
    stop,
  };
  const each = { openWatcher: openChokidar, ...options, census, stop };
  const sites = new Map(
    options.sites.map((location) => [location.domain, new WatchedSite(location, each)]),
  );
  await inParallel(sites.values(), sitesAtOnce, async (site) => site.look(), stop);
  return new LocalSites(sites, own, options);
}
