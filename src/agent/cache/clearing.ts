// A clear from its number to its proof (guarantees: nothing that matches and whose source was read before is served after `applied`).
//
//   record   numbered and known to the guard: no fetch that began before can store a match any more
//   match    in a process of its own, within the budget of the whole clear
//   hide     the bits fall: no worker serves a match any more
//   apply    one FULL commit of the clear and its ids: no restart serves a match any more. Now it is acknowledged
//   gone     rows and objects are deleted, in steps
//
// Where matching fails it widens to everything in scope, where the index fails to everything there is. Only an invalid pattern is refused.

import type { PatternCheck } from "../../base/pattern-check.ts";
import { Mutex } from "../../base/mutex.ts";
import { AccelError, messageOf } from "../../core/faults.ts";
import { patternsMax } from "../../core/pattern-budget.ts";
import type { ClearApplied, ClearGone, ClearRequest } from "./clears.ts";
import type { Scope } from "./entry.ts";
import type { IndexKeeper } from "./index-keeper.ts";
import type { MatchProcess } from "./matcher-child.ts";
import type { Clock, OpenIndex } from "./open-index.ts";

const nothingLeft: ClearGone = { removed: 0, blockedInFlight: 0, goneMs: 0 };

export type ClearingOptions = {
  readonly keeper: IndexKeeper;
  readonly matcher: MatchProcess;
  readonly patterns: PatternCheck;
  readonly clock: Clock;
  readonly directory: string;
  readonly matchBudgetMs: number;
  /** Told once a clear that had to widen. */
  readonly onWidened: (scope: Scope, reason: string) => void;
};

export class Clearing {
  readonly #options: ClearingOptions;
  /** One at a time, in their order: a clear's budget is its own, and the cursor follows the journal. */
  readonly #one = new Mutex();

  constructor(options: ClearingOptions) {
    this.#options = options;
  }

  /** Rejects with PATTERN_INVALID before anything changed, with INDEX_BROKEN where nothing is servable and this cannot be made durable. */
  clear(request: ClearRequest): Promise<ClearApplied> {
    const startedMs = this.#options.clock.elapsedMs();
    return this.#one.run(() => this.#clear(request, startedMs));
  }

  /** When all clears that were given have ended. */
  idle(): Promise<void> {
    return this.#one.run(() => undefined);
  }

  /** Only for a clear that was applied. */
  async gone(clearId: string): Promise<ClearGone> {
    const index = this.#options.keeper.index;
    const stored = index?.clears.stored(clearId);
    if (index === undefined || stored === undefined) return nothingLeft; // The whole index was deleted.
    return index.gone(stored.clearNo) ?? stored.gone;
  }

  async #clear(request: ClearRequest, startedMs: number): Promise<ClearApplied> {
    this.#refuseInvalid(request.patterns ?? []);
    const { keeper, clock } = this.#options;
    await keeper.open();
    const index = keeper.index;
    if (index === undefined) return this.#whileClosed(request);
    try {
      const stored = index.clears.stored(request.clearId);
      if (stored !== undefined) return stored.applied;
      const clearNo = index.record(request);
      const found = await this.#match(index, request);
      if (found !== undefined) {
        const invisibleMs = clock.elapsedMs() - startedMs;
        index.apply(clearNo, request.seq, { ...found, invisibleMs });
        keeper.noteCursor(request.seq);
        return { matched: found.ids.length, widened: found.widened, invisibleMs };
      }
    } catch (error) {
      return this.#widenToAll(request, startedMs, messageOf(error));
    }
    return this.#clear(request, startedMs); // The index was replaced meanwhile: what there is now is cleared.
  }

  #refuseInvalid(patterns: readonly string[]): void {
    if (patterns.length > patternsMax)
      throw new AccelError(
        "PATTERN_INVALID",
        `${patterns.length} patterns, at most ${patternsMax} are allowed`,
      );
    for (const pattern of patterns) {
      const reason = this.#options.patterns.check(pattern);
      if (reason !== undefined)
        throw new AccelError("PATTERN_INVALID", `the pattern ${JSON.stringify(pattern)} ${reason}`);
    }
  }

  /** Hides what matches; undefined when the index is no longer the one in use. Throws when it is damaged. */
  async #match(
    index: OpenIndex,
    { domain, host, patterns }: ClearRequest,
  ): Promise<{ ids: number[]; widened: boolean } | undefined> {
    if (patterns === null) return { ids: index.hideScope({ domain, host }), widened: false };
    const { matcher, directory, matchBudgetMs, keeper, onWidened } = this.#options;
    const { incarnation } = index;
    const answer = await matcher.run(
      { kind: "match", directory, incarnation, scope: { domain, host }, patterns },
      matchBudgetMs,
    );
    if (keeper.index !== index) return undefined;
    if (answer.kind === "matched") return { ids: index.hide(answer.ids), widened: false };
    const reason =
      answer.kind === "failed" ? answer.reason : "the matcher answered another question";
    if (answer.kind === "failed" && answer.damaged) throw new AccelError("INDEX_BROKEN", reason);
    onWidened({ domain, host }, reason);
    return { ids: index.hideScope({ domain, host }), widened: true };
  }

  /** The index failed under this clear: nothing that was cached may be used again. */
  async #widenToAll(
    request: ClearRequest,
    startedMs: number,
    reason: string,
  ): Promise<ClearApplied> {
    const { keeper, onWidened, clock } = this.#options;
    const matched = keeper.index?.entries.count ?? 0;
    onWidened({ domain: null, host: null }, reason);
    keeper.noteCursor(request.seq);
    await keeper.drop(reason);
    const index = keeper.index;
    if (index === undefined) return this.#whileClosed(request);
    const invisibleMs = clock.elapsedMs() - startedMs;
    try {
      // The new index is durable, empty and knows the cursor; this is for who asks again.
      index.apply(index.record(request), request.seq, { ids: [], widened: true, invisibleMs });
    } catch {
      // Who asks again is answered by a clear of what there is then.
    }
    return { matched, widened: true, invisibleMs };
  }

  /**
   * Nothing is servable, and no index will be opened that does not know this journal entry: neither by this process nor, since the agent keeps the
   * newest applied seq itself, by the next. A clear without a seq has nothing that would remember it.
   */
  #whileClosed({ seq }: ClearRequest): ClearApplied {
    if (seq === 0)
      throw new AccelError(
        "INDEX_BROKEN",
        "the cache index is closed: the clear cannot be made durable",
      );
    this.#options.keeper.noteCursor(seq);
    return { matched: 0, widened: true, invisibleMs: 0 };
  }
}
