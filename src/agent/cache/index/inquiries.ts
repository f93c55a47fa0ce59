// What is asked of the index without changing it: searches, dry runs, the check, why an URL is cached. Each asks a matcher of its own, so that no clear
// waits for an operator; only so many at a time.

import type { PatternCheck } from "../../../base/pattern-check.ts";
import { AccelError } from "../../../core/faults.ts";
import { patternsFault } from "../../../core/patterns/pattern-fault.ts";
import { Guard } from "./guard.ts";
import type { IndexKeeper } from "./index-keeper.ts";
import { Lookups } from "../worker/lookups.ts";
import type { MatchAnswer, MatchJob } from "../clearing/match-job.ts";
import { MatchProcess } from "../clearing/matcher-child.ts";
import { matchSelection, type SelectionMatched } from "../clearing/match-selection.ts";
import type { ClearSelection } from "../clearing/selection.ts";
import type { Calls, CheckResult, IndexVerdict, SearchResult } from "../messages.ts";
import type { Scope } from "../entry.ts";
import type { OpenIndex } from "./open-index.ts";
import { explain, type WhyAnswer } from "./why.ts";

/** An operator waits for it, no visitor does. */
const checkBudgetMs = 120_000;
/**
 * The budget of a proof, in budgets of a clear: it includes the start of a process, and only the second
 * receipt waits for it.
 */
const proofBudgets = 4;
/** A process that starts on a busy host takes longer than matching does, and says nothing about the pattern. */
const startBudgetMs = 20_000;
/** Clears come in rows, and starting a process costs more than asking it. */
const proverIdleMs = 10_000;
/** Everybody else goes first. */
const scrubNiceness = 19;
const samplesMax = 10_000;
/** The most processes, of some 50 MB each, beside that of clears and that of their proofs. */
const matchersMax = 3;

export type InquiriesOptions = {
  readonly keeper: IndexKeeper;
  readonly patterns: PatternCheck;
  readonly directory: string;
  readonly matcherEntry: string;
  readonly matchBudgetMs: number;
};

/** A job for the matcher, without its place. */
type Job = MatchJob extends infer J
  ? J extends J
    ? Omit<J, "directory" | "incarnation">
    : never
  : never;

export class Inquiries implements Disposable {
  readonly #options: InquiriesOptions;
  readonly #running = new Set<MatchProcess>();
  #matchers = 0;
  /** Kept for a while after the last proof. */
  #prover: MatchProcess | undefined;
  #proverIdle: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: InquiriesOptions) {
    this.#options = options;
  }

  async search({
    scope,
    selection,
    limit,
    budgetMs,
  }: Calls["search"]["asked"]): Promise<SearchResult> {
    const { keeper, matchBudgetMs } = this.#options;
    const fault = patternsFault(selection.patterns ?? [], this.#options.patterns.check);
    if (fault !== undefined) throw new AccelError("PATTERN_INVALID", fault);
    const before = keeper.index;
    if (before === undefined) throw new AccelError("INDEX_BROKEN", keeper.closedText);
    const answer = await this.#matched(before, { scope, selection }, budgetMs ?? matchBudgetMs);
    const { index } = keeper;
    if (answer.kind === "failed" && answer.overBudget === true)
      return { matched: 0, samples: [], overBudget: true };
    if (answer.kind === "failed" || index !== before)
      throw new AccelError(
        "INDEX_BROKEN",
        answer.kind === "failed" ? `the search failed: ${answer.reason}` : keeper.closedText,
      );
    const { ids } = answer;
    const newest = Array.from(ids.subarray(-Math.min(limit, samplesMax))).toReversed();
    const samples = newest.flatMap((id) => index.entries.found(id) ?? []);
    return { matched: ids.length, samples, overBudget: false };
  }

  /** Has one matcher of its own for all parts. */
  #matched(
    index: OpenIndex,
    asked: { readonly scope: Scope; readonly selection: ClearSelection },
    budgetMs: number,
  ): Promise<SelectionMatched> {
    return this.#inPlace(async (matcher) => {
      const started = await this.#runIn(matcher, index, { kind: "ready" }, startBudgetMs);
      if (started.kind === "failed")
        return { kind: "failed", reason: started.reason, damaged: started.damaged };
      return matchSelection({
        ...asked,
        index,
        budgetMs: Math.min(budgetMs, this.#options.matchBudgetMs),
        elapsedMs: () => performance.now(),
        match: (patterns, restMs) => {
          const job = { kind: "match", patterns, newestNo: 0, checkFirst: false } as const;
          return this.#runIn(matcher, index, job, restMs);
        },
      });
    });
  }

  async check(): Promise<CheckResult> {
    const answer = await this.#ask({ kind: "check" }, checkBudgetMs);
    if (answer.kind === "checked")
      return { ok: answer.problems.length === 0, problems: answer.problems };
    return { ok: false, problems: [answer.kind === "failed" ? answer.reason : "no answer"] };
  }

  /** Checks the index; nobody waits for it. A damaged index is set aside, and an empty one takes its place. */
  async scrub(): Promise<IndexVerdict> {
    const { keeper } = this.#options;
    const { index } = keeper;
    if (index === undefined) return { kind: "unchecked", reason: "the cache index is closed" };
    const answer = await this.#run(index, { kind: "index" }, checkBudgetMs, scrubNiceness);
    if (answer.kind === "failed" && !answer.damaged)
      return { kind: "unchecked", reason: answer.reason };
    const reason = answer.kind === "checked" ? answer.problems[0] : undefined;
    const damage = answer.kind === "failed" ? answer.reason : reason;
    if (damage === undefined) return { kind: "whole" };
    if (keeper.index === index) await keeper.drop(`the cache index is damaged: ${damage}`);
    return { kind: "damaged", reason: damage };
  }

  /**
   * Checks the text index in the background after an unclean end; a clear that comes before the answer asks
   * for itself. A damaged index is dropped.
   */
  async checkText(index: OpenIndex): Promise<void> {
    const { keeper } = this.#options;
    const answer = await this.#run(index, { kind: "text" }, checkBudgetMs);
    if (answer.kind !== "checked" || keeper.index !== index) return;
    const [problem] = answer.problems;
    if (problem === undefined) index.noteChecked();
    else await keeper.drop(`the text index is damaged: ${problem}`);
  }

  /** Explains why URLs are cached, or are not. Synchronous: entries, bits and clears are of one moment. */
  why({ keys }: Calls["why"]["asked"]): WhyAnswer {
    const { index, closedText } = this.#options.keeper;
    if (index === undefined) throw new AccelError("INDEX_BROKEN", closedText);
    using lookups = new Lookups(this.#options.directory, index.incarnation);
    using guard = new Guard();
    return explain({ index, lookups, guard }, keys);
  }

  /**
   * Asks for the proof of a clear. Proofs are asked for one at a time, so this one needs no place among the
   * others.
   */
  async verify(
    index: OpenIndex,
    clear: {
      readonly clearNo: number;
      readonly domain: string | null;
      readonly host: string | null;
      readonly selection: ClearSelection;
      readonly isSoft: boolean;
    },
  ): Promise<MatchAnswer> {
    const { domain, host, selection, isSoft, clearNo: olderThan } = clear;
    const { directory, matcherEntry, matchBudgetMs } = this.#options;
    const scope = { domain, host };
    if (this.#isClosed)
      return { kind: "failed", reason: "the cache index is closed", damaged: false };
    clearTimeout(this.#proverIdle);
    this.#prover ??= new MatchProcess(new URL(matcherEntry));
    const job = { kind: "older", scope, selection, olderThan, isSoft, directory } as const;
    const budgetMs = matchBudgetMs * proofBudgets;
    const answer = await this.#prover.run({ ...job, incarnation: index.incarnation }, budgetMs);
    if (!this.#isClosed)
      this.#proverIdle = setTimeout(() => this.#endProver(), proverIdleMs).unref();
    return answer;
  }

  #endProver(): void {
    this.#prover?.[Symbol.dispose]();
    this.#prover = undefined;
  }

  async #ask(job: Job, budgetMs: number): Promise<MatchAnswer> {
    const { index, closedText } = this.#options.keeper;
    if (index === undefined) return { kind: "failed", reason: closedText, damaged: false };
    return this.#inPlace((matcher) => this.#runIn(matcher, index, job, budgetMs));
  }

  /** Runs with a matcher of its own, unless too many are under way. */
  async #inPlace<T>(
    action: (matcher: MatchProcess) => Promise<T>,
  ): Promise<T | Extract<MatchAnswer, { kind: "failed" }>> {
    if (this.#matchers >= matchersMax)
      return { kind: "failed", reason: "too many searches are under way", damaged: false };
    this.#matchers++;
    try {
      return await this.#withMatcher(undefined, action);
    } finally {
      this.#matchers--;
    }
  }

  async #withMatcher<T>(
    niceness: number | undefined,
    action: (matcher: MatchProcess) => Promise<T>,
  ): Promise<T> {
    using matcher = new MatchProcess(new URL(this.#options.matcherEntry), { niceness });
    this.#running.add(matcher);
    try {
      return await action(matcher);
    } finally {
      this.#running.delete(matcher);
    }
  }

  async #run(
    index: OpenIndex,
    job: Job,
    budgetMs: number,
    niceness?: number,
  ): Promise<MatchAnswer> {
    return this.#withMatcher(niceness, (matcher) => this.#runIn(matcher, index, job, budgetMs));
  }

  #runIn(
    matcher: MatchProcess,
    { incarnation }: OpenIndex,
    job: Job,
    budgetMs: number,
  ): Promise<MatchAnswer> {
    const { directory } = this.#options;
    return matcher.run({ ...job, directory, incarnation }, budgetMs);
  }

  /** Ends; what is under way fails. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#proverIdle);
    this.#endProver();
    for (const matcher of this.#running) matcher[Symbol.dispose]();
  }
}
