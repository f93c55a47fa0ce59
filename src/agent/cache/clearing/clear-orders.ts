// Clears as main gives them: asked of the index thread, noted in agent.db before they are acknowledged, counted, and told in one log line each.

import { randomUUID } from "node:crypto";
import type { Log } from "../../../base/log.ts";
import { AccelError, codeOf, messageOf } from "../../../core/faults.ts";
import type { CacheMetrics } from "../cache-metrics.ts";
import type { ClearApplied, ClearGone, ClearRequest, RefusedStores } from "./clears.ts";
import type { Scope } from "../entry.ts";
import type { CallName, Calls } from "../messages.ts";
import type { IndexMemory } from "../index/opening.ts";

export type ClearOrdersOptions = {
  readonly call: <N extends CallName>(
    name: N,
    asked: Calls[N]["asked"],
  ) => Promise<Calls[N]["answer"]>;
  readonly memory: IndexMemory;
  readonly metrics: CacheMetrics;
  readonly log: Log;
};

export type ClearOrder = ClearRequest;
export type ClearProof = {
  /** Resolves when nothing that matches is servable any more, whatever ends. */
  readonly applied: Promise<ClearApplied>;
  /** Rows and bodies are deleted, and the predicate was asked again. Settles only after `applied`. */
  readonly gone: Promise<ClearGone>;
  /** One listener: told when fetches that were under way have ended since `gone`, with what it says by now. For the newest clears only, and until this process ends. */
  readonly onLate: (listener: (gone: ClearGone) => void) => void;
};

/** The most clears that are followed, of half a kilobyte each. What is refused for an older one is in `commits_total` alone. */
const followedMax = 1_000;

/** A clear of which fetches may still be under way. `counted`: responses that it kept from being stored, as told. */
type Followed = {
  readonly gone: Promise<ClearGone>;
  counted: number;
  listener: (gone: ClearGone) => void;
};

export class ClearOrders {
  readonly #options: ClearOrdersOptions;
  /** The newest number that agent.db has. */
  #notedNo: number;
  /** By clear id, the newest last. */
  readonly #followed = new Map<string, Followed>();

  constructor(options: ClearOrdersOptions) {
    this.#options = options;
    this.#notedNo = options.memory.read().clearNo;
  }

  clear(order: ClearOrder): ClearProof {
    const applied = this.#apply(order);
    const gone = applied.then(async () => {
      const told = await this.#options.call("gone", { clearId: order.clearId });
      return { ...told, goneMs: tenths(told.goneMs) };
    });
    void this.#tell(order, applied, gone);
    const followed = this.#follow(order.clearId, gone);
    return { applied, gone, onLate: (listener) => void (followed.listener = listener) };
  }

  /** Notes that responses were refused for a clear, before or after it was gone. */
  refused({ clearId, blocked }: RefusedStores): void {
    const followed = this.#followed.get(clearId);
    if (followed !== undefined) void this.#tellRefused(clearId, followed, blocked);
  }

  /** Tells that entries were barred. Never rejects. Of a clear that was not applied nothing is told. */
  async #tellRefused(clearId: string, followed: Followed, blocked: number): Promise<void> {
    const gone = await followed.gone.catch(() => undefined);
    if (gone === undefined || blocked <= followed.counted) return;
    this.#options.metrics.refused(blocked - followed.counted);
    followed.counted = blocked;
    const facts = { clear_id: clearId, blocked_in_flight: blocked };
    this.#options.log.info(facts, "further fetches that were under way at a clear were not stored");
    followed.listener({ ...gone, blockedInFlight: blocked });
  }

  #follow(clearId: string, gone: Promise<ClearGone>): Followed {
    const followed: Followed = { gone, counted: 0, listener: () => undefined };
    gone.then(
      ({ blockedInFlight }) => void (followed.counted = blockedInFlight),
      () => this.#followed.delete(clearId),
    );
    this.#followed.delete(clearId); // Moves it to the end.
    this.#followed.set(clearId, followed);
    const [oldest] = this.#followed.keys();
    if (this.#followed.size > followedMax && oldest !== undefined) this.#followed.delete(oldest);
    return followed;
  }

  /** Drops everything in scope; durable when it resolves. */
  async drop(scope: Scope, why: string): Promise<{ removed: number }> {
    const clearId = `${why}-${randomUUID()}`;
    const { clearNo, matched } = await this.#options.call("clear", {
      ...scope,
      clearId,
      patterns: null,
      seq: 0,
    });
    this.#note(clearNo);
    this.#options.metrics.numbered(clearNo);
    const facts = { ...scope, clear_id: clearId, clear_no: clearNo, matched };
    this.#options.log.info(facts, dropText(scope, matched));
    return { removed: matched };
  }

  /** Notes a number that agent.db need not have at once: of an invalidation, or of a clear of the journal. */
  noteLater(clearNo: number): void {
    if (clearNo <= this.#notedNo) return;
    try {
      this.#note(clearNo);
    } catch (error) {
      this.#options.log.warn({ error: messageOf(error) }, "agent.db could not be written");
    }
  }

  async #apply(order: ClearOrder): Promise<ClearApplied> {
    const { call, metrics } = this.#options;
    try {
      const told = await call("clear", order);
      const applied = { ...told, invisibleMs: tenths(told.invisibleMs) };
      // A clear of the journal is in agent.db when its receipt is: by its seq, in the same transaction.
      if (order.seq > 0) this.noteLater(applied.clearNo);
      else this.#noteOwn(applied.clearNo);
      metrics.cleared(applied);
      return applied;
    } catch (error) {
      metrics.notCleared(error);
      throw error;
    }
  }

  /** Notes a clear that was given on this host. Nobody repeats it, so it counts only when a copy of index.db that is put back cannot undo it. */
  #noteOwn(clearNo: number): void {
    try {
      this.#note(clearNo);
    } catch (error) {
      throw new AccelError(
        "DISK_FAILED",
        `the clear is in force, but agent.db could not record it: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }

  #note(clearNo: number): void {
    if (clearNo <= this.#notedNo) return;
    this.#options.memory.note({ clearNo });
    this.#notedNo = clearNo;
  }

  /** Tells what came of a clear. Never rejects. */
  async #tell(
    { clearId, domain, host, patterns, groups = [], isSoft = false, seq }: ClearOrder,
    applying: Promise<ClearApplied>,
    going: Promise<ClearGone>,
  ): Promise<void> {
    const { log, metrics } = this.#options;
    const count = [patterns, ...groups.map((group) => group.patterns)].reduce(
      (sum, list) => sum + (list?.length ?? 1),
      0,
    );
    const soft = isSoft && { soft: true };
    const facts = { clear_id: clearId, seq, domain, host, patterns: count, ...soft };
    const applied = await applying.catch((error: unknown) => {
      log.warn({ ...facts, code: codeOf(error), error: messageOf(error) }, "clear not applied");
      return undefined;
    });
    if (applied === undefined) {
      await going.catch(() => undefined); // The same error; whoever waits for it is told.
      return;
    }
    const { clearNo, matched, widened, invisibleMs } = applied;
    const proof = { clear_no: clearNo, matched, widened, invisible_ms: invisibleMs };
    try {
      const gone = await going;
      metrics.gone(gone);
      log.info(
        {
          ...facts,
          ...proof,
          removed: gone.removed,
          blocked_in_flight: gone.blockedInFlight,
          gone_ms: gone.goneMs,
          verified: gone.verified,
        },
        "cleared",
      );
    } catch (error) {
      log.warn(
        { ...facts, ...proof, error: messageOf(error) },
        "cleared; the deletion is not proved yet",
      );
    }
  }
}

function dropText({ domain, host }: Scope, matched: number): string {
  const of = host ?? domain;
  const what = of === null ? "everything cached" : `everything cached of ${of}`;
  return matched === 0 ? `${what} was to be dropped, but there was nothing` : `${what} was dropped`;
}

/** Rounds: more digits are noise to whoever reads them. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
