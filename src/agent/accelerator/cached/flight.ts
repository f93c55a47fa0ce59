// One fetch of a response that may be stored, apart from any visitor: asked, confirmed or stored, and shared by all who may have it.
//
// It ends early when nobody is left who wants it, unless it is on its way into the store and small enough to be finished for the next visitor.

import { Stop } from "../../../base/stop.ts";
import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import { mimeOf } from "../../../core/http/content-coding.ts";
import { madeAfter } from "../../../core/http/http-age.ts";
import {
  planStore,
  type StorePlan,
  type StoreRequest,
  type StoreSettings,
} from "../../../core/http/http-cache.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import { endsStored, planRefresh, typeAfter } from "../../../core/http/http-refresh.ts";
import { isOriginError } from "../../../core/http/http-reuse.ts";
import {
  requestEditsKey,
  ruleChoiceName,
  ruleVaryNames,
  toldCookiesName,
  variantOf,
  type Selecting,
} from "../../../core/http/http-vary.ts";
import { variesByRule } from "../../../core/http/request-cookies.ts";
import { queryRuleName } from "../../../core/serving/site-routes.ts";
import type { Entry, EntryKey, EntryMeta } from "../../cache/entry.ts";
import type { ResponseCache } from "./cache-port.ts";
import { dropStored, Fill, shortly } from "./fill.ts";
import {
  askOrigin,
  discard,
  isDelimited,
  passedFields,
  type OriginDeps,
} from "../origin/origin-answer.ts";
import type { OriginFailure } from "../origin/origin-errors.ts";
import { piecesOf } from "../origin/origin-body.ts";
import type { OnInterim, OriginAnswer } from "../origin/origin-pools.ts";
import { SharedBody } from "./shared-body.ts";
import { hasNoBody, sharedAnswerFields, storedFields, storedTags } from "./stored-head.ts";
import { storedTail } from "./stored-tail.ts";

export type FlightDeps = OriginDeps & { readonly cache: ResponseCache };

export type FlightPlan = {
  readonly key: EntryKey;
  readonly backend: BackendSettings;
  /** Path and query as sent. */
  readonly path: string;
  readonly fields: readonly Field[];
  /** Asked of the origin in addition, where `base` may be confirmed. */
  readonly conditions: readonly Field[];
  readonly base: Entry | undefined;
  /** The base answers where the origin fails: an error is then not stored over it. */
  readonly standsIn: boolean;
  readonly request: StoreRequest;
  /** Of the rule of the request. */
  readonly settings: StoreSettings;
  /** Of the rule that an answer with this head has. */
  readonly settingsOf: (fields: readonly Field[]) => StoreSettings;
  readonly selecting: Selecting;
  /** All read before the lookup that led here. */
  readonly sourceNo: number;
  readonly mark: number;
  readonly invalidationMark: number;
  /** No visitor waits for it: it goes on without any. */
  readonly isBackground: boolean;
  /** For interim answers (1xx) to whoever began it. */
  readonly onInterim: OnInterim | undefined;
};

export type SharedAnswer = {
  readonly kind: "shared";
  readonly fields: readonly Field[];
  readonly meta: EntryMeta;
  readonly body: SharedBody;
  /** False: it is known now that it will not be stored. To be asked in the step that says so. */
  readonly mayStore: () => boolean;
};

export type Landing =
  | SharedAnswer
  /** The stored response holds, with this head from now on. */
  | { readonly kind: "confirmed"; readonly entry: Entry }
  /**
   * The answer is not to be stored: it is for the visitor who began the fetch alone. Whoever takes it ends
   * it.
   */
  | {
      readonly kind: "own";
      readonly answer: OriginAnswer;
      /** Why it is not to be stored, as a token of Cache-Status. */
      readonly reason: string;
    }
  | { readonly kind: "failed"; readonly failure: OriginFailure["kind"] };

/**
 * When everybody has gone, the rest of a body of at most this size is fetched nevertheless, within the time
 * below, so that it is there for the next visitor.
 */
const finishBytesMax = 8 * 2 ** 20;
const finishMs = 60_000;

/** A class, for V8 makes an object with a computed name by a call into its runtime: 1.4 % of what an uncached answer costs a worker. */
class Seat implements Disposable {
  readonly #leave: () => void;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  [Symbol.dispose](): void {
    this.#leave();
  }
}

export class Flight {
  readonly plan: FlightPlan;
  landing: Landing | undefined;
  tookMs = 0;
  readonly #deps: FlightDeps;
  readonly #stop = new Stop();
  #landed: Promise<Landing> | undefined;
  readonly #waiting: ((landing: Landing) => void)[] = [];
  #seats = 0;
  #isWorthFinishing: boolean;
  #isOver = false;
  #finish: NodeJS.Timeout | undefined;

  constructor(deps: FlightDeps, plan: FlightPlan) {
    this.#deps = deps;
    this.plan = plan;
    this.#isWorthFinishing = plan.isBackground;
  }

  /** Resolves when it is known what came of the flight. Never rejects. */
  get landed(): Promise<Landing> {
    return (this.#landed ??= new Promise((resolve) => this.onLanded(resolve)));
  }

  /** Tells what came of the flight, in the step in which it is known: the body of an answer follows behind it. `told` must not throw. */
  onLanded(told: (landing: Landing) => void): void {
    if (this.landing === undefined) this.#waiting.push(told);
    else told(this.landing);
  }

  /** Joins the flight; the caller disposes the result when the answer is given or no longer wanted. */
  join(): Disposable {
    this.#setSeats(this.#seats + 1);
    return new Seat(() => this.#setSeats(this.#seats - 1));
  }

  get isAborted(): boolean {
    return this.#stop.aborted;
  }

  abort(): void {
    this.#stop.abort(new Error("nobody waits for the response any more"));
    this.#discardOwn();
  }

  /** Discards an answer for one visitor alone: he may have left without it. */
  #discardOwn(): void {
    if (this.landing?.kind === "own") discard(this.landing.answer);
  }

  /** Runs the flight and resolves when the body has been read. Never rejects. */
  async run(): Promise<void> {
    try {
      await this.#fly();
    } catch {
      this.#settle({ kind: "failed", failure: "broken" });
    } finally {
      this.#isOver = true;
      clearTimeout(this.#finish);
    }
  }

  async #fly(): Promise<void> {
    const { base, fields, conditions } = this.plan;
    const asked = conditions.length === 0 ? fields : [...fields, ...conditions];
    if (conditions.length === 0 || base === undefined) return this.#ask(asked, this.#takeAnswer);
    return this.#ask(asked, async (answer) => {
      if (answer.status !== 304) return this.#take(answer);
      discard(answer); // A 304 has no body.
      const entry = await this.#confirm(base, answer);
      if (entry === "not-confirmed") return this.#ask(fields, this.#takeAnswer);
      this.#settle({ kind: "confirmed", entry });
    });
  }

  /** Begins with an answer in the step in which its head comes, and resolves when it is done with it. Where there is none, everybody is told. */
  #ask(fields: readonly Field[], take: (answer: OriginAnswer) => Promise<void>): Promise<void> {
    const { key, backend, path, onInterim } = this.plan;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.#stop;
    const request = { method: "GET", path, fields, body: undefined, stop, onInterim };
    askOrigin(this.#deps, key.domain, backend, request, (asked) => {
      this.tookMs += asked.tookMs;
      if (!asked.ok) this.#settle({ kind: "failed", failure: asked.kind });
      resolve(asked.ok ? take(asked.answer) : undefined);
    });
    return promise;
  }

  readonly #takeAnswer = (answer: OriginAnswer): Promise<void> => this.#take(answer);

  /** `not-confirmed`: it has to be asked for whole. */
  async #confirm(base: Entry, answer: OriginAnswer): Promise<Entry | "not-confirmed"> {
    const { cache, metrics } = this.#deps;
    const { key, request, settingsOf, sourceNo: confirmedNo } = this.plan;
    const facts = { ...answer, fields: passedFields(answer) };
    const settings = settingsOf(typeAfter(base, facts));
    const refresh = planRefresh(base, facts, request, settings);
    const found = this.#tagsOf(answer);
    if (refresh.kind === "drop" || (refresh.kind === "refresh" && found === undefined))
      await dropStored(this.#deps, [key]);
    if (refresh.kind !== "refresh" || found === undefined) return "not-confirmed";
    const { headers, initialAgeS, freshForS } = refresh;
    const storedAtMs = Math.floor(answer.receivedAtMs);
    const refreshed = {
      headers,
      mime: mimeOf(fieldValue(headers, "content-type")),
      storedAtMs,
      initialAgeS,
      freshForS,
      confirmedNo,
      ...found,
    };
    metrics.accel_agent_cache_revalidated_total.inc({ domain: key.domain });
    if (refresh.isKept) await shortly(cache.refresh(base, refreshed));
    return { ...base, ...refreshed };
  }

  async #take(answer: OriginAnswer): Promise<void> {
    const { cache } = this.#deps;
    const { plan } = this;
    const settings = plan.settingsOf(answer.fields);
    const stored = planStore(plan.request, answer, settings);
    const isShadowing = plan.standsIn && isOriginError(answer.status);
    const found = stored.store ? this.#tagsOf(answer) : undefined;
    if (!stored.store || found === undefined || isShadowing || !isDelimited(answer)) {
      if (plan.base !== undefined && endsStored(plan.base, answer, plan.request, settings))
        await dropStored(this.#deps, [plan.key]);
      this.#settle({ kind: "own", answer, reason: notStoredBecause(stored, found, isShadowing) });
      if (this.#seats === 0) discard(answer);
      return;
    }
    const fields = sharedAnswerFields(answer);
    const headers = storedFields(fields, answer);
    const meta: EntryMeta = {
      status: answer.status,
      headers,
      mime: mimeOf(fieldValue(headers, "content-type")),
      ...found,
      vary: variantOf([...new Set([...stored.varyNames, ...alwaysVaries(plan)])], plan.selecting),
      storedAtMs: Math.floor(answer.receivedAtMs),
      initialAgeS: stored.initialAgeS,
      freshForS: stored.freshForS,
      sourceNo: plan.sourceNo,
      digest: null,
    };
    const { ttl_s, negative_ttl_s, override } = settings;
    const lifetimes = { ttl_s, negative_ttl_s, override };
    const fetched = { madeAfterMs: madeAfter(answer), lifetimes };
    const fill = new Fill(cache.begin(plan.key, plan.invalidationMark), meta, fetched);
    const body = new SharedBody((from) => storedTail(cache, plan.key, fill.outcome, from));
    // A body of unstated length may be a stream without end.
    const length = hasNoBody(answer)
      ? 0
      : Number(fieldValue(answer.fields, "content-length") ?? Infinity);
    this.#isWorthFinishing = plan.isBackground || length <= finishBytesMax;
    // A clear or an invalidation since the first read may match it, which the index finds out later.
    const mayStore = (): boolean =>
      cache.clearMark(plan.key) === plan.mark &&
      fill.mayStore(length === Infinity ? undefined : length);
    this.#settle({ kind: "shared", fields, meta, body, mayStore });
    this.#setSeats(this.#seats);
    await this.#pump(answer, fill, body);
  }

  /** The tags to be stored. Undefined: they are more than are stored, which is told. */
  #tagsOf(answer: OriginAnswer): { readonly tags?: string } | undefined {
    return storedTags(this.#deps, this.plan.key.domain, answer);
  }

  async #pump(answer: OriginAnswer, fill: Fill, body: SharedBody): Promise<void> {
    const length = fieldValue(answer.fields, "content-length");
    const expected = length === undefined || hasNoBody(answer) ? undefined : Number(length);
    let received = 0;
    /** The piece that completes the body waits for the commit; with it the visitors know that the answer is whole. */
    let last: Uint8Array | undefined;
    try {
      for await (const bytes of piecesOf(answer.body)) {
        received += bytes.length;
        const storing = await fill.take(bytes);
        if (storing === "given-up") body.withoutStore();
        if (storing === "given-up" || (received > finishBytesMax && !this.plan.isBackground))
          this.#notWorthFinishing();
        if (received === expected) last = bytes;
        else await body.append(bytes);
        this.#stop.throwIfAborted();
      }
      if (expected !== undefined && received !== expected)
        throw new Error(`the origin sent ${received} of ${expected} bytes`);
      await fill.commit(body.isLeft);
      if (last !== undefined) await body.append(last);
      body.end();
    } catch (error) {
      body.fail(error instanceof Error ? error : new Error(String(error)));
    } finally {
      fill.abort();
      discard(answer);
    }
  }

  #setSeats(seats: number): void {
    this.#seats = seats;
    if (this.landing?.kind === "shared") this.landing.body.setWanted(seats > 0);
    clearTimeout(this.#finish);
    if (seats > 0) return;
    if (this.#isOver) this.#discardOwn();
    else if (this.#isWorthFinishing) this.#finish = setTimeout(() => this.abort(), finishMs);
    else this.abort();
  }

  /** Lets it go on: its visitor has no use for the body, but the store has. */
  keep(): void {
    this.#isWorthFinishing = true;
  }

  #notWorthFinishing(): void {
    this.#isWorthFinishing = false;
    if (this.#seats === 0) this.abort();
  }

  #settle(landing: Landing): void {
    this.landing ??= landing;
    for (const told of this.#waiting.splice(0)) told(this.landing);
  }
}

/** `error` is read by no visitor: what the error does not replace is sent in its place, or all is asked anew. */
function notStoredBecause(stored: StorePlan, tags: unknown, isShadowing: boolean): string {
  if (!stored.store) return stored.reason.replaceAll(" ", "-");
  if (tags === undefined) return "tags";
  // An error does not take the place of what may still be sent; a body without an end may have been cut off.
  return isShadowing ? "error" : "no-length";
}

/** The first stands for scheme and port (see `askedScheme`). */
function alwaysVaries({ selecting, settings }: FlightPlan): readonly string[] {
  const names = ["x-forwarded-proto"];
  for (const name of [queryRuleName, ruleChoiceName, requestEditsKey])
    if (selecting(name) !== "") names.push(name);
  if (variesByRule(settings.cookies)) names.push(toldCookiesName);
  return [...names, ...ruleVaryNames(settings)];
}
