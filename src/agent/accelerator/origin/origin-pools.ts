// Connections to origins: one pool for each URL, connect timeout and TLS server name, tried in order of health, retried where that is safe.

import { signalOf, type StopSignal } from "../../../base/stop.ts";
import { sleep } from "../../../base/wait.ts";
import { backoffMs } from "../../../core/backoff.ts";
import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import { checkKey } from "../../../core/serving/origin-checks.ts";
import type { WorkerClock } from "../clock.ts";
import type { OriginBody } from "./origin-body.ts";
import type { OriginGuard } from "./origin-connector.ts";
import { originFailure, type OriginFailure } from "./origin-errors.ts";
import { PlainPool } from "./plain-pool.ts";
import { isTls, openTlsPool } from "./tls-origins.ts";
import type { OriginConnections } from "./wire-request.ts";
import { requestUpgrade, type UpgradeOutcome, type UpgradeRequest } from "./origin-upgrade.ts";

export type OriginRequest = {
  readonly method: string;
  /** Path and query as sent. */
  readonly path: string;
  readonly fields: readonly Field[];
  /** What makes the body is called at most once for each attempt; an attempt after it was is not repeated. */
  readonly body: Uint8Array | (() => AsyncGenerator<Uint8Array>) | undefined;
  readonly stop: StopSignal;
  /** Told of each interim answer (1xx) but 100. Must not throw. */
  readonly onInterim?: OnInterim | undefined;
  /** Told once, if there is an answer: the request has nothing to do with the origin any more. */
  readonly onOver?: (() => void) | undefined;
};

export type OnInterim = (status: number, fields: readonly Field[]) => void;

export type OriginAnswer = {
  readonly status: number;
  readonly fields: readonly Field[];
  /** The body, which must be taken to its end or discarded. It fails when the origin cuts it or falls silent. */
  readonly body: OriginBody;
  /** The time of the request by the age clock. */
  readonly requestedAtMs: number;
  readonly receivedAtMs: number;
};

export type OriginOutcome =
  | { readonly ok: true; readonly answer: OriginAnswer }
  | { readonly ok: false; readonly failure: OriginFailure };

/** A request and how far it has come. */
type Asked = {
  readonly urls: readonly string[];
  readonly backend: BackendSettings;
  request: OriginRequest;
  readonly told: (outcome: OriginOutcome) => void;
  /** The number of attempts that have failed. */
  attempt: number;
  /** Repetitions that are left. */
  retries: number;
  /** The body was asked for: nothing is repeated behind that. */
  hasBegunBody: boolean;
};

type Origin = {
  readonly pool: OriginConnections;
  inFlight: number;
  usedMs: number;
  /** The time of the last failed attempt by the steady clock; -Infinity if the last attempt came through. */
  failedMs: number;
};

/** Connections to one origin by one worker; more requests than this at once are refused, for a queue only makes an overload last. */
const inFlightMax = 512;
/** An origin that failed within this time is tried after the others. */
const failureMemoryMs = 10_000;
/** A pool that nobody asked for so long (its domain was unlinked, its URL changed) is closed. */
const idlePoolMs = 300_000;
const sweepMs = 60_000;
/** The pauses before repetitions: at once, the same origin has the same trouble. */
const retryBackoff = { firstMs: 20, mostMs: 200 };

const idempotent: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

export class OriginPools implements AsyncDisposable {
  readonly #origins = new Map<string, Origin>();
  readonly #clock: WorkerClock;
  readonly #random: () => number;
  readonly #guard: OriginGuard;
  /** The origins that fail their active check, by checkKey. */
  #down: ReadonlySet<string> = new Set();
  readonly #sweep: NodeJS.Timeout;

  constructor(clock: WorkerClock, random: () => number, guard: OriginGuard) {
    this.#clock = clock;
    this.#random = random;
    this.#guard = guard;
    this.#sweep = setInterval(() => this.#closeIdle(), sweepMs).unref();
  }

  setDown(keys: ReadonlySet<string>): void {
    this.#down = keys;
  }

  /**
   * Tells the outcome once, in the step in which the head of an answer comes: its body follows. `domain`: the main one, whose backend it is. A visitor
   * who left shows in `request.stop`. `told` must not throw.
   */
  ask(
    domain: string,
    backend: BackendSettings,
    request: OriginRequest,
    told: (outcome: OriginOutcome) => void,
  ): void {
    const { body, method } = request;
    const isRepeatable = body === undefined && idempotent.has(method);
    const asked: Asked = {
      urls: this.#inOrderOfHealth(domain, backend, request.fields),
      backend,
      request,
      told,
      attempt: 0,
      retries: isRepeatable ? backend.retries : 0,
      hasBegunBody: false,
    };
    if (typeof body === "function")
      asked.request = { ...request, body: () => ((asked.hasBegunBody = true), body()) };
    this.#try(asked);
  }

  #try(asked: Asked): void {
    const { urls, backend, request, attempt } = asked;
    const url = urls[attempt % urls.length] ?? "";
    this.#attempt(url, backend, request, (outcome) => {
      if (outcome.ok || request.stop.aborted || asked.hasBegunBody) asked.told(outcome);
      else this.#failed(asked, url, outcome);
    });
  }

  /** Tries again where that is safe; else the failure is the outcome. */
  #failed(asked: Asked, url: string, outcome: Extract<OriginOutcome, { ok: false }>): void {
    const { urls, backend, request, attempt } = asked;
    this.#origin(url, backend, request).failedMs = this.#clock.steadyMs();
    const { isUnsent, kind } = outcome.failure;
    asked.attempt++;
    if (asked.attempt < urls.length && (isUnsent || kind === "busy")) {
      this.#try(asked);
      return;
    }
    // Whoever has waited a whole response timeout has waited enough.
    if (asked.retries === 0 || kind === "timeout" || kind === "busy") {
      asked.told(outcome);
      return;
    }
    asked.retries--;
    const pauseMs = backoffMs(attempt, this.#random(), retryBackoff);
    void sleep(pauseMs, signalOf(request.stop)).then(() => this.#try(asked));
  }

  /** Asks for another protocol, on a connection of its own. Never throws. */
  async askUpgrade(
    domain: string,
    backend: BackendSettings,
    request: UpgradeRequest,
  ): Promise<UpgradeOutcome> {
    let outcome: UpgradeOutcome | undefined;
    for (const url of this.#inOrderOfHealth(domain, backend, request.fields)) {
      outcome = await requestUpgrade(url, backend, request, this.#guard, this.#clock);
      if (outcome.kind !== "failed" || request.stop.aborted || !outcome.failure.isUnsent) break;
      const origin = this.#origins.get(keyOf(url, backend, request.fields));
      if (origin !== undefined) origin.failedMs = this.#clock.steadyMs();
    }
    if (outcome === undefined) throw new TypeError("a backend has at least one URL");
    return outcome;
  }

  #attempt(
    url: string,
    backend: BackendSettings,
    request: OriginRequest,
    told: (outcome: OriginOutcome) => void,
  ): void {
    const origin = this.#origin(url, backend, request);
    if (origin.inFlight >= inFlightMax) {
      const reason = `more than ${inFlightMax} requests in flight to ${url}`;
      told({ ok: false, failure: { kind: "busy", reason, isUnsent: true } });
      return;
    }
    origin.inFlight++;
    let isOver = false;
    let hasAnswered = false;
    const requestedAtMs = this.#clock.ageMs();
    const { method, path, fields, body, stop, onInterim } = request;
    const asked = {
      method,
      path,
      fields,
      body,
      stop,
      onInterim,
      headMs: Math.round(backend.response_timeout_s * 1_000),
      silenceMs: Math.round(backend.idle_timeout_s * 1_000),
    };
    origin.pool.ask(asked, {
      onAnswer: ({ status, fields: said, body: content }) => {
        origin.failedMs = -Infinity;
        hasAnswered = true;
        if (isOver) request.onOver?.(); // The body came whole with the head.
        const receivedAtMs = this.#clock.ageMs();
        const answer = { status, fields: said, body: content, requestedAtMs, receivedAtMs };
        told({ ok: true, answer });
      },
      onFailure: (error) => told({ ok: false, failure: originFailure(error) }),
      onOver: () => {
        origin.inFlight--;
        origin.usedMs = this.#clock.steadyMs();
        isOver = true;
        if (hasAnswered) request.onOver?.();
      },
    });
  }

  /**
   * Orders the origins. Those that fail their check come last, but even they are asked: a check may be wrong,
   * and nothing is worse than no answer.
   */
  #inOrderOfHealth(
    domain: string,
    backend: BackendSettings,
    fields: readonly Field[],
  ): readonly string[] {
    if (backend.urls.length === 1) return backend.urls;
    const since = this.#clock.steadyMs() - failureMemoryMs;
    const trouble = (url: string): number => {
      const isDown = this.#down.size > 0 && this.#down.has(checkKey(domain, url, backend) ?? "");
      const hasFailed =
        (this.#origins.get(keyOf(url, backend, fields))?.failedMs ?? -Infinity) > since;
      return 2 * Number(isDown) + Number(hasFailed);
    };
    return backend.urls.toSorted((a, b) => trouble(a) - trouble(b));
  }

  #origin(url: string, backend: BackendSettings, request: OriginRequest): Origin {
    const key = keyOf(url, backend, request.fields);
    let origin = this.#origins.get(key);
    if (origin === undefined) {
      const at = new URL(url);
      const connectMs = Math.round(backend.connect_timeout_s * 1_000);
      const options = {
        origin: at,
        connectMs,
        connectionsMax: inFlightMax,
        guard: this.#guard,
        steadyMs: this.#clock.steadyMs,
      };
      const pool = at.protocol === "https:" ? openTlsPool(options) : new PlainPool(options);
      origin = { pool, inFlight: 0, usedMs: 0, failedMs: -Infinity };
      this.#origins.set(key, origin);
    }
    origin.usedMs = this.#clock.steadyMs();
    return origin;
  }

  #closeIdle(): void {
    const before = this.#clock.steadyMs() - idlePoolMs;
    for (const [key, { pool, inFlight, usedMs }] of this.#origins) {
      if (inFlight > 0 || usedMs > before) continue;
      this.#origins.delete(key);
      pool.destroy().catch(() => {}); // Idle connections only: nobody is told, nothing is lost.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([...this.#origins.values()].map(async ({ pool }) => pool.destroy()));
  }
}

/** A TLS connection is made for one server name: hosts that share an origin would else end each other's connections. */
function keyOf(url: string, backend: BackendSettings, fields: readonly Field[]): string {
  const host = isTls.test(url) ? (fieldValue(fields, "host") ?? "") : "";
  return `${backend.connect_timeout_s} ${url} ${host}`;
}
