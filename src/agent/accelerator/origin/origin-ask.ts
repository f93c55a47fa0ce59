// Asking an origin on behalf of a domain: counted, timed, and what cannot be used is no answer.

import type { BackendSettings } from "../../../core/serving/effective-devlove.ts";
import { fieldValue } from "../../../core/http/http-fields.ts";
import { sendText } from "../doors/answer.ts";
import type { WorkerClock } from "../clock.ts";
import type { Exchange } from "../doors/exchange.ts";
import { isReadable } from "./origin-answer.ts";
import type { OriginFailure } from "./origin-errors.ts";
import type { OriginAnswer, OriginPools, OriginRequest } from "./origin-pools.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";

export type OriginDeps = {
  readonly origins: OriginPools;
  readonly clock: WorkerClock;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
};

export type Asked =
  | { readonly ok: true; readonly answer: OriginAnswer; readonly tookMs: number }
  | { readonly ok: false; readonly kind: OriginFailure["kind"]; readonly tookMs: number };

/**
 * Never throws. A failure after `request.stop` is nobody's. Requests are counted when it is known what became of them: whoever compares them with the errors
 * finds none that is still under way and looks like a success.
 */
export async function askOrigin(
  { origins, clock, metrics, problems }: OriginDeps,
  domain: string,
  backend: BackendSettings,
  request: OriginRequest,
): Promise<Asked> {
  const startedMs = clock.steadyMs();
  const outcome = await origins.ask(domain, backend, request);
  const tookMs = clock.steadyMs() - startedMs;
  metrics.accel_agent_origin_duration_seconds.observe({ domain }, tookMs / 1_000);
  const unusable = outcome.ok ? whyUnusable(request, outcome.answer) : undefined;
  const isWanted = !request.stop.aborted;
  if (isWanted || outcome.ok) metrics.accel_agent_origin_requests_total.inc({ domain });
  if (outcome.ok && unusable === undefined) return { ok: true, answer: outcome.answer, tookMs };
  if (outcome.ok) discard(outcome.answer);
  if (isWanted) {
    metrics.accel_agent_origin_errors_total.inc({ domain });
    const reason = outcome.ok ? unusable : outcome.failure.reason;
    problems.tell("warn", domain, "origin gave no answer", reason);
  }
  return { ok: false, kind: outcome.ok ? "broken" : outcome.failure.kind, tookMs };
}

function whyUnusable({ method, fields }: OriginRequest, answer: OriginAnswer): string | undefined {
  if (!isReadable(answer)) return "its transfer coding is not known";
  const isRead = method === "GET" || method === "HEAD";
  const isConditional = conditions.some((name) => fieldValue(fields, name) !== undefined);
  if (answer.status === 304 && isRead && !isConditional)
    return "304 to a request without condition";
  return undefined;
}

/** Only to these a 304 is an answer (RFC 9110 §15.4.5): whoever has asked for the whole has nothing that it could speak of. */
const conditions = ["if-none-match", "if-modified-since"];

/** Frees the origin's connection. */
export function discard({ body }: OriginAnswer): void {
  if (!body.readableEnded) body.on("error", () => {}).destroy();
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
