// The index thread put together: keeper, write queue, clearing and matcher, and the calls of main. The only writer of index.db.

import { openPatternCheck } from "../../base/pattern-check.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import { Clearing } from "./clearing.ts";
import { decodeIdRuns } from "./id-runs.ts";
import { IndexKeeper } from "./index-keeper.ts";
import type { MatchAnswer, MatchJob } from "./match-job.ts";
import { MatchProcess } from "./matcher-child.ts";
import type {
  CacheStats,
  Call,
  Calls,
  CheckResult,
  IndexerInit,
  IndexerToMain,
  MainToIndexer,
  SearchResult,
} from "./messages.ts";
import type { Clock } from "./open-index.ts";
import { SharedHeader } from "./shared-header.ts";
import { WriteQueue } from "./write-queue.ts";

/** While the disk refuses to open the index. */
const reopenMs = 5_000;
/** An operator waits for it, no visitor does. */
const checkBudgetMs = 120_000;
const totalsEveryMs = 1_000;
const samplesMax = 1_000;

export type IndexThreadOptions = {
  readonly init: IndexerInit;
  readonly clock: Clock;
  readonly tell: (message: IndexerToMain) => void;
  /** Writes out the file system that the directory is on; false where that is not certain. */
  readonly sync: (directory: string) => Promise<boolean>;
};

export class IndexThread {
  readonly #options: IndexThreadOptions;
  readonly #keeper: IndexKeeper;
  readonly #matcher: MatchProcess;
  readonly #patterns = openPatternCheck();
  readonly #clearing: Clearing;
  readonly #writes: WriteQueue;
  readonly #totals: NodeJS.Timeout;
  #reopen: NodeJS.Timeout | undefined;

  constructor(options: IndexThreadOptions) {
    this.#options = options;
    const { init, clock } = options;
    const { directory, diskMax, cursorSeq, matchBudgetMs } = init;
    const keeper = new IndexKeeper({
      directory,
      header: new SharedHeader(init.header),
      diskMax,
      clock,
      cursorSeq,
      events: {
        opened: (index) => {
          this.#writes.onOpened(index);
          options.tell({ kind: "settle", code: "cache_closed" });
        },
        dropped: (reason) => this.#raiseDropped(reason),
        failed: (reason) => this.#onOpenFailed(reason),
      },
    });
    this.#keeper = keeper;
    this.#matcher = new MatchProcess(new URL(init.matcherEntry));
    this.#writes = new WriteQueue({
      keeper,
      clock,
      onTrouble: (reason) => this.#tellTrouble(reason),
    });
    this.#clearing = new Clearing({
      keeper,
      matcher: this.#matcher,
      patterns: this.#patterns,
      clock,
      directory,
      matchBudgetMs,
      onWidened: ({ domain, host }, reason) =>
        options.tell({
          kind: "raise",
          code: "clear_widened",
          severity: "info",
          text: `a clear widened to everything of ${host ?? domain ?? "all domains"}: ${reason}`,
          hint: "Nothing stale was served; more than the patterns asked for is fetched again.",
        }),
    });
    this.#totals = setInterval(() => this.#tellTotals(), totalsEveryMs);
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
      case "search":
        return this.#search(call.asked);
      case "stats":
        return Promise.resolve(this.#stats());
      case "check":
        return this.#check();
      case "close":
        return this.#close();
      default:
        return call satisfies never;
    }
  }

  async #search({ scope, pattern, limit }: Calls["search"]["asked"]): Promise<SearchResult> {
    const fault = this.#patterns.check(pattern);
    if (fault !== undefined)
      throw new AccelError("PATTERN_INVALID", `the pattern ${JSON.stringify(pattern)} ${fault}`);
    const answer = await this.#ask(
      { kind: "match", scope, patterns: [pattern] },
      this.#options.init.matchBudgetMs,
    );
    const index = this.#keeper.index;
    if (answer.kind !== "matched" || index === undefined)
      throw new AccelError(
        "INDEX_BROKEN",
        answer.kind === "failed" ? `the search failed: ${answer.reason}` : "the index is closed",
      );
    const ids = [...decodeIdRuns(answer.ids)].filter((id) => index.bits.has(id));
    const newest = ids.slice(-Math.min(limit, samplesMax)).toReversed();
    return { matched: ids.length, samples: newest.flatMap((id) => index.entries.found(id) ?? []) };
  }

  async #check(): Promise<CheckResult> {
    const answer = await this.#ask({ kind: "check" }, checkBudgetMs);
    if (answer.kind === "checked")
      return { ok: answer.problems.length === 0, problems: answer.problems };
    return { ok: false, problems: [answer.kind === "failed" ? answer.reason : "no answer"] };
  }

  /** In a matcher of its own: a clear never waits for an operator. */
  async #ask(
    job:
      | Pick<Extract<MatchJob, { kind: "match" }>, "kind" | "scope" | "patterns">
      | { kind: "check" },
    budgetMs: number,
  ): Promise<MatchAnswer> {
    const { directory, matcherEntry } = this.#options.init;
    const incarnation = this.#keeper.index?.incarnation;
    if (incarnation === undefined)
      return { kind: "failed", reason: "the cache index is closed", damaged: false };
    using matcher = new MatchProcess(new URL(matcherEntry));
    return await matcher.run({ ...job, directory, incarnation }, budgetMs);
  }

  #stats(): CacheStats {
    const { index } = this.#keeper;
    return {
      isOpen: index !== undefined,
      entries: index?.entries.count ?? 0,
      bytes: index?.entries.bytes ?? 0,
      diskMax: this.#options.init.diskMax,
      clearNo: index?.clears.newest ?? 0,
      unfinishedClears: index?.unfinishedClears ?? 0,
    };
  }

  async #close(): Promise<null> {
    await this.#clearing.idle(); // Killing the matcher under a clear would widen it.
    clearTimeout(this.#reopen);
    clearInterval(this.#totals);
    this.#matcher[Symbol.dispose]();
    this.#writes[Symbol.dispose]();
    await this.#keeper.close(this.#options.sync);
    this.#patterns[Symbol.dispose]();
    return null;
  }

  #tellTotals(): void {
    const { stored, blocked, evicted } = this.#keeper.counts;
    const totals = { ...this.#stats(), stored, blocked, evicted, failed: this.#writes.failed };
    this.#options.tell({ kind: "totals", totals });
  }

  #tellTrouble(reason: string | undefined): void {
    if (reason === undefined) this.#options.tell({ kind: "settle", code: "cache_not_stored" });
    else
      this.#options.tell({
        kind: "raise",
        code: "cache_not_stored",
        severity: "warning",
        text: `responses cannot be stored: ${reason}`,
        hint: "Check free space and health of the disk that holds the state directory; visitors are served meanwhile.",
      });
  }

  #raiseDropped(reason: string): void {
    this.#options.tell({
      kind: "raise",
      code: "cache_dropped",
      severity: "info",
      text: `everything cached was dropped: ${reason}`,
      hint: "Nothing to do: the cache fills again. A damaged index was set aside beside index.db.",
    });
  }

  #onOpenFailed(reason: string): void {
    this.#options.tell({
      kind: "raise",
      code: "cache_closed",
      severity: "error",
      text: `the cache index cannot be opened: ${reason}`,
      hint: "Everything is fetched from the origin meanwhile; opening is tried again every few seconds.",
    });
    clearTimeout(this.#reopen);
    this.#reopen = setTimeout(() => void this.#keeper.open(), reopenMs);
  }
}
