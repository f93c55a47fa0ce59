// The index thread put together: keeper, write queue, clearing and matcher, and the calls of main. The only writer of index.db.

import { openPatternCheck } from "../../../base/pattern-check.ts";
import { codeOf, messageOf } from "../../../core/faults.ts";
import { Checkpointer } from "./checkpointer.ts";
import { Clearing } from "../clearing/clearing.ts";
import type { IndexClock } from "./clock.ts";
import { DiskShortage } from "./disk-shortage.ts";
import { walBytesOf } from "./index-file.ts";
import { IndexKeeper } from "./index-keeper.ts";
import { Inquiries } from "./inquiries.ts";
import { MatchProcess } from "../clearing/matcher-child.ts";
import type {
  CacheStats,
  Call,
  Calls,
  IndexerInit,
  IndexerToMain,
  MainToIndexer,
} from "../messages.ts";
import { KeyPresence } from "./key-presence.ts";
import { SharedHeader } from "./shared-header.ts";
import { Verification } from "../clearing/verification.ts";
import { WriteQueue, type StoreTrouble } from "./write-queue.ts";

/** The time between tries while the disk refuses to open the index. */
const reopenMs = 5_000;
const totalsEveryMs = 1_000;
/** How often the room on the disk is looked at. */
const looksEveryMs = 1_000;
/** Nobody clears in the first moments, in which all else is loaded that visitors wait for. */
const matcherInMs = 2_000;
/** The most clears that are told at once, for main writes a receipt for each. The others come a second later. */
const refusedTold = 20;

export type IndexThreadOptions = {
  readonly init: IndexerInit;
  readonly clock: IndexClock;
  readonly tell: (message: IndexerToMain) => void;
  /** Writes out the file system that the directory is on; false where that is not certain. */
  readonly sync: (directory: string) => Promise<boolean>;
  /** The entry of the thread that writes the WAL back. */
  readonly checkpointerEntry: URL;
};

export class IndexThread {
  readonly #options: IndexThreadOptions;
  readonly #header: SharedHeader;
  readonly #keeper: IndexKeeper;
  readonly #matcher: MatchProcess;
  readonly #checkpointer: Checkpointer;
  readonly #patterns = openPatternCheck();
  readonly #inquiries: Inquiries;
  readonly #verification: Verification;
  readonly #clearing: Clearing;
  readonly #writes: WriteQueue;
  readonly #totals: NodeJS.Timeout;
  readonly #shortage: DiskShortage;
  readonly #looks: NodeJS.Timeout;
  #reopen: NodeJS.Timeout | undefined;

  constructor(options: IndexThreadOptions) {
    this.#options = options;
    const { init, clock } = options;
    const { directory, diskMax, facts, matchBudgetMs, matcherEntry } = init;
    const header = new SharedHeader(init.header);
    const shortage = new DiskShortage({ ...init, header });
    this.#header = header;
    this.#shortage = shortage;
    const checkpointer = new Checkpointer(options.checkpointerEntry);
    this.#checkpointer = checkpointer;
    const keeper = new IndexKeeper({
      directory,
      header,
      keys: new KeyPresence(init.keys),
      diskMax,
      lacking: () => shortage.lacking,
      clock,
      facts,
      events: {
        opened: (index, opening) => {
          shortage.look(index.spareBytes);
          options.tell({ kind: "opened", opening });
          this.#writes.onOpened(index);
          if (index.isUnchecked) void this.#inquiries.checkText(index);
          options.tell({ kind: "settle", code: "cache_closed" });
        },
        dropped: (reason) => this.#raiseDropped(reason),
        failed: (reason) => this.#onOpenFailed(reason),
      },
      writeBack: {
        run: () => checkpointer.run(directory),
        onEnd: () => this.#writes.schedule(),
      },
    });
    this.#keeper = keeper;
    this.#matcher = new MatchProcess(new URL(matcherEntry), { startsInMs: matcherInMs });
    this.#writes = new WriteQueue({
      keeper,
      clock,
      isClearing: () => this.#clearing.isBusy,
      onTrouble: (trouble) => this.#tellTrouble(trouble),
    });
    const patterns = this.#patterns;
    this.#inquiries = new Inquiries({ keeper, patterns, directory, matcherEntry, matchBudgetMs });
    this.#verification = new Verification({
      keeper,
      match: (index, clear) => this.#inquiries.verify(index, clear),
      onUnverified: (clearNo, left, reason) => this.#tellUnverified(clearNo, left, reason),
    });
    this.#clearing = new Clearing({
      keeper,
      matcher: this.#matcher,
      verification: this.#verification,
      patterns,
      clock,
      directory,
      matchBudgetMs,
      onWidened: ({ domain, host }, reason) =>
        options.tell({
          kind: "raise",
          code: "clear_widened",
          severity: "info",
          text: `a clear was widened to everything of ${host ?? domain ?? "all domains"}: ${reason}`,
          hint: "Nothing stale was served. More than the patterns matched is fetched again.",
        }),
    });
    this.#totals = setInterval(() => this.#tellTotals(), totalsEveryMs);
    this.#looks = setInterval(() => this.#lookAtDisk(), looksEveryMs);
  }

  open(): Promise<void> {
    return this.#keeper.open();
  }

  onMain(message: MainToIndexer): void {
    if (message.kind === "attach") {
      this.#writes.attach(message.port);
      return;
    }
    const { no } = message;
    this.#answer(message.call).then(
      (answer) => this.#options.tell({ kind: "answer", no, answer }),
      (error: unknown) =>
        this.#options.tell({ kind: "fault", no, code: codeOf(error), reason: messageOf(error) }),
    );
  }

  #answer(call: Call): Promise<Calls[Call["name"]]["answer"]> {
    switch (call.name) {
      case "clear":
        return this.#clearing.clear(call.asked).finally(() => this.#writes.schedule());
      case "gone":
        return this.#clearing.gone(call.asked.clearId);
      case "clearedByUrl":
        return this.#clearing.isClearedByUrl(call.asked.scope);
      case "search":
        return this.#inquiries.search(call.asked);
      case "stats":
        return Promise.resolve(this.#stats());
      case "check":
        return this.#inquiries.check();
      case "scrub":
        return this.#inquiries.scrub();
      case "lost":
        this.#writes.lose(call.asked.ids);
        return Promise.resolve(null);
      case "why":
        return Promise.try(() => this.#inquiries.why(call.asked));
      case "epoch":
        return this.#noteEpoch(call.asked.epoch);
      case "close":
        return this.#close(call.asked.isHandedOver);
      default:
        return call satisfies never;
    }
  }

  /** Notes the epoch, after an opening that is under way, which expects the epoch of before. */
  async #noteEpoch(epoch: string | null): Promise<null> {
    await this.#keeper.open();
    this.#keeper.noteEpoch(epoch);
    return null;
  }

  #stats(): CacheStats {
    const { index } = this.#keeper;
    return {
      isOpen: index !== undefined,
      entries: index?.entries.count ?? 0,
      bytes: index?.entries.bytes ?? 0,
      diskMax: this.#options.init.diskMax,
      withheldBytes: this.#header.withheldBytes,
      walBytes: walBytesOf(this.#options.init.directory),
      clearNo: index?.clears.newest ?? 0,
      durableNo: index?.clears.durableNo ?? this.#keeper.demandedNo,
      unfinishedClears: index?.unfinishedClears ?? 0,
    };
  }

  async #close(isHandedOver: boolean): Promise<Calls["close"]["answer"]> {
    await this.#clearing.idle(); // Killing the matcher under a clear would widen it.
    const { durableNo } = this.#stats();
    clearTimeout(this.#reopen);
    clearInterval(this.#totals);
    clearInterval(this.#looks);
    this.#tellRefused();
    this.#matcher[Symbol.dispose]();
    this.#verification[Symbol.dispose]();
    this.#inquiries[Symbol.dispose]();
    this.#writes[Symbol.dispose]();
    await this.#keeper.close(isHandedOver ? undefined : this.#options.sync);
    await this.#checkpointer[Symbol.asyncDispose]();
    this.#patterns[Symbol.dispose]();
    return { durableNo };
  }

  /** What the cache may use changes with what others leave free. */
  #lookAtDisk(): void {
    const { index } = this.#keeper;
    if (index === undefined) return;
    this.#shortage.look(index.spareBytes);
    if (this.#shortage.lacking > 0) this.#writes.schedule();
  }

  /** Fetches end long after the clears that came while they were under way: the proof of a clear goes on until then. */
  #tellRefused(): void {
    const clears = this.#keeper.index?.clears.takeRefused(refusedTold) ?? [];
    if (clears.length > 0) this.#options.tell({ kind: "refused", clears });
  }

  #tellTotals(): void {
    this.#tellRefused();
    const { stored, blocked, evicted } = this.#keeper.counts;
    const totals = { ...this.#stats(), stored, blocked, evicted, failed: this.#writes.failed };
    this.#options.tell({ kind: "totals", totals });
  }

  #tellTrouble(trouble: StoreTrouble | undefined): void {
    if (trouble === undefined) this.#options.tell({ kind: "settle", code: "cache_not_stored" });
    else
      this.#options.tell({
        kind: "raise",
        code: "cache_not_stored",
        severity: "warning",
        text: `${trouble.what} cannot be stored: ${trouble.reason}`,
        hint: "Check free space and health of the disk that holds the state directory; visitors are served meanwhile.",
      });
  }

  #tellUnverified(clearNo: number, left: number, reason: string): void {
    const text =
      left > 0
        ? `clear ${clearNo} had left behind ${left} entries that it matches; they are dropped now`
        : `clear ${clearNo} is applied, but the search that verifies it failed: ${reason}`;
    this.#options.tell({
      kind: "raise",
      code: left > 0 ? "clear_left_entries" : "clear_unverified",
      severity: left > 0 ? "error" : "info",
      text,
      hint:
        left > 0
          ? "This is a defect: report it with the log line. Clear the domain again with kind:static OR kind:generated."
          : "Nothing that it matched is served; only the verification is missing. Repeat the clear to have it verified.",
    });
  }

  #raiseDropped(reason: string): void {
    this.#options.tell({ kind: "dropped" });
    this.#options.tell({
      kind: "raise",
      code: "cache_dropped",
      severity: "info",
      text: `everything cached was dropped: ${reason}`,
      hint: "Nothing to do: the cache fills again. A damaged index, if there was one, was set aside beside index.db.",
    });
  }

  #onOpenFailed(reason: string): void {
    this.#options.tell({
      kind: "raise",
      code: "cache_closed",
      severity: "error",
      text: `the cache index cannot be opened: ${reason}`,
      hint: 'Meanwhile everything is fetched from the origin. The agent tries to open the index every few seconds. "unable to open database file" may mean a disk without room (`df -h`) or without inodes (`df -i`), one that is read-only, or a directory that the agent may not write.',
    });
    this.#writes.schedule();
    clearTimeout(this.#reopen);
    this.#reopen = setTimeout(() => void this.#keeper.open(), reopenMs);
  }
}
