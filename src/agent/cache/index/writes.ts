// What workers ask of the index, decided within the transaction of their batch: what is stored, changed or removed, and what must follow the commit.

import { isOvertaken } from "../../../core/http/http-age.ts";
import { lifetimeUnder } from "../../../core/http/http-cache.ts";
import type { Clears } from "../clearing/clears.ts";
import type {
  NewEntry,
  CommitOutcome,
  EntryKey,
  EntryMeta,
  Refreshed,
  StoredBody,
  VariantForm,
} from "../entry.ts";
import type { Cause } from "./departures.ts";
import type { Entries, Place, Removed } from "./entries.ts";
import type { Site } from "./entry-sites.ts";
import type { PresentKeys } from "./key-presence.ts";
import type { EntryBits } from "./entry-bits.ts";
import type { SharedHeader } from "./shared-header.ts";

export type Write =
  | { readonly kind: "commit"; readonly candidate: NewEntry }
  /** Refreshes in place, while the entry is servable. */
  | {
      readonly kind: "refresh";
      readonly id: number;
      readonly key: EntryKey;
      readonly refreshed: Refreshed;
    }
  | {
      readonly kind: "variant";
      readonly baseId: number;
      readonly key: EntryKey;
      readonly form: VariantForm;
      readonly body: StoredBody;
      readonly size: number;
    }
  | { readonly kind: "invalidate"; readonly key: EntryKey }
  /** The body is missing or torn. */
  | { readonly kind: "lost"; readonly id: number }
  /** The file's digest is right: it need not be read for that again. */
  | { readonly kind: "verified"; readonly id: number }
  | { readonly kind: "used"; readonly ids: Float64Array };

/**
 * The effect after the commit: what has become servable and whose it is, what has ceased to be, and whose
 * look-ups are out of date.
 */
export type Effect = {
  readonly on?: { readonly id: number; readonly site: Site };
  readonly off: readonly Removed[];
  readonly changed?: EntryKey;
  /** The entry that its origin has confirmed since all soft clears. */
  readonly confirmed?: number;
};

export type WriteDecision = { readonly outcome: CommitOutcome | null; readonly effect?: Effect };

/**
 * What the writes of one transaction have stored and removed so far, by id; their bits stand until the
 * commit.
 */
export type Turn = { readonly on: Set<number>; readonly off: Set<number> };

export type WritesDeps = {
  readonly entries: Entries;
  readonly clears: Clears;
  readonly bits: EntryBits;
  readonly fresh: Pick<EntryBits, "has">;
  /** Undefined: nobody looks which keys have no entry. */
  readonly keys: Pick<PresentKeys, "add"> | undefined;
  readonly header: Pick<SharedHeader, "invalidationMark">;
};

export class Writes {
  readonly #deps: WritesDeps;
  readonly #entries: Entries;
  readonly #clears: Clears;
  readonly #bits: EntryBits;

  constructor(deps: WritesDeps) {
    this.#deps = deps;
    this.#entries = deps.entries;
    this.#clears = deps.clears;
    this.#bits = deps.bits;
  }

  decide(write: Write, turn: Turn, nowS: number): WriteDecision {
    const decision = this.#decide(write, turn, nowS);
    const { on, off = [] } = decision.effect ?? {};
    if (on !== undefined) turn.on.add(on.id);
    for (const { id } of off) turn.off.add(id);
    return decision;
  }

  #decide(write: Write, turn: Turn, nowS: number): WriteDecision {
    switch (write.kind) {
      case "commit":
        return this.#store(write.candidate, turn, nowS);
      case "refresh":
        return this.#refresh(write, turn, nowS);
      case "variant":
        return this.#storeVariant(write, turn, nowS);
      case "invalidate":
        this.#clears.numberInvalidation();
        return {
          outcome: null,
          effect: { off: this.#entries.removeKey(write.key, this.#cause("invalidated", nowS)) },
        };
      case "lost":
        return {
          outcome: null,
          effect: {
            off: this.#entries.remove([write.id], { reason: "lost", clearNo: null, atS: nowS }),
          },
        };
      case "verified":
        this.#entries.markVerified(write.id);
        return { outcome: null };
      case "used":
        this.#entries.touch(write.ids, nowS);
        return { outcome: null };
      default:
        return write satisfies never;
    }
  }

  #store(candidate: NewEntry, turn: Turn, nowS: number): WriteDecision {
    const { key } = candidate;
    const blocked = this.#clears.blocks(candidate);
    // Refused for its age alone, what it would have replaced is as old: without it the next request asks the origin for all of it.
    if (blocked?.why === "forgotten")
      return {
        outcome: { kind: "blocked" },
        effect: { off: this.#entries.removeKey(key, this.#cause("cleared", nowS)) },
      };
    if (blocked !== undefined) {
      this.#clears.countRefused(blocked.clearNo);
      return { outcome: { kind: "blocked" } };
    }
    const place = this.#entries.place(candidate);
    if (this.#isOvertaken(candidate, place, turn, nowS)) return { outcome: { kind: "blocked" } };
    if (this.#isInvalidated(candidate)) return { outcome: { kind: "blocked" } };
    const isLive = (other: number): boolean => this.#isLive(other, turn);
    const { id, removed } = this.#entries.put(candidate, place, nowS, isLive);
    return {
      outcome: { kind: "stored", id },
      effect: { on: { id, site: key }, off: removed, changed: key },
    };
  }

  /**
   * Returns whether the URL was invalidated since the source was asked. That the key has an entry is shown first: from then on an invalidation comes to the
   * index, and of those before it the mark tells. (A variant has the key of its base, which is shown.)
   */
  #isInvalidated({ key, invalidationMark }: NewEntry): boolean {
    const { keys, header } = this.#deps;
    keys?.add(key);
    return invalidationMark !== null && header.invalidationMark(key) !== invalidationMark;
  }

  /**
   * Returns whether a newer response was stored while this one was fetched. A newer one that may not be
   * served any more, or that a soft clear made stale, stands in nobody's way, and a response whose rest somebody waits for is stored anyway:
   * better a little older than half an answer.
   */
  #isOvertaken(
    { isAwaited, meta, madeAfterMs, lifetimes }: NewEntry,
    place: Place,
    turn: Turn,
    nowS: number,
  ): boolean {
    if (isAwaited === true) return false;
    const held = place.held.find(({ coding }) => coding === "");
    if (held === undefined) return false;
    if (!this.#isLive(held.id, turn)) return false;
    if (!turn.on.has(held.id) && !this.#deps.fresh.has(held.id)) return false;
    const headers: EntryMeta["headers"] = JSON.parse(held.headers);
    const stored = { ...held, headers };
    const freshForS = lifetimes === undefined ? held.freshForS : lifetimeUnder(stored, lifetimes);
    const endOfSecondMs = (nowS + 1) * 1_000;
    return isOvertaken({ ...meta, madeAfterMs }, { ...stored, freshForS }, endOfSecondMs);
  }

  /**
   * Refreshes an entry. The row keeps its source number and its bit: whatever clear is under way finds it by its words. Where those change, a clear may have looked at either
   * the old or the new ones, so neither may match. A soft clear that came after the origin was asked leaves it as it is: stale.
   */
  #refresh(
    { id, key, refreshed }: Extract<Write, { kind: "refresh" }>,
    turn: Turn,
    nowS: number,
  ): WriteDecision {
    const row = this.#servable(id, turn);
    if (row === undefined || row.coding !== "") return { outcome: { kind: "blocked" } };
    const { mime, tags = row.tags, confirmedNo } = refreshed;
    if (this.#isSoftenedSince(row, confirmedNo)) return { outcome: { kind: "blocked" } };
    if (mime !== row.mime || tags !== row.tags) {
      const renamed = { mime, tags, sourceNo: row.sourceNo, confirmedNo };
      const blocked =
        this.#isBlockedNow(row) || this.#clears.blocks({ key: row, meta: renamed }) !== undefined;
      if (blocked)
        return {
          outcome: { kind: "blocked" },
          effect: { off: this.#entries.remove([id], this.#cause("cleared", nowS)) },
        };
    }
    const removed = this.#entries.refresh(id, row, refreshed, nowS);
    return {
      outcome: { kind: "stored", id },
      effect: { off: removed, changed: key, confirmed: id },
    };
  }

  /** Returns whether a soft clear matches the row of which a confirmation that was asked for then knows nothing. */
  #isSoftenedSince(
    { mime, tags, ...key }: NonNullable<ReturnType<Entries["base"]>>,
    confirmedNo: number,
  ): boolean {
    const sourceNo = Math.max(confirmedNo, this.#clears.settledNo);
    const refusal = this.#clears.blocks({ key, meta: { mime, tags, sourceNo, confirmedNo } });
    return refusal !== undefined && (refusal.why === "forgotten" || refusal.isSoft);
  }

  /** Stores a variant. It has the words of its base: what matched them hid the base, and what is under way is asked here. */
  #storeVariant(
    { baseId, key, form, body, size }: Extract<Write, { kind: "variant" }>,
    turn: Turn,
    nowS: number,
  ): WriteDecision {
    const base = this.#servable(baseId, turn);
    if (base === undefined || base.coding !== "" || this.#isBlockedNow(base))
      return { outcome: { kind: "blocked" } };
    const { id, removed } = this.#entries.putVariant(baseId, base, { form, body, size }, nowS);
    return {
      outcome: { kind: "stored", id },
      effect: { on: { id, site: base }, off: removed, changed: key },
    };
  }

  /** Returns the newest clear, or the invalidation that is being decided, as the cause. */
  #cause(reason: "cleared" | "invalidated", atS: number): Cause {
    return { reason, clearNo: this.#clears.newest, atS };
  }

  #servable(id: number, turn: Turn): ReturnType<Entries["base"]> {
    return this.#isServable(id, turn) ? this.#entries.base(id) : undefined;
  }

  /** Returns whether a row that is there is servable, or will be when this transaction ends. */
  #isLive(id: number, turn: Turn): boolean {
    return turn.on.has(id) || this.#isServable(id, turn);
  }

  #isServable(id: number, turn: Turn): boolean {
    return this.#bits.has(id) && !turn.off.has(id);
  }

  /** Whether a clear that has not hidden its matches yet matches this servable row; those that have would have hidden it. */
  #isBlockedNow(row: NonNullable<ReturnType<Entries["base"]>>): boolean {
    const sourceNo = Math.max(row.sourceNo, this.#clears.settledNo);
    const { mime, tags } = row;
    return this.#clears.blocks({ key: row, meta: { mime, tags, sourceNo } }) !== undefined;
  }
}
