// The customer of the model check, central's journal and the operator of the host: what they order, and when it is acknowledged.

import { inScope, type Scope } from "../../src/agent/cache/entry.ts";
import type { IndexFacts } from "../../src/agent/cache/index/opening.ts";
import type { ModelAgent } from "./cache-model-agent.ts";
import { Order } from "./cache-model-oracle.ts";
import { keyOf, type VisitorBugs, type World } from "./cache-model-scene.ts";
import { namedNo, pages, patternNo, type Pattern } from "./cache-model-words.ts";

/** Faults of those who use the cache or have it cleared, planted by the test. */
export type CustomerBugs = VisitorBugs & { readonly unlinkForgets?: boolean };

type Ordered = World & {
  readonly bugs: CustomerBugs;
  /** What agent.db remembers. */
  facts: IndexFacts;
  broken: string | undefined;
  /** Of an agent that has ended nothing counts any more. */
  readonly isOver: (agent: ModelAgent) => boolean;
};

const scopes: readonly Scope[] = [
  { domain: "a.test", host: null },
  { domain: "a.test", host: "sub.a.test" },
  { domain: "b.test", host: null },
  { domain: null, host: null },
];

type Journaled = {
  readonly seq: number;
  readonly id: string;
  readonly scope: Scope;
  readonly patterns: readonly Pattern[];
  readonly order: Order;
};

function orderOf(scope: Scope, patterns: readonly Pattern[], isSoft: boolean): Order {
  return new Order(
    (page, mime) => inScope(scope, page) && patterns.some((pattern) => pattern.means(page, mime)),
    isSoft,
  );
}

export class Customer {
  /** How often everything was lost, clears with it. */
  losses = 0;
  readonly #walk: Ordered;
  readonly #journal: Journaled[] = [];
  /** Given to the agent and not yet receipted. */
  #journaled: { readonly seq: number; isApplied: boolean } | undefined;
  /** Given, one after the other, and not acknowledged. */
  #clearing: { readonly order: Order }[] = [];
  /** Invalidations of which agent.db does not know yet. */
  #unnoted: Order[] = [];
  #clears = 0;
  /** How often everything had been lost when it was acknowledged. */
  readonly #inForce = new Map<Order, number>();

  constructor(walk: Ordered) {
    this.#walk = walk;
  }

  get isReceiptDue(): boolean {
    return this.#journaled?.isApplied === true;
  }

  get isWaiting(): boolean {
    return this.#clearing.length > 0;
  }

  /** The process of the agent has ended. */
  end(): void {
    this.#clearing = [];
    this.#journaled = undefined;
  }

  /** Main notes the newest number in agent.db, as it does once a second. */
  note(): void {
    const { agent } = this.#walk;
    agent.orders.noteLater(agent.thread.keeper.index?.clears.durableNo ?? 0);
    this.#unnoted = [];
  }

  /** A copy of the index was put back: only what agent.db knows of tells that it is one. */
  forgive(): void {
    for (const order of this.#unnoted) order.withdraw();
    this.#unnoted = [];
  }

  /** They are applied one at a time, in their order. */
  widen(scope: Scope): void {
    this.#clearing[0]?.order.widen((page) => inScope(scope, page));
  }

  #patterns(a: number, c: number): Pattern[] {
    if (c % 5 === 1) return [namedNo(a), namedNo(a * 11 + c)];
    if (c % 5 === 2) return [patternNo(a), namedNo(a * 7 + c)];
    return c % 4 === 0 ? [patternNo(a), patternNo(a * 7 + c)] : [patternNo(a)];
  }

  clear(a: number, b: number, c: number, isSoft: boolean): void {
    const scope = scopes[b % scopes.length] ?? { domain: null, host: null };
    const patterns = this.#patterns(a, c);
    const order = orderOf(scope, patterns, isSoft);
    this.#give(order, scope, `local-${++this.#clears}`, 0, patterns, () => undefined);
  }

  /** Central's journal has one more; the agent is told when those before are receipted. */
  order(a: number, b: number, c: number): void {
    const scope = scopes[b % 3] ?? { domain: null, host: null };
    const patterns = this.#patterns(a, c);
    const order = orderOf(scope, patterns, Math.floor(c / 20) % 3 === 1);
    const seq = this.#journal.length + 1;
    this.#journal.push({ seq, id: `order-${seq}`, scope, patterns, order });
    this.feed();
  }

  feed(): void {
    if (this.#journaled !== undefined) return;
    const next = this.#journal[this.#walk.facts.clearSeq];
    if (next === undefined) return;
    const given = { seq: next.seq, isApplied: false };
    this.#journaled = given;
    this.#give(
      next.order,
      next.scope,
      next.id,
      next.seq,
      next.patterns,
      () => (given.isApplied = true),
    );
  }

  receipt(): void {
    if (this.#journaled?.isApplied !== true) return;
    this.#walk.facts = { ...this.#walk.facts, clearSeq: this.#journaled.seq };
    this.#journaled = undefined;
    this.feed();
  }

  #give(
    order: Order,
    scope: Scope,
    clearId: string,
    seq: number,
    patterns: readonly Pattern[],
    onApplied: () => void,
  ): void {
    const { agent } = this.#walk;
    const entry = { order };
    // What is in force changes nothing when it is repeated.
    if (this.#inForce.get(order) !== this.losses) this.#walk.oracle.give(order, this.#walk.now);
    this.#clearing.push(entry);
    const proof = agent.orders.clear({
      clearId,
      ...scope,
      seq,
      isSoft: order.isSoft,
      patterns: patterns.filter(({ group }) => group === undefined).map(({ fts }) => fts),
      groups: patterns.flatMap(({ group }) => group ?? []),
    });
    void this.#acknowledge(proof.applied, entry, () => {
      this.#inForce.set(order, this.losses);
      onApplied();
    });
    proof.gone.catch(() => undefined);
  }

  unlink(a: number): void {
    const { agent } = this.#walk;
    const host = a % 2 === 0 ? "sub.a.test" : null;
    const scope = { domain: host === null ? "b.test" : null, host };
    const order = new Order((page) => inScope(scope, page));
    const entry = { order };
    this.#walk.oracle.give(order, this.#walk.now);
    if (this.#walk.bugs.unlinkForgets === true) return order.ack(this.#walk.now);
    this.#clearing.push(entry);
    void this.#acknowledge(agent.orders.drop(scope, "unlinked"), entry, () => undefined);
  }

  async #acknowledge(
    applied: Promise<unknown>,
    entry: { readonly order: Order },
    onApplied: () => void,
  ): Promise<void> {
    const { agent } = this.#walk;
    try {
      await applied;
    } catch (error) {
      if (!this.#walk.isOver(agent)) this.#walk.broken = `not cleared: ${String(error)}`;
      return;
    }
    if (this.#walk.isOver(agent)) return;
    this.#clearing.splice(this.#clearing.indexOf(entry), 1);
    entry.order.ack(this.#walk.now);
    this.#unnoted = []; // With the clear's number agent.db has theirs, which are lower.
    onApplied();
  }

  invalidate(a: number, b: number): void {
    const page = pages[a % pages.length];
    const worker = this.#walk.agent.workers[b % 2];
    if (page?.kind !== "generated" || worker === undefined) return;
    const order = new Order((other) => other === page);
    this.#walk.oracle.give(order, this.#walk.now);
    const { agent } = this.#walk;
    const invalidated = async (): Promise<void> => {
      try {
        await worker.cache.invalidate(keyOf(page));
      } catch {
        return; // The visitor is told that it may have failed.
      }
      if (this.#walk.isOver(agent)) return;
      order.ack(this.#walk.now);
      this.#unnoted.push(order);
    };
    void invalidated();
  }
}
