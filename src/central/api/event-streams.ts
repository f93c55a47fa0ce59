// Streams of hints to pages that are open: who listens, what each is told of what changed, and when a stream ends.
//
// Hints are gathered for a moment and resolved together, tokens are looked up together, and beats keep streams alive: no stream has a timer or a query
// of its own.

import type { Log } from "../../base/log.ts";
import { every } from "../../base/wait.ts";
import { changeTopics, type byeReasons } from "../../wire/customer/events.ts";
import type { Change, ChangeBus } from "../agents/changes.ts";
import type { WakeBus } from "../agents/wake.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import { tokensInForce, type Actor } from "../store/people/tokens.ts";
import { SiteChanges } from "./event-sites.ts";
import type { EventSink } from "./http/answer.ts";
import { changedOf, GatheredHints, type Hint } from "./event-hints.ts";

export type EventStreamsDeps = {
  readonly store: Pick<Transactions, "transact">;
  readonly changes: Pick<ChangeBus, "subscribe">;
  readonly wakes: Pick<WakeBus, "subscribe">;
  readonly log: Log;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
  /** 0 to 1. */
  readonly random: () => number;
  readonly stop: AbortSignal;
  readonly times?: Partial<typeof timesDefault>;
};

const timesDefault = {
  /** How long hints are gathered after the first one. */
  gatherMs: 250,
  /** The least time between two events of a stream: what changes all the time costs no more than two events a second. */
  betweenMs: 500,
  /** How often tokens are looked up: with the time of the query, what was revoked ends within 5 s. */
  checkMs: 2_500,
  /** How often streams are looked over. */
  sweepMs: 1_000,
  /** After so long without an event a beat is sent; with a sweep it is less than 20 s. A page counts on one in 35 s. */
  quietMs: 15_000,
  /** The longest time that a reader may take nothing. */
  stuckMs: 60_000,
};

export const streamsPerToken = 20;
export const streamsMax = 5_000;
/** More than any reader has waiting that reads. */
const waitingBytesMax = 65_536;
/** Browsers come back after so long, each at another time. */
const retryMs = { least: 1_000, spread: 4_000 };

type ByeReason = (typeof byeReasons)[number];

type Stream = {
  readonly actor: Actor;
  readonly sink: EventSink;
  /** Equal for streams that are told the same. */
  readonly reachKey: string;
  writtenMs: number;
  /** Since when something waits; undefined if nothing does. */
  waitsSinceMs: number | undefined;
};

export type StreamBegun =
  | { readonly ok: true; /** To be called when the reader left. */ readonly left: () => void }
  | { readonly ok: false; readonly why: "token" | "all" | "stopping" };

export class EventStreams implements AsyncDisposable {
  readonly #deps: EventStreamsDeps;
  readonly #times: typeof timesDefault;
  readonly #byCustomer = new Map<number, Set<Stream>>();
  readonly #byToken = new Map<number, Set<Stream>>();
  #count = 0;
  #hints = new Map<number, GatheredHints>();
  readonly #sites: SiteChanges;
  #gathering: NodeJS.Timeout | undefined;
  #flushedMs = Number.NEGATIVE_INFINITY;
  #flushing: Promise<void> | undefined;
  readonly #ending = new AbortController();
  readonly #running: readonly Promise<void>[];
  readonly #subscriptions: readonly Disposable[];

  constructor(deps: EventStreamsDeps) {
    this.#deps = deps;
    this.#times = { ...timesDefault, ...deps.times };
    this.#sites = new SiteChanges((customerId) => this.#byCustomer.has(customerId));
    this.#subscriptions = [
      deps.changes.subscribe((change) => this.#changed(change)),
      deps.wakes.subscribe((siteIds) => {
        for (const siteId of siteIds) this.#changed({ kind: "site", siteId, topics: ["fleet"] });
      }),
    ];
    const stop = this.#ending.signal;
    const onError = (error: unknown): void =>
      deps.log.error({ err: error }, "streams of events could not be looked over");
    this.#running = [
      every(this.#times.sweepMs, () => this.#sweep(), { stop, onError }),
      every(this.#times.checkMs, async () => this.#check(), { stop, onError }),
    ];
    deps.stop.addEventListener("abort", this.#stopped, { once: true });
  }

  /** Begins a stream with its first event. Never throws. */
  begin(actor: Actor, sink: EventSink): StreamBegun {
    const { tokenId } = actor;
    const ofToken = tokenId === null ? undefined : (this.#byToken.get(tokenId) ?? new Set());
    if (this.#deps.stop.aborted || this.#ending.signal.aborted)
      return { ok: false, why: "stopping" };
    if (tokenId === null || ofToken === undefined || ofToken.size >= streamsPerToken)
      return { ok: false, why: "token" };
    if (this.#count >= streamsMax) return { ok: false, why: "all" };
    const { customerId, domains, username } = actor;
    const reachKey = domains === null ? "" : JSON.stringify(domains);
    const stream: Stream = { actor, sink, reachKey, writtenMs: 0, waitsSinceMs: undefined };
    this.#byToken.set(tokenId, ofToken.add(stream));
    const ofCustomer = this.#byCustomer.get(customerId) ?? new Set();
    this.#byCustomer.set(customerId, ofCustomer.add(stream));
    this.#count++;
    const retry = Math.round(retryMs.least + retryMs.spread * this.#deps.random());
    this.#write(stream, `retry: ${retry}\n${eventText("hello", { username })}`);
    return { ok: true, left: () => this.#remove(stream) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#deps.stop.removeEventListener("abort", this.#stopped);
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
    this.#stopped();
    this.#ending.abort();
    clearTimeout(this.#gathering);
    await Promise.all([...this.#running, this.#flushing]);
  }

  readonly #stopped = (): void => {
    for (const stream of this.#all()) this.#bye(stream, "stopping");
  };

  #all(): readonly Stream[] {
    return [...this.#byToken.values()].flatMap((streams) => [...streams]);
  }

  #remove(stream: Stream): void {
    const { customerId, tokenId } = stream.actor;
    const ofToken = this.#byToken.get(tokenId ?? 0);
    if (ofToken?.delete(stream) !== true) return;
    if (ofToken.size === 0) this.#byToken.delete(tokenId ?? 0);
    const ofCustomer = this.#byCustomer.get(customerId);
    ofCustomer?.delete(stream);
    if (ofCustomer?.size === 0) this.#byCustomer.delete(customerId);
    this.#count--;
  }

  #bye(stream: Stream, reason: ByeReason): void {
    this.#remove(stream);
    stream.sink.write(eventText("bye", { reason }));
    stream.sink.end();
  }

  #write(stream: Stream, text: string): void {
    const { sink } = stream;
    sink.write(text);
    stream.writtenMs = this.#deps.monotonicMs();
    if (sink.waitingBytes <= waitingBytesMax) return;
    this.#remove(stream);
    sink.cut();
  }

  #changed(change: Change): void {
    if (this.#count === 0) return;
    if (change.kind === "anything") {
      const any: Hint = { topics: changeTopics, domains: [], forDomains: undefined };
      for (const customerId of this.#byCustomer.keys()) this.#gather(customerId).add(any);
    } else if (change.kind === "customer") {
      const { customerId, topics, domains } = change;
      if (!this.#byCustomer.has(customerId)) return;
      const forDomains = domains.length === 0 ? undefined : domains;
      this.#gather(customerId).add({ topics, domains, forDomains });
    } else if (!this.#sites.add(change)) return;
    this.#plan();
  }

  #gather(customerId: number): GatheredHints {
    const hints = this.#hints.get(customerId) ?? new GatheredHints();
    this.#hints.set(customerId, hints);
    return hints;
  }

  #plan(): void {
    if (this.#gathering !== undefined || this.#flushing !== undefined) return;
    if (this.#ending.signal.aborted) return;
    const { gatherMs, betweenMs } = this.#times;
    const restMs = this.#flushedMs + betweenMs - this.#deps.monotonicMs();
    this.#gathering = setTimeout(
      () => {
        this.#gathering = undefined;
        this.#flushing = this.#flush().finally(() => {
          this.#flushing = undefined;
          this.#flushedMs = this.#deps.monotonicMs();
          if (this.#hints.size > 0 || this.#sites.isAny) this.#plan();
        });
      },
      Math.max(gatherMs, restMs),
    );
  }

  /** Sends what was gathered. Never rejects. */
  async #flush(): Promise<void> {
    try {
      const { store } = this.#deps;
      const found = this.#sites.isAny
        ? await store.transact(async (work) => this.#sites.resolve(work))
        : [];
      for (const { customerId, hint } of found) this.#gather(customerId).add(hint);
    } catch (error) {
      this.#deps.log.warn({ err: error }, "hints of changes at sites are lost");
    }
    const all = this.#hints;
    this.#hints = new Map();
    for (const [customerId, gathered] of all) {
      const hints = gathered.list();
      const texts = new Map<string, string>();
      for (const stream of this.#byCustomer.get(customerId) ?? []) {
        const { reachKey, actor } = stream;
        let text = texts.get(reachKey);
        if (text === undefined) {
          const data = changedOf(hints, actor.domains);
          text = data === undefined ? "" : eventText("changed", data);
          texts.set(reachKey, text);
        }
        if (text !== "") this.#write(stream, text);
      }
    }
  }

  #sweep(): void {
    const nowMs = this.#deps.monotonicMs();
    const at = this.#deps.now().toISOString();
    const { quietMs, stuckMs } = this.#times;
    for (const stream of this.#all()) {
      const { whenExpires } = stream.actor;
      if (stream.sink.waitingBytes === 0) stream.waitsSinceMs = undefined;
      else stream.waitsSinceMs ??= nowMs;
      if (whenExpires !== null && whenExpires <= at) this.#bye(stream, "expired");
      else if (stream.waitsSinceMs !== undefined && nowMs - stream.waitsSinceMs >= stuckMs) {
        this.#remove(stream);
        stream.sink.cut();
      } else if (nowMs - stream.writtenMs >= quietMs) this.#write(stream, beat);
    }
  }

  async #check(): Promise<void> {
    const ids = [...this.#byToken.keys()];
    if (ids.length === 0) return;
    const inForce = await this.#deps.store.transact(async (work) => tokensInForce(work, ids));
    for (const id of ids)
      if (!inForce.has(id))
        for (const stream of this.#byToken.get(id) ?? []) this.#bye(stream, "revoked");
  }
}

/** An event, for scripts do not see comments: so a page can tell a central that is quiet from one that hangs. */
const beat = eventText("beat", {});

/** Writes an event (HTML Living Standard, section 9.2.5). JSON has no line feeds. */
function eventText(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
