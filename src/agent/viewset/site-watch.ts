// A watch over paths: changes are gathered for a moment and told together. It serves promptness only: whoever
// serves a file checks it, and whoever keeps a document looks at it now and then.
//
// The kernel's queue of events overflows silently, and a directory whose creation was lost is not watched
// from then on. So after a burst of changes, and whenever its owner asks, everything is looked at and watched
// anew (`rescan`).

import { watch, type ChokidarOptions, type FSWatcher } from "chokidar";
import { messageOf, systemCode } from "../../core/faults.ts";

export type WatchOptions = {
  readonly paths: readonly string[];
  readonly followsLinks: boolean;
  readonly isIgnored: (path: string) => boolean;
  /**
   * Called with the absolute paths of the files that changed; undefined if they are too many to name, or are
   * not known.
   */
  readonly onChanges: (paths: readonly string[] | undefined) => void;
  /**
   * Called when the host has no watches left and files are polled from now on; called again when a rescan
   * finds none either.
   */
  readonly onPolling: (reason: string) => void;
  readonly onError: (reason: string) => void;
  readonly openWatcher: OpenWatcher;
};

export type OpenWatcher = (paths: string[], options: ChokidarOptions) => FSWatcher;
export const openChokidar: OpenWatcher = watch;

/** The time from the first change until it is told, together with those that came meanwhile. */
const gatherMs = 50;
const changesMax = 1_000;
/**
 * The number of changes in two windows beyond which everything is watched anew. The kernel's queue has room
 * for 16,384 events (fs.inotify.max_queued_events), and a file that is written causes two to four.
 */
const burstMax = 4_000;
/** The window in which changes are counted; a burst is recognized at its end. */
const windowMs = 2_000;
/** The errors that say that inotify's watches, its instances or the descriptors for them are used up. */
const exhausted: ReadonlySet<string> = new Set(["ENOSPC", "EMFILE", "ENFILE"]);
/** The time between two polls; 10,000 files take some 30 ms of it. */
const pollingIntervalMs = 2_000;

export class SiteWatch implements AsyncDisposable {
  readonly #options: WatchOptions;
  #watcher: FSWatcher;
  /** Resolves when the watcher that is there now is ready. */
  #ready = Promise.withResolvers<void>();
  #isPolling = false;
  #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** The changes of this window and of the one before it, since a burst may lie across both. */
  #burst = 0;
  #burstBefore = 0;
  #window: NodeJS.Timeout | undefined;
  #rescanning: Promise<void> | undefined;
  /** The closing of watchers that are no longer wanted. */
  readonly #closing = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#watcher = this.#open();
  }

  /** Resolves when the first look is done: from then on every change is told. */
  async ready(): Promise<void> {
    await this.#ready.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#window);
    this.#close(this.#watcher);
    this.#ready.resolve();
    await this.#rescanning;
    await Promise.all(this.#closing);
  }

  /** Looks at everything anew and watches what it finds; then tells that anything may have changed. */
  async rescan(): Promise<void> {
    this.#rescanning ??= this.#rescan().finally(() => {
      this.#rescanning = undefined;
    });
    return this.#rescanning;
  }

  /** Whether changes are polled because the host has no watches left. */
  get isPolling(): boolean {
    return this.#isPolling;
  }

  async #rescan(): Promise<void> {
    await this.#ready.promise;
    if (this.#isClosed) return;
    const before = this.#watcher;
    this.#isPolling = false; // There may be watches again.
    this.#ready = Promise.withResolvers();
    this.#watcher = this.#open();
    await this.#ready.promise;
    this.#close(before);
    if (!this.#isClosed) this.#options.onChanges(undefined);
  }

  #close(watcher: FSWatcher): void {
    const closing = watcher.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  #open(): FSWatcher {
    const { paths, followsLinks, isIgnored, openWatcher } = this.#options;
    const watcher = openWatcher([...paths], {
      ignoreInitial: true,
      followSymlinks: followsLinks,
      ignored: isIgnored,
      // Changes are gathered here, and files that editors leave behind are files like any others.
      atomic: false,
      ignorePermissionErrors: true,
      ...(this.#isPolling
        ? {
            backend: "polling",
            pollingInterval: pollingIntervalMs,
            pollingBinaryInterval: pollingIntervalMs,
          }
        : {}),
    });
    watcher.on("add", (path) => this.#note(path));
    watcher.on("change", (path) => this.#note(path));
    watcher.on("unlink", (path) => this.#note(path));
    watcher.on("error", (error) => this.#failed(watcher, error));
    watcher.on("ready", () => {
      if (watcher === this.#watcher) this.#ready.resolve();
    });
    return watcher;
  }

  #note(path: string): void {
    if (this.#isClosed) return;
    this.#burst++;
    this.#window ??= setTimeout(() => this.#onWindow(), windowMs);
    if (this.#changed.size <= changesMax) this.#changed.add(path);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const changed = [...this.#changed];
      this.#changed = new Set();
      this.#options.onChanges(changed.length > changesMax ? undefined : changed);
    }, gatherMs);
  }

  #onWindow(): void {
    this.#window = undefined;
    if (this.#burst + this.#burstBefore > burstMax) void this.rescan();
    this.#burstBefore = this.#burst;
    this.#burst = 0;
  }

  #failed(watcher: FSWatcher, error: unknown): void {
    if (watcher !== this.#watcher || this.#isClosed) return;
    if (isReplacedLink(error)) {
      this.#note(error.path);
      return;
    }
    if (this.#isPolling || !exhausted.has(systemCode(error) ?? "")) {
      this.#options.onError(messageOf(error));
      return;
    }
    this.#isPolling = true;
    this.#watcher = this.#open();
    this.#close(watcher);
    this.#options.onPolling(messageOf(error));
    // What changed between the two watchers is unknown.
    this.#options.onChanges(undefined);
  }
}

/** Whether a file took the place of a link between two looks of the watcher at it (readlink(2)): a change like any other. */
function isReplacedLink(error: unknown): error is Error & { readonly path: string } {
  if (systemCode(error) !== "EINVAL" || !(error instanceof Error)) return false;
  const { syscall, path }: NodeJS.ErrnoException = error;
  return syscall === "readlink" && path !== undefined;
}
