// The proof of a clear: after its deletion the matcher is asked once more. What it finds and workers could still serve, from a source that is older than
// the clear, contradicts the predicate: a defect of ours, so it is dropped and said aloud.

import { Mutex } from "../../../base/mutex.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import type { ClearGone, StoredClear } from "./clears.ts";
import { IdSet } from "./id-set.ts";
import type { IndexKeeper } from "../index/index-keeper.ts";
import type { MatchAnswer } from "./match-job.ts";
import type { OpenIndex } from "../index/open-index.ts";

export type Verified = Pick<ClearGone, "verified" | "left">;

export type VerificationOptions = {
  readonly keeper: IndexKeeper;
  /** Matches in a matcher of its own, within a budget: a clear waits for no verification. */
  readonly match: (
    index: OpenIndex,
    clear: Pick<StoredClear, "clearNo" | "domain" | "host" | "selection" | "isSoft">,
  ) => Promise<MatchAnswer>;
  /** Told of each that did not end with "nothing left". `left` 0: the predicate could not be asked. */
  readonly onUnverified: (clearNo: number, left: number, reason: string) => void;
};

export class Verification implements Disposable {
  readonly #options: VerificationOptions;
  readonly #one = new Mutex();
  #isClosed = false;

  constructor(options: VerificationOptions) {
    this.#options = options;
  }

  /** Asks whether anything of a clear is left. Rejects with INDEX_BROKEN where the index is closed before that is known. */
  verify(index: OpenIndex, clear: StoredClear): Promise<Verified> {
    return this.#one.run(async () => {
      const { keeper, onUnverified } = this.#options;
      const told = index.clears.verified(clear.clearNo);
      if (told !== undefined) return told; // By who asked before.
      const answer = await this.#options.match(index, clear);
      if (this.#isClosed || keeper.index === undefined)
        throw new AccelError(
          "INDEX_BROKEN",
          "the cache index was closed before the clear was verified",
        );
      if (keeper.index !== index) return { verified: true, left: 0 }; // Everything of before went with the file.
      try {
        const verified = this.#judge(index, clear, answer);
        // What could not be asked may be asked again.
        if (verified.verified || verified.left > 0)
          index.clears.noteVerified(clear.clearNo, verified);
        return verified;
      } catch (error) {
        onUnverified(clear.clearNo, 0, messageOf(error));
        return { verified: false, left: 0 };
      }
    });
  }

  /** Whatever is under way rejects: a stop says nothing of a clear. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
  }

  #judge(index: OpenIndex, clear: StoredClear, answer: MatchAnswer): Verified {
    const { clearNo, domain, host, selection } = clear;
    const { onUnverified } = this.#options;
    if (answer.kind !== "matched") {
      onUnverified(clearNo, 0, answer.kind === "failed" ? answer.reason : "no answer");
      return { verified: false, left: 0 };
    }
    const isPartial = index.entries.isIndexing && selection.patterns !== null;
    if (isPartial || !index.entries.hasAllTexts()) {
      onUnverified(clearNo, 0, "the text index does not cover every entry");
      return { verified: false, left: 0 };
    }
    const left = new IdSet(answer.ids).ascending().filter(isLeftOf(index, clear));
    if (left.length === 0) return { verified: true, left: 0 };
    const hidden = index.hideAll(left);
    const clearId = `left-of-${clearNo}`;
    const again = index.record({ clearId, seq: 0, domain, host, ...selection });
    index.apply(again, 0, { ids: hidden, widened: false, invisibleMs: 0 });
    onUnverified(clearNo, left.length, "entries that the clear matches were still servable");
    return { verified: false, left: left.length };
  }
}

/** Returns whether an entry that the clear matches contradicts it: it is servable, or after a soft clear fresh, and nothing newer than the clear says so. */
function isLeftOf(index: OpenIndex, { clearNo, isSoft }: StoredClear): (id: number) => boolean {
  return (id) => {
    if (!index.bits.has(id) || (isSoft && !index.fresh.has(id))) return false;
    const base = index.entries.base(id);
    if (base === undefined) return false;
    const { sourceNo, confirmedNo } = base;
    return (isSoft ? Math.max(sourceNo, confirmedNo) : sourceNo) < clearNo;
  };
}
