// Clears as main gives them: asked of the index thread, noted in agent.db before they are acknowledged, counted, and told in one log line each.

import { randomUUID } from "node:crypto";
import type { Log } from "../../base/log.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import type { CacheMetrics } from "./cache-metrics.ts";
import type { ClearApplied, ClearGone, ClearRequest } from "./clears.ts";
import type { Scope } from "./entry.ts";
import type { CallName, Calls } from "./messages.ts";
import type { IndexMemory } from "./opening.ts";

export type ClearOrdersOptions = {
  readonly call: <N extends CallName>(
    name: N,
    asked: Calls[N]["asked"],
  ) => Promise<Calls[N]["answer"]>;
  readonly memory: IndexMemory;
  readonly metrics: CacheMetrics;
  readonly log: Log;
};

export type ClearOrder = Omit<ClearRequest, "patterns"> & { readonly patterns: readonly string[] };
export type ClearProof = {
  /** Nothing that matches is servable, whatever ends. */
  readonly applied: Promise<ClearApplied>;
  /** Rows and bodies are deleted, and the predicate was asked again. Settles only after `applied`. */
  readonly gone: Promise<ClearGone>;
};

export class ClearOrders {
  readonly #options: ClearOrdersOptions;
  /** The newest number that agent.db has. */
  #notedNo: number;

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
    return { applied, gone };
  }

  /** Everything in scope; durable when it resolves. */
  async drop(scope: Scope, why: string): Promise<{ removed: number }> {
    const clearId = `${why}-${randomUUID()}`;
    const { clearNo, matched } = await this.#options.call("clear", {
      ...scope,
      clearId,
      patterns: null,
      seq: 0,
    });
    this.#note(clearNo);
    this.#options.log.info({ ...scope, clear_id: clearId, clear_no: clearNo, matched }, "dropped");
    return { removed: matched };
  }

  /** A number beside those of clears, of an invalidation: noted when there is time. */
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

  /** Nobody repeats it, so it counts only when a copy of index.db that is put back cannot undo it. */
  #noteOwn(clearNo: number): void {
    try {
      this.#note(clearNo);
    } catch (error) {
      throw new AccelError(
        "INDEX_BROKEN",
        `the clear is in force, but agent.db could not note it: ${messageOf(error)}`,
        { cause: error },
      );
    }
  }

  #note(clearNo: number): void {
    if (clearNo <= this.#notedNo) return;
    this.#options.memory.note({ clearNo });
    this.#notedNo = clearNo;
  }

  /** Never rejects. */
  async #tell(
    { clearId, domain, host, patterns, seq }: ClearOrder,
    applying: Promise<ClearApplied>,
    going: Promise<ClearGone>,
  ): Promise<void> {
    const { log, metrics } = this.#options;
    const facts = { clear_id: clearId, seq, domain, host, patterns: patterns.length };
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
      log.warn({ ...facts, ...proof, error: messageOf(error) }, "cleared, deletion not proved yet");
    }
  }
}

/** More is noise to whoever reads it. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
