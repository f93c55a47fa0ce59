// Turns what agents tell of purge requests into clears, few enough for a journal. Several agents mostly tell the
// same: content management systems ask every accelerator of theirs.
//
//   first      An item that was not ordered in the last 2 s is ordered at once.
//   repeated   One that was waits until those 2 s are over, and all that has waited is one clear. It is ordered
//              again, for the sender may have changed the page once more since: the first clear would leave
//              what other accelerators have fetched in between.
//   changed    An agent that told of an item tells of it again: that is no echo, the page has changed once more.
//              It is ordered half a second after the order before, or at once where that is over.
//   flood      A domain has 20 clears a second. What comes beyond them becomes one of everything, as soon as
//              the second is over.
//
// An agent has its answer when its items are in a clear that is durable. It keeps them until then.

import { filterItems, itemKeys, joinItems, type PurgeItems } from "../../core/purge/purge-items.ts";

export const joinMs = 2_000;
/** The least time between two orders of one item because of agents that tell of it again: two a second, of the 20 that a domain has. */
export const changedMs = 500;
export const clearsASecondMax = 20;
const secondMs = 1_000;

export type PurgeOrdersDeps<Target> = {
  /** Writes one clear, durably. */
  readonly write: (target: Target, items: PurgeItems) => Promise<void>;
  readonly monotonicMs: () => number;
  /** Calls back after so long, unless it is disposed before. */
  readonly after: (ms: number, call: () => void) => Disposable;
  /** Told of each clear that is ordered, and of each message that joined a later one. */
  readonly count: (what: "ordered" | "joined" | "flooded") => void;
};

type Gathered = {
  items: PurgeItems;
  readonly toldBy: Set<string>;
  isFlood: boolean;
  dueMs: number;
  timer: Disposable;
  readonly done: PromiseWithResolvers<void>;
};

/** When an item was ordered last, and which agents have told of it: one of these that tells again means another change. */
type Ordered = { readonly atMs: number; readonly toldBy: Set<string> };

type Lane<Target> = {
  readonly target: Target;
  readonly ordered: Map<string, Ordered>;
  /** When clears were ordered within the last second, the oldest first. */
  times: number[];
  next: Gathered | undefined;
};

export class PurgeOrders<Target> implements Disposable {
  readonly #deps: PurgeOrdersDeps<Target>;
  readonly #lanes = new Map<string, Lane<Target>>();
  #lookedMs = -Infinity;

  constructor(deps: PurgeOrdersDeps<Target>) {
    this.#deps = deps;
  }

  /**
   * `key` tells targets apart, `agent` who tells. Resolves when all items are in clears that are written; rejects as `write`
   * does.
   */
  async order(key: string, target: Target, items: PurgeItems, agent: string): Promise<void> {
    this.#forgetLanes();
    const lane = this.#lanes.get(key) ?? { target, ordered: new Map(), times: [], next: undefined };
    this.#lanes.set(key, lane);
    this.#forgetItems(lane);
    const due = this.#dueOf(lane, items, agent);
    const fresh = filterItems(items, (item) => !due.has(item));
    const repeated = filterItems(items, (item) => due.has(item));
    const hasFresh = itemKeys(fresh).length > 0;
    if (lane.next?.isFlood === true || (hasFresh && this.#isFull(lane))) {
      this.#deps.count("flooded");
      await this.#flood(lane);
      return;
    }
    const parts: Promise<void>[] = [];
    if (itemKeys(repeated).length > 0) {
      this.#deps.count("joined");
      parts.push(this.#gather(lane, repeated, Math.min(...due.values()), agent));
    }
    if (hasFresh) parts.push(this.#write(lane, fresh, new Set([agent])));
    await Promise.all(parts);
  }

  [Symbol.dispose](): void {
    for (const { next } of this.#lanes.values()) {
      next?.timer[Symbol.dispose]();
      next?.done.reject(new Error("central is stopping"));
    }
    this.#lanes.clear();
  }

  /** Returns when each item is due that is not to be ordered now. */
  #dueOf(lane: Lane<Target>, items: PurgeItems, agent: string): ReadonlyMap<string, number> {
    const nowMs = this.#deps.monotonicMs();
    const due = new Map<string, number>();
    for (const item of itemKeys(items)) {
      const before = lane.ordered.get(item);
      if (before === undefined) continue;
      const dueMs = before.atMs + (before.toldBy.has(agent) ? changedMs : joinMs);
      before.toldBy.add(agent);
      if (dueMs > nowMs) due.set(item, dueMs);
    }
    return due;
  }

  #isFull(lane: Lane<Target>): boolean {
    const sinceMs = this.#deps.monotonicMs() - secondMs;
    lane.times = lane.times.filter((time) => time > sinceMs);
    return lane.times.length >= clearsASecondMax;
  }

  /** The order of the map is that of the times: an item that is ordered again goes to its end. */
  #forgetItems({ ordered }: Lane<Target>): void {
    const sinceMs = this.#deps.monotonicMs() - joinMs;
    for (const [item, { atMs }] of ordered) {
      if (atMs > sinceMs) break;
      ordered.delete(item);
    }
  }

  /** Domains that were quiet for some time are looked for once in that time. */
  #forgetLanes(): void {
    const nowMs = this.#deps.monotonicMs();
    if (nowMs - this.#lookedMs < joinMs) return;
    this.#lookedMs = nowMs;
    for (const [key, lane] of this.#lanes) {
      this.#forgetItems(lane);
      if (lane.ordered.size === 0 && lane.next === undefined) this.#lanes.delete(key);
    }
  }

  async #gather(
    lane: Lane<Target>,
    items: PurgeItems,
    dueMs: number,
    agent: string,
  ): Promise<void> {
    const { next } = lane;
    if (next === undefined) lane.next = this.#await(lane, items, dueMs, new Set([agent]));
    else {
      next.items = joinItems(next.items, items);
      next.toldBy.add(agent);
      if (dueMs < next.dueMs) this.#moveTo(lane, next, dueMs);
    }
    await lane.next?.done.promise;
  }

  /** Everything, when the oldest clear of the last second is a second old. */
  async #flood(lane: Lane<Target>): Promise<void> {
    const all: PurgeItems = { everything: true };
    const dueMs = (lane.times[0] ?? this.#deps.monotonicMs()) + secondMs;
    const { next } = lane;
    if (next === undefined)
      lane.next = { ...this.#await(lane, all, dueMs, new Set()), isFlood: true };
    else if (!next.isFlood) {
      next.items = all;
      next.isFlood = true;
      this.#moveTo(lane, next, dueMs);
    }
    await lane.next?.done.promise;
  }

  #await(lane: Lane<Target>, items: PurgeItems, dueMs: number, toldBy: Set<string>): Gathered {
    const done = Promise.withResolvers<void>();
    return { items, toldBy, isFlood: false, dueMs, done, timer: this.#timer(lane, dueMs) };
  }

  #moveTo(lane: Lane<Target>, next: Gathered, dueMs: number): void {
    next.timer[Symbol.dispose]();
    next.dueMs = dueMs;
    next.timer = this.#timer(lane, dueMs);
  }

  #timer(lane: Lane<Target>, dueMs: number): Disposable {
    const ms = Math.max(0, dueMs - this.#deps.monotonicMs());
    return this.#deps.after(ms, () => this.#fire(lane));
  }

  #fire(lane: Lane<Target>): void {
    const { next } = lane;
    if (next === undefined) return;
    if (this.#isFull(lane)) {
      next.items = { everything: true };
      next.isFlood = true;
      this.#moveTo(lane, next, (lane.times[0] ?? 0) + secondMs);
      return;
    }
    lane.next = undefined;
    // Who told of the order before has told of this one too: its next word is of another change.
    const toldBy = new Set(next.toldBy);
    for (const item of itemKeys(next.items))
      for (const agent of lane.ordered.get(item)?.toldBy ?? []) toldBy.add(agent);
    this.#write(lane, next.items, toldBy).then(
      () => next.done.resolve(),
      (error: unknown) => next.done.reject(error),
    );
  }

  async #write(lane: Lane<Target>, items: PurgeItems, toldBy: ReadonlySet<string>): Promise<void> {
    const nowMs = this.#deps.monotonicMs();
    lane.times.push(nowMs);
    for (const item of itemKeys(items)) {
      lane.ordered.delete(item);
      lane.ordered.set(item, { atMs: nowMs, toldBy: new Set(toldBy) });
    }
    this.#deps.count("ordered");
    try {
      await this.#deps.write(lane.target, items);
    } catch (error) {
      for (const item of itemKeys(items)) lane.ordered.delete(item);
      throw error;
    }
  }
}
