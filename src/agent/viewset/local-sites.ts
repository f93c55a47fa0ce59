// The sites of the settings as they lie on this host. They are read at the start and watched; since a watch
// may miss a change, they are also looked at every half minute and watched anew each hour.

import { realpath, stat } from "node:fs/promises";
import { basename, relative, resolve } from "node:path";
import type { Registry } from "../../base/metrics.ts";
import { every } from "../../base/wait.ts";
import type { LocalSite } from "../../core/serving/compose-state.ts";
import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { Mutex } from "../../base/mutex.ts";
import type { BackendRules } from "../../core/serving/backend-url.ts";
import { type Sha256, sha256Of } from "../../core/ids.ts";
import { devloveSchemaId, type Devlove } from "../../core/serving/devlove.ts";
import { inParallel, Slots } from "./parallel.ts";
import { createCensusMetrics, SiteCensus, type CensusOptions } from "./site-census.ts";
import { type SiteLocation, isHidden, systemReason } from "./site-walk.ts";
import { openChokidar, type OpenWatcher, SiteWatch } from "./site-watch.ts";
import { readDevloveFile } from "./devlove-file.ts";
import { boundedLine, readDevlove, type SiteNames } from "./devlove-text.ts";

export type LocalSitesOptions = Omit<LocalSiteOptions, "openWatcher" | "census"> & {
  /** Setting `sites`. */
  readonly sites: readonly SiteLocation[];
  readonly registry: Registry;
  /** Replaced by tests. */
  readonly openWatcher?: OpenWatcher;
  readonly lookIntervalMs?: number;
  readonly rescanIntervalMs?: number;
};

/**
 * The time between two looks. A look is two look-ups a site; 10,000 sites cost about a second of each period.
 */
const lookIntervalMs = 30_000;
const sitesAtOnce = 8;
const rescanIntervalMs = 3_600_000;
/** The most sites that are counted at once: counting is many small questions to the disk. */
const countsAtOnce = 2;

export class LocalSites implements AsyncDisposable {
  readonly #sites: ReadonlyMap<string, WatchedSite>;
  readonly #own: AbortController;
  readonly #stop: AbortSignal;
  readonly #watching: Promise<void>;
  readonly #looking: Promise<void>;
  readonly #rescanning: Promise<void>;

  /** Expects sites that have been looked at once. They stop with `own`, which the instance aborts. */
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

  /**
   * Resolves when all watches are set. Nothing needs to wait for it: the next look finds what changes before.
   */
  async watching(): Promise<void> {
    await this.#watching;
  }

  /**
   * Looks at all sites now instead of within half a minute. Call it when the names of domains have changed,
   * for they decide what a devlove may say.
   */
  async look(): Promise<void> {
    await this.#each(async (site) => site.look());
  }

  /** Sets every watch anew and counts the directories. */
  async rescan(): Promise<void> {
    await this.#each(async (site) => site.rescan());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    // Closing a watch ends the wait for one that never becomes ready.
    await Promise.all([...this.#sites.values()].map(async (site) => site[Symbol.asyncDispose]()));
    await this.#watching;
    await this.#looking;
    await this.#rescanning;
  }

  async #each(action: (site: WatchedSite) => Promise<void>): Promise<void> {
    await inParallel(this.#sites.values(), sitesAtOnce, action, this.#stop);
  }
}

/**
 * Resolves when every devlove file was read. Invalid and missing ones raise health warnings; they never
 * throw.
 */
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

// One domain's site on this host: the last valid devlove of its file, and a watch over file and views.
//
// If the file is missing or no longer valid, the last good document stays in force, with a warning. Before
// the first good one there is none.

type LocalSiteOptions = {
  /** Setting `watch_views`: whether the views are watched. The devlove file is watched in any case. */
  readonly watchViews: boolean;
  /**
   * Returns the names of a domain; undefined if it is not linked or not known yet, and then the document may
   * name any hosts.
   */
  readonly names: (domain: string) => SiteNames | undefined;
  readonly backendRules: BackendRules;
  /** Called when another devlove is in force and must be published. */
  readonly onChange: (domain: string) => void;
  /**
   * Called with the files that changed, relative to views_dir; undefined if they are too many, or if the
   * directory is another one.
   */
  readonly onViews: (domain: string, paths: readonly string[] | undefined) => void;
  readonly health: Health;
  readonly log: Log;
  readonly openWatcher: OpenWatcher;
  readonly census: CensusOptions;
  readonly stop: AbortSignal;
};

type Document = { readonly sha256: Sha256; readonly devlove: Devlove };

class WatchedSite implements AsyncDisposable {
  readonly #location: SiteLocation;
  readonly #options: LocalSiteOptions;
  readonly #turn = new Mutex();
  readonly #census: SiteCensus;
  #document: Document | undefined;
  /**
   * What was looked at last: file, names, views directory. It is empty if the file could not be read, which
   * is tried again at each look.
   */
  #seen = "";
  #isFirst = true;
  /** Why the site is not as it should be; undefined if it is. */
  #reason: string | undefined;
  /** The views directory without links; undefined if there is none. */
  #viewsRoot: string | undefined;
  #fileWatch: SiteWatch | undefined;
  #viewsWatch: SiteWatch | undefined;

  constructor(location: SiteLocation, options: LocalSiteOptions) {
    this.#location = location;
    this.#options = options;
    this.#census = new SiteCensus(location, options.census);
  }

  get site(): LocalSite {
    return {
      viewsDir: resolve(this.#location.views_dir),
      devlove: this.#document?.devlove ?? null,
      devloveFile: resolve(this.#location.devlove_file),
    };
  }

  /**
   * Looks at the site; cheap when nothing changed. Calls `onChange` and `onViews` for what changed, unless it
   * is the first look.
   */
  async look(): Promise<void> {
    await this.#turn.run(async () => {
      const viewsRoot = await realpath(this.#location.views_dir).catch(() => undefined);
      const seen = JSON.stringify([await this.#fileIdentity(), this.#names(), viewsRoot]);
      if (seen === this.#seen || this.#options.stop.aborted) return;
      const isFirst = this.#isFirst;
      const before = this.#document?.sha256;
      this.#seen = (await this.#read(viewsRoot)) === "read" ? seen : "";
      this.#isFirst = false;
      if (!isFirst && this.#document?.sha256 !== before)
        this.#options.onChange(this.#location.domain);
      if (viewsRoot === this.#viewsRoot) return;
      this.#viewsRoot = viewsRoot;
      if (isFirst) return;
      this.#tellViews(undefined);
      if (this.#fileWatch !== undefined) await this.#watchViews();
    });
  }

  /** Begins to watch. Changes are told once it resolves; `look` finds those before. */
  async watch(): Promise<void> {
    await this.#turn.run(async () => {
      if (this.#options.stop.aborted) return;
      this.#fileWatch = this.#open([this.#location.devlove_file], true, async () => this.look());
      await this.#watchViews();
    });
    await Promise.all([this.#fileWatch?.ready(), this.#viewsWatch?.ready()]);
    this.#census.note();
  }

  /** Watches everything anew and counts it, to find what a watch missed. */
  async rescan(): Promise<void> {
    await Promise.all([this.#fileWatch?.rescan(), this.#viewsWatch?.rescan()]);
    if (!this.#isPolling) this.#options.health.settle("local_site_polled", this.#location.domain);
    await this.#census.count();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turn.run(async () => {
      await this.#fileWatch?.[Symbol.asyncDispose]();
      await this.#viewsWatch?.[Symbol.asyncDispose]();
    });
    await this.#census[Symbol.asyncDispose]();
  }

  get #isPolling(): boolean {
    return this.#fileWatch?.isPolling === true || this.#viewsWatch?.isPolling === true;
  }

  #tellViews(paths: readonly string[] | undefined): void {
    this.#census.note();
    this.#options.onViews(this.#location.domain, paths);
  }

  #names(): SiteNames | null {
    return this.#options.names(this.#location.domain) ?? null;
  }

  async #fileIdentity(): Promise<string> {
    try {
      const file = await stat(this.#location.devlove_file, { bigint: true });
      return [file.dev, file.ino, file.size, file.mtimeNs, file.ctimeNs].join(" ");
    } catch (error) {
      return systemReason(error);
    }
  }

  async #read(viewsRoot: string | undefined): Promise<"read" | "unreadable"> {
    const { devlove_file: file, views_dir: viewsDir } = this.#location;
    const bytes = await readDevloveFile(file, this.#options.stop);
    if (bytes instanceof Error) {
      this.#judge(bytes.message);
      return "unreadable";
    }
    const read = readDevlove(devloveSchemaId, bytes, this.#names(), this.#options.backendRules);
    if (read.ok) this.#document = { sha256: sha256Of(bytes), devlove: read.devlove };
    if (!read.ok) this.#judge(`devlove_file ${file}: ${boundedLine(read.reasons)}`);
    else if (viewsRoot === undefined) this.#judge(`views_dir ${viewsDir} does not exist`);
    else this.#judge(undefined);
    return "read";
  }

  #judge(reason: string | undefined): void {
    const { domain } = this.#location;
    const { health, log } = this.#options;
    const isNew = reason !== this.#reason;
    this.#reason = reason;
    if (reason === undefined) {
      health.settle("local_site_invalid", domain);
      return;
    }
    const isServed = this.#document !== undefined;
    health.raise(
      "local_site_invalid",
      isServed ? "warning" : "error",
      `The site of ${domain} on this host: ${reason}${isServed ? " (the last good devlove is in force)" : ""}`,
      "Correct the file or the settings `sites`; it is read again when it changes.",
      domain,
    );
    if (isNew) log.warn({ domain, reason }, "the site on this host is not valid");
  }

  async #watchViews(): Promise<void> {
    await this.#viewsWatch?.[Symbol.asyncDispose]();
    this.#viewsWatch = undefined;
    const root = this.#viewsRoot;
    if (root === undefined || !this.#options.watchViews || this.#options.stop.aborted) return;
    // Links are not followed: they may lead out of the root, or in circles.
    this.#viewsWatch = this.#open([root], false, (paths) => {
      this.#tellViews(paths?.map((path) => relative(root, path)));
    });
  }

  #open(
    paths: readonly string[],
    followsLinks: boolean,
    onChanges: (paths: readonly string[] | undefined) => void | Promise<void>,
  ): SiteWatch {
    const { domain } = this.#location;
    const { health, log, openWatcher } = this.#options;
    return new SiteWatch({
      paths,
      followsLinks,
      // Hidden names are ignored only below the directory that was asked for; that directory and those above
      // it are the operator's choice.
      isIgnored: (path) => !followsLinks && !paths.includes(path) && isHidden(basename(path)),
      onChanges: (changed) => {
        Promise.try(onChanges, changed).catch((error: unknown) =>
          log.warn({ domain, err: error }, "watching"),
        );
      },
      onPolling: (reason) => {
        health.raise(
          "local_site_polled",
          "info",
          `The site of ${domain} on this host is polled: the host has no file watches left (${reason})`,
          "Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances; within an hour, or when the agent is restarted, it is watched again.",
          domain,
        );
      },
      onError: (reason) =>
        log.warn({ domain, reason }, "a watch over the site on this host failed"),
      openWatcher,
    });
  }
}
