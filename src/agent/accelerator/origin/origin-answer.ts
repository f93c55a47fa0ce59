// Asking an origin on behalf of a domain, and passing on what it says while it says it. Requests are counted and timed; what cannot be used is no answer.

import { cacheTagFields } from "../../../core/http/cache-tags.ts";
import { editedNames, withEdits, type HeaderEdits } from "../../../core/http/header-edits.ts";
import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import {
  fieldValue,
  fieldValues,
  hopByHop,
  withConnection,
  withoutFields,
  withoutHopByHop,
  type Field,
} from "../../../core/http/http-fields.ts";
import { cacheStatus, headSoon, sendText, stallMs, writeHead } from "../doors/answer.ts";
import type { Exchange } from "../doors/exchange.ts";
import type { OnInterim, OriginAnswer, OriginPools, OriginRequest } from "./origin-pools.ts";
import type { WorkerClock } from "../clock.ts";
import type { OriginFailure } from "./origin-errors.ts";
import type { Leave, OriginShares } from "./origin-shares.ts";
import { kept } from "../shared-reads.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";

/** The fields that only this agent may say. */
const ours: ReadonlySet<string> = new Set(["x-accel-decision"]);

/** The field that a 204 must not carry (RFC 9110 §8.6). */
const length: ReadonlySet<string> = new Set(["content-length"]);

/** Tags are between the origin and this cache. */
const unpassed: ReadonlySet<string> = new Set([...hopByHop, ...ours, ...cacheTagFields]);
const unpassedWithout: ReadonlySet<string> = new Set([...unpassed, ...length]);

/** Returns the fields of an origin's head that are passed on and stored. */
export function passedFields(answer: OriginAnswer): readonly Field[] {
  const names = answer.status === 204 ? unpassedWithout : unpassed;
  return withoutFields(answer.fields, withConnection(answer.fields, names));
}

/** 102 and 103: what else comes before an answer is between us and the origin. */
const passedInterim: ReadonlySet<number> = new Set([102, 103]);

/** Passes interim answers on to the visitor whose request it is, without the headers that `edits` sets or removes. */
export function interimTo(exchange: Exchange, edits: HeaderEdits): OnInterim {
  return (status, fields) => {
    if (!passedInterim.has(status)) return;
    const gone = new Set([...editedNames(edits), ...ours, ...length]);
    const passed = withoutFields(withoutHopByHop(fields), gone);
    try {
      exchange.inform(status, passed);
    } catch {
      // A hint that the visitor's protocol cannot carry is not worth the answer.
    }
  };
}

/** Whether the end of the body can be told from a cut: it has a stated length, or is chunked. */
export function isDelimited({ status, fields }: OriginAnswer): boolean {
  return (
    status === 204 ||
    fieldValue(fields, "content-length") !== undefined ||
    fieldValue(fields, "transfer-encoding") !== undefined
  );
}

/** Whether the body can be read: `chunked` is decoded, and nothing else. */
export function isReadable({ fields }: Pick<OriginAnswer, "fields">): boolean {
  const coding = fieldValues(fields, "transfer-encoding");
  return coding.length === 0 || (coding.length === 1 && coding[0]?.toLowerCase() === "chunked");
}

/** Throws when the visitor left or the origin cut the body: then the caller breaks the answer. */
export async function relay(
  exchange: Exchange,
  edits: HeaderEdits,
  answer: OriginAnswer,
  options: {
    /** Differs from the origin's where the visitor has the representation already (304). */
    readonly status: number;
    readonly fields: readonly Field[];
    readonly cacheStatus: string;
    readonly origin: OriginEnding;
  },
): Promise<void> {
  const { status, fields } = options;
  writeHead(exchange, status, [...withEdits(fields, edits), cacheStatus(options.cacheStatus)]);
  if (exchange.method !== "HEAD" && status !== 204 && status !== 304)
    await pump(exchange, answer, options.origin);
  else {
    options.origin.complete();
    exchange.response.end();
  }
}

/** Sends the body at the visitor's pace. Resolves when the answer has ended; throws when the visitor left or the origin cut it. */
async function pump(
  exchange: Exchange,
  { body, fields }: OriginAnswer,
  origin: OriginEnding,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { response, stop, pacer } = exchange;
  const stated = fieldValue(fields, "content-length");
  let received = 0;
  let isEnded = false;
  let head: NodeJS.Immediate | undefined;
  let endsBehindPace = false;
  const left = (): void => reject(stop.reason as Error);
  const afterPace = (isLast: boolean): void => {
    if (!isLast) {
      body.resume();
      return;
    }
    response.end();
    resolve();
  };
  body.flow({
    piece: (read, isLast) => {
      clearImmediate(head);
      const bytes = response.copies === true && pacer === undefined ? read : kept(read);
      received += bytes.length;
      if (pacer !== undefined) {
        isEnded = endsBehindPace = isLast;
        pacer.write(exchange, bytes).then(() => afterPace(isLast), reject);
        return false;
      }
      if (isLast) {
        isEnded = true;
        origin.complete();
        response.end(bytes);
        return true;
      }
      if (stop.aborted) left();
      else if (response.write(bytes)) return true;
      else exchange.drained(stallMs).then(() => body.resume(), reject);
      return false;
    },
    end: () => {
      clearImmediate(head);
      origin.complete();
      if (stated !== undefined && received !== Number(stated))
        reject(new Error(`the origin sent ${received} of ${stated} bytes`));
      else if (!isEnded) response.end();
      isEnded = true;
      if (!endsBehindPace) resolve();
    },
    fail: (error) => {
      clearImmediate(head);
      reject(error);
    },
  });
  if (isEnded) {
    await promise;
    return;
  }
  if (received === 0) head = headSoon(exchange);
  stop.addEventListener("abort", left);
  try {
    stop.throwIfAborted();
    await promise;
  } finally {
    clearImmediate(head);
    stop.removeEventListener("abort", left);
  }
}

export type OriginDeps = {
  readonly origins: OriginPools;
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
  readonly shares: Pick<OriginShares, "enter">;
};

type Told =
  | { readonly ok: true; readonly answer: OriginAnswer }
  | { readonly ok: false; readonly kind: OriginFailure["kind"] };
export type Asked = Told & { readonly tookMs: number };

/**
 * Asks an origin, when its backend has a place for one more request, and tells once what came of it: an answer in the step in which its head comes, and
 * its body follows. A failure after `request.stop` is nobody's. A request is counted once its outcome is known, so that whoever compares the count with
 * the errors takes none that is still under way for a success. `told` must not throw.
 */
export function askOrigin(
  deps: OriginDeps,
  domain: string,
  backend: BackendSettings,
  request: OriginRequest,
  told: (asked: Asked) => void,
): void {
  const { clock, shares, problems } = deps;
  const startedMs = clock.steadyMs();
  const ask = (leave: Leave | "full"): void => {
    if (leave === "full") {
      const tookMs = clock.steadyMs() - startedMs;
      const reason = `its place in the queue was gone, or did not come in ${Math.round(tookMs)} ms`;
      if (!request.stop.aborted) problems.tell("warn", domain, "origin has no place", reason);
      told({ ok: false, kind: "busy", tookMs });
      return;
    }
    askInPlace(deps, domain, backend, { ...request, onOver: leave }, (asked) => {
      if (!asked.ok) leave();
      told({ ...asked, tookMs: clock.steadyMs() - startedMs });
    });
  };
  const entered = shares.enter(domain, backend, request.stop);
  if (entered instanceof Promise) void entered.then(ask);
  else ask(entered);
}

function askInPlace(
  { origins, clock, metrics, problems }: OriginDeps,
  domain: string,
  backend: BackendSettings,
  request: OriginRequest,
  told: (asked: Told) => void,
): void {
  const startedMs = clock.steadyMs();
  origins.ask(domain, backend, request, (outcome) => {
    const tookMs = clock.steadyMs() - startedMs;
    metrics.origin.took(domain, tookMs / 1_000);
    const unusable = outcome.ok ? whyUnusable(request, outcome.answer) : undefined;
    const isWanted = !request.stop.aborted;
    if (isWanted || outcome.ok) metrics.origin.asked(domain);
    if (outcome.ok && unusable === undefined) {
      if (outcome.answer.status >= 500)
        metrics.accel_agent_origin_server_errors_total.inc({ domain });
      told({ ok: true, answer: outcome.answer });
      return;
    }
    if (outcome.ok) discard(outcome.answer);
    const kind = outcome.ok ? "broken" : outcome.failure.kind;
    if (isWanted) {
      metrics.accel_agent_origin_errors_total.inc({ domain, kind });
      const reason = outcome.ok ? unusable : outcome.failure.reason;
      problems.tell("warn", domain, "origin gave no answer", reason);
    }
    told({ ok: false, kind });
  });
}

function whyUnusable({ method, fields }: OriginRequest, answer: OriginAnswer): string | undefined {
  if (!isReadable(answer)) return "its transfer coding is not known";
  const isRead = method === "GET" || method === "HEAD";
  const isConditional = conditions.some((name) => fieldValue(fields, name) !== undefined);
  if (answer.status === 304 && isRead && !isConditional)
    return "304 in answer to a request without a condition";
  return undefined;
}

/** The conditions that a 304 answers (RFC 9110 §15.4.5). Whoever has asked for the whole has nothing that it could speak of. */
const conditions = ["if-none-match", "if-modified-since"];

/** Frees the origin's connection. */
export function discard({ body }: OriginAnswer): void {
  body.discard();
}

/** Nothing more is wanted of the origin. Adds what the body took to the time until the head, however the answer ends. */
export class OriginEnding implements Disposable {
  readonly #answer: OriginAnswer;
  readonly #exchange: Exchange;
  readonly #clock: WorkerClock;
  readonly #headMs: number;
  readonly #sinceMs: number;
  #isOver = false;

  constructor(answer: OriginAnswer, { clock }: Pick<OriginDeps, "clock">, exchange: Exchange) {
    this.#answer = answer;
    this.#exchange = exchange;
    this.#clock = clock;
    this.#headMs = exchange.originMs;
    this.#sinceMs = clock.steadyMs(); // The answer's own times are for its age: they follow a wall clock, which jumps.
  }

  /** To be told before the answer ends, for the record is made then. */
  complete(): void {
    if (!this.#isOver)
      this.#exchange.originMs = this.#headMs + this.#clock.steadyMs() - this.#sinceMs;
    this.#isOver = true;
  }

  /** Frees the origin's connection. */
  [Symbol.dispose](): void {
    this.complete();
    discard(this.#answer);
  }
}

const failureAnswers: Readonly<Record<OriginFailure["kind"], readonly [number, string]>> = {
  unreachable: [502, "The server behind this site cannot be reached."],
  broken: [502, "The server behind this site gave no usable answer."],
  timeout: [504, "The server behind this site did not answer in time."],
  busy: [503, "The server behind this site has too many requests to answer."],
};

export function answerFailure(exchange: Exchange, kind: OriginFailure["kind"]): void {
  const [status, text] = failureAnswers[kind];
  sendText(exchange, status, text, status === 503 ? [["Retry-After", "1"]] : []);
}
