// One domain as it lies on this host: the last valid devlove of its file, and a watch over file and views.
//
// A file that is missing or no longer valid leaves the last good document in force, with a warning; before the first good one there is none.

import { realpath, stat } from "node:fs/promises";
import { basename, relative, resolve } from "node:path";
import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { Mutex } from "../../base/mutex.ts";
import type { BackendRules } from "../../core/serving/backend-url.ts";
import type { LocalSite } from "../../core/serving/compose-state.ts";
import { type Sha256, sha256Of } from "../../core/ids.ts";
import { devloveSchemaId, type Devlove } from "../../wire/devlove.ts";
import { readDevloveFile } from "./devlove-file.ts";
import { boundedLine, readDevlove, type SiteNames } from "./devlove-text.ts";
import { SiteCensus, type CensusOptions } from "./site-census.ts";
import { isHidden, systemReason, type SiteLocation } from "./site-walk.ts";
import { SiteWatch, type OpenWatcher } from "./site-watch.ts";

export type LocalSiteOptions = {
  /** Setting `watch_views`: without it the views are not watched; the devlove file is in any case. */
  readonly watchViews: boolean;
  /** Undefined: not linked, or not known yet; the document may then name any hosts. */
  readonly names: (domain: string) => SiteNames | undefined;
  readonly backendRules: BackendRules;
  /** Another devlove is in force: publish. */
  readonly onChange: (domain: string) => void;
  /** Files that changed, relative to views_dir; undefined: too many, or another directory altogether. */
  readonly onViews: (domain: string, paths: readonly string[] | undefined) => void;
  readonly health: Health;
  readonly log: Log;
  readonly openWatcher: OpenWatcher;
  readonly census: CensusOptions;
  readonly stop: AbortSignal;
};

type Document = { readonly sha256: Sha256; readonly devlove: Devlove };

export class WatchedSite implements AsyncDisposable {
  readonly #location: SiteLocation;
  readonly #options: LocalSiteOptions;
  readonly #turn = new Mutex();
  readonly #census: SiteCensus;
  #document: Document | undefined;
  /** What was looked at last: file, names, views directory. Empty where the file could not be read: it is tried again at each look. */
  #seen = "";
  #isFirst = true;
  /** Why the site is not as it should be; undefined: it is. */
  #reason: string | undefined;
  /** Without links; undefined: there is none. */
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

  /** Cheap when nothing changed. Tells `onChange` and `onViews` unless it is the first look. */
  async look(): Promise<void> {
    await this.#turn.run(async () => {
      const viewsRoot = await realpath(this.#location.views_dir).catch(() => undefined);
      const seen = JSON.stringify([await this.#fileIdentity(), this.#names(), viewsRoot]);
      if (seen === this.#seen || this.#options.stop.aborted) return;
      const isFirst = this.#isFirst;
      const before = this.#document?.sha256;
      this.#seen = (await this.#read(viewsRoot)) ? seen : "";
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

  /** Changes are told from when it resolves, and found by `look` before. */
  async watch(): Promise<void> {
    await this.#turn.run(async () => {
      if (this.#options.stop.aborted) return;
      this.#fileWatch = this.#open([this.#location.devlove_file], true, async () => this.look());
      await this.#watchViews();
    });
    await Promise.all([this.#fileWatch?.ready(), this.#viewsWatch?.ready()]);
    this.#census.note();
  }

  /** Everything is watched anew, and counted: for what a watch did not tell. */
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

  /** False: the file could not be read. */
  async #read(viewsRoot: string | undefined): Promise<boolean> {
    const { devlove_file: file, views_dir: viewsDir } = this.#location;
    const bytes = await readDevloveFile(file, this.#options.stop);
    if (bytes instanceof Error) {
      this.#judge(bytes.message);
      return false;
    }
    const read = readDevlove(devloveSchemaId, bytes, this.#names(), this.#options.backendRules);
    if (read.ok) this.#document = { sha256: sha256Of(bytes), devlove: read.devlove };
    if (!read.ok) this.#judge(`devlove_file ${file}: ${boundedLine(read.reasons)}`);
    else if (viewsRoot === undefined) this.#judge(`views_dir ${viewsDir} does not exist`);
    else this.#judge(undefined);
    return true;
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
    if (isNew) log.warn({ domain, reason }, "the site on this host is not as it should be");
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
      // Below a directory that was asked for; above and at it, names are the operator's.
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
