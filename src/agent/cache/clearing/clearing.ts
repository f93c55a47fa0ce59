// A clear from its number to its proof (guarantees: nothing that matches and whose source was read before is served after `applied`).
//
//   record   numbered and known to the guard: no fetch that began before can store a match any more
//   match    in a process of its own, within the budget of the whole clear
//   hide     the bits fall: no worker serves a match any more; those of a soft clear: none serves it as fresh
//   apply    one FULL commit of the clear and its ids: no restart serves a match any more. Now it is acknowledged
//   gone     rows and objects are deleted, in steps
//   verify   the predicate is asked again: nothing servable from before the clear matches (verification.ts)
//
// Where matching fails it widens to everything in scope, where the index fails to everything there is. Only an invalid pattern is refused.

import type { PatternCheck } from "../../../base/pattern-check.ts";
import { Mutex } from "../../../base/mutex.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import { patternsFault } from "../../../core/patterns/pattern-fault.ts";
import type { ClearApplied, ClearGone, ClearRequest } from "./clears.ts";
import type { IndexClock } from "../index/clock.ts";
import type { Scope } from "../entry.ts";
import type { IndexKeeper } from "../index/index-keeper.ts";
import type { MatchProcess } from "./matcher-child.ts";
import { matchSelection } from "./match-selection.ts";
import type { MatchAnswer } from "./match-job.ts";
import type { OpenIndex } from "../index/open-index.ts";
import type { Verification } from "./verification.ts";

/** The result of a clear when everything that it could have hit went with the file. */
const nothingLeft: ClearGone = {
  removed: 0,
  blockedInFlight: 0,
  goneMs: 0,
  verified: true,
  left: 0,
};

const textsMissing = "the text index does not cover every entry";

export type ClearingOptions = {
  readonly keeper: IndexKeeper;
  readonly matcher: MatchProcess;
  readonly verification: Verification;
  readonly patterns: PatternCheck;
  readonly clock: IndexClock;
  readonly directory: string;
  readonly matchBudgetMs: number;
  /** Told of each clear that had to widen, once. */
  readonly onWidened: (scope: Scope, reason: string) => void;
};

export class Clearing {
  readonly #options: ClearingOptions;
  /** One at a time, in their order: a clear's budget is its own, and the cursor follows the journal. */
  readonly #one = new Mutex();
  #underWay = 0;

  constructor(options: ClearingOptions) {
    this.#options = options;
  }

  /** Whether a clear is under way, or waits for one. */
  get isBusy(): boolean {
    return this.#underWay > 0;
  }

  /** Clears. Rejects with PATTERN_INVALID, before anything changed, and with nothing else. */
  async clear(request: ClearRequest): Promise<ClearApplied> {
    const startedMs = this.#options.clock.elapsedMs();
    this.#underWay++;
    try {
      return await this.#one.run(() => this.#clear(request, startedMs));
    } finally {
      this.#underWay--;
    }
  }

  /** Resolves when all clears that were given have ended. */
  idle(): Promise<void> {
    return this.#one.run(() => undefined);
  }

  /** Returns whether a clear by URL may have hit the scope, when all clears that were given have ended. */
  async isClearedByUrl(scope: Scope): Promise<boolean> {
    await this.idle();
    return this.#options.keeper.index?.clears.isByUrl(scope) ?? true;
  }

  /** Resolves when what an applied clear hit is deleted and the predicate was asked again. */
  async gone(clearId: string): Promise<ClearGone> {
    const { keeper, verification } = this.#options;
    const index = keeper.index;
    const stored = index?.clears.stored(clearId);
    if (index === undefined || stored === undefined) return nothingLeft;
    const gone = (await index.gone(stored.clearNo)) ?? stored.gone;
    if (gone.verified !== null) return gone;
    return { ...gone, ...(await verification.verify(index, stored)) };
  }

  async #clear(request: ClearRequest, startedMs: number): Promise<ClearApplied> {
    this.#refuseInvalid(request.patterns ?? []);
    const { keeper, clock } = this.#options;
    await keeper.open();
    const index = keeper.index;
    if (index === undefined) return this.#whileClosed(request, startedMs);
    try {
      const stored = index.clears.stored(request.clearId);
      if (stored !== undefined) return stored.applied;
      const givenS = clock.nowS();
      const softSinceS = request.isSoft === true ? givenS : undefined;
      const clearNo = index.record(request, givenS);
      const found = await this.#match(index, request);
      if (found !== undefined) {
        const { ids: matching, widened } = found;
        // In one step, when all parts are known: a clear of several hosts is one clear.
        const isSoft = softSinceS !== undefined;
        const ids = isSoft ? index.soften(matching, softSinceS) : index.hideAll(matching);
        const matched = isSoft ? matching.length : ids.length;
        const invisibleMs = clock.elapsedMs() - startedMs;
        index.apply(clearNo, request.seq, { ids, matched, widened, invisibleMs, softSinceS });
        keeper.noteCursor(request.seq);
        return { clearNo, matched, widened, invisibleMs };
      }
    } catch (error) {
      return this.#widenToAll(request, startedMs, messageOf(error));
    }
    // The index was replaced meanwhile, and everything went with it: what there is now is cleared.
    return { ...(await this.#clear(request, startedMs)), widened: true };
  }

  #refuseInvalid(patterns: readonly string[]): void {
    const fault = patternsFault(patterns, this.#options.patterns.check);
    if (fault !== undefined) throw new AccelError("PATTERN_INVALID", fault);
  }

  /** Returns what matches and is servable, to be hidden in this step; undefined when the index is no longer the one in use. Throws when it is damaged. */
  async #match(
    index: OpenIndex,
    { domain, host, patterns, groups = [], isWider = false }: ClearRequest,
  ): Promise<{ ids: Float64Array; widened: boolean } | undefined> {
    const scope = { domain, host };
    if (patterns === null) return { ids: index.servableIds(scope), widened: isWider };
    const { matchBudgetMs, keeper, onWidened, clock } = this.#options;
    const answer = await matchSelection({
      index,
      scope,
      selection: { patterns, groups },
      budgetMs: matchBudgetMs,
      elapsedMs: clock.elapsedMs,
      match: (list, budgetMs) => this.#askMatcher(index, list, budgetMs),
    });
    if (keeper.index !== index) return undefined;
    if (answer.kind === "matched") return { ids: answer.ids, widened: false };
    if (answer.damaged) throw new AccelError("INDEX_BROKEN", answer.reason);
    onWidened(scope, answer.reason);
    return { ids: index.servableIds(scope), widened: true };
  }

  async #askMatcher(
    index: OpenIndex,
    patterns: readonly string[],
    budgetMs: number,
  ): Promise<MatchAnswer> {
    const { matcher, directory } = this.#options;
    const { incarnation } = index;
    if (!index.entries.hasAllTexts()) throw new AccelError("INDEX_BROKEN", textsMissing);
    const newestNo = index.clears.newest;
    const checkFirst = index.isUnchecked;
    const job = { kind: "match", directory, incarnation, patterns, newestNo, checkFirst } as const;
    const answer = await matcher.run(job, budgetMs);
    if (answer.kind === "matched" && this.#options.keeper.index === index) index.noteChecked();
    return answer;
  }

  /** The index failed under this clear, damaged or on a disk that is full: nothing that was cached may be used again. */
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
    if (index === undefined) return { ...this.#whileClosed(request, startedMs), matched };
    const invisibleMs = clock.elapsedMs() - startedMs;
    const widened = true;
    try {
      // The new index is durable, empty and knows the cursor; this is for who asks again.
      const clearNo = index.record(request);
      index.apply(clearNo, request.seq, { ids: new Float64Array(), widened, invisibleMs });
      return { clearNo, matched, widened, invisibleMs };
    } catch {
      // Who asks again is answered by a clear of what there is then. No fetch of before is stored or shared: the new index has a number above all of theirs.
      return { clearNo: index.clears.durableNo, matched, widened, invisibleMs };
    }
  }

  /**
   * Applies a clear while no index is open. Nothing is servable, and no earlier index is opened again: not by
   * this process, for the keeper asks for the number from then on, and not by the next, for main notes the
   * number in agent.db before it acknowledges the clear.
   */
  #whileClosed({ seq }: ClearRequest, startedMs: number): ClearApplied {
    const { keeper, clock } = this.#options;
    keeper.noteCursor(seq);
    const clearNo = keeper.numberWhileClosed();
    return { clearNo, matched: 0, widened: true, invisibleMs: clock.elapsedMs() - startedMs };
  }
}
