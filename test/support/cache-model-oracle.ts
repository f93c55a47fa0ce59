// What a cache may serve, in the plainest words: every clear as a function over pages with the times between which it was given and acknowledged,
// every page with what must be there. It knows nothing of numbers, ids, bits or SQL.
//
//   never   what was read before a clear was given that matches it, once that clear is acknowledged
//   always  what was stored, unless something was given that may have taken it: a clear that matches it, another response for its place, a lost disk
//
// A soft clear takes nothing. What it matches is stale once it is acknowledged, until a confirmation that was asked for since; and since then, not later.
// In between, while things are under way, either is right.

import type { Page } from "./cache-model-words.ts";

export class Violation extends Error {}

/** Each time that an order was given: until when it was under way. Infinity: it still is. */
type Window = { acked: number };

export class Order {
  given = Infinity;
  windows: Window[] = [];
  readonly isSoft: boolean;
  #meant: (page: Page, mime: string) => boolean;

  constructor(means: (page: Page, mime: string) => boolean, isSoft = false) {
    this.#meant = means;
    this.isSoft = isSoft;
  }

  matches(page: Page, mime: string): boolean {
    return this.#meant(page, mime);
  }

  widen(inScope: (page: Page) => boolean): void {
    const before = this.#meant;
    this.#meant = (page, mime) => inScope(page) || before(page, mime);
  }

  get isAcked(): boolean {
    return this.windows.some(({ acked }) => acked < Infinity);
  }

  /** It promises nothing any more. */
  withdraw(): void {
    this.windows = [];
  }

  end(): void {
    this.windows = this.windows.filter(({ acked }) => acked < Infinity);
  }

  /** The newest time it was given. */
  ack(now: number): void {
    const window = this.windows.at(-1);
    if (window !== undefined && window.acked === Infinity) window.acked = now;
  }
}

type Kept = {
  /** No soft clear that may have made it stale was given since it was stored. */
  isFresh?: boolean;
  readonly body: string;
  readonly at: number;
  readonly isFile: boolean;
  readonly mime: string;
  readonly page: Page;
};

const placeOf = (page: Page, language: string): string => `${page.no} ${language}`;

export class Oracle {
  readonly #orders: Order[] = [];
  readonly #kept = new Map<string, Kept>();

  /** Also again, where central repeats it; but not what is in force already. */
  give(order: Order, now: number): void {
    if (!this.#orders.includes(order)) this.#orders.push(order);
    order.given = Math.min(order.given, now); // Repeated, it still speaks of what was there when the customer gave it.
    order.windows.push({ acked: Infinity });
    if (!order.isSoft) return this.forget(({ page, mime }) => order.matches(page, mime));
    for (const kept of this.#kept.values())
      if (order.matches(kept.page, kept.mime)) kept.isFresh = false;
  }

  /** Nothing served from now on may be older than this. */
  isStale(page: Page, mime: string, readAt: number, askedAt: number): boolean {
    return this.#orders.some(
      (order) =>
        !order.isSoft &&
        order.given > readAt &&
        order.windows.some(({ acked }) => acked <= askedAt) &&
        order.matches(page, mime),
    );
  }

  /** Since when what was confirmed then is stale by soft clears, at the latest; Infinity: it may be fresh. */
  softenedBy(page: Page, mime: string, confirmedAt: number): number {
    const acked = this.#orders
      .filter(({ isSoft, given }) => isSoft && given > confirmedAt)
      .filter((order) => order.matches(page, mime))
      .flatMap(({ windows }) => windows.map((window) => window.acked));
    return Math.min(Infinity, ...acked);
  }

  /** Whether a response that was fetched since may have been refused with reason. */
  mayBlock(page: Page, mime: string, startedAt: number): boolean {
    return this.#orders.some(
      (order) => order.windows.some(({ acked }) => acked >= startedAt) && order.matches(page, mime),
    );
  }

  keep(page: Page, language: string, kept: Omit<Kept, "page">): void {
    this.#kept.set(placeOf(page, language), { isFresh: true, ...kept, page });
  }

  kept(page: Page, language: string): Kept | undefined {
    return this.#kept.get(placeOf(page, language));
  }

  /** Something else may stand there by now. */
  release(page: Page, language?: string): void {
    if (language !== undefined) this.#kept.delete(placeOf(page, language));
    else this.forget((kept) => kept.page === page);
  }

  forget(which: (kept: Kept) => boolean): void {
    for (const [place, kept] of this.#kept) if (which(kept)) this.#kept.delete(place);
  }

  /** With the process everything ends that was under way: what it had not acknowledged promises nothing. */
  end(): void {
    for (const order of this.#orders) order.end();
  }
}
