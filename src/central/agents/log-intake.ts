// `POST /agent-api/v1/request-logs`: a batch of request records of one lane, taken in exactly once and in order.

import type { IncomingMessage } from "node:http";
import { readBody } from "../../base/http-listener.ts";
import { batchBytesMax, parseLaneId, type LaneId } from "../../wire/request-log.ts";
import { answer, refusal, type Answer, type Route } from "./answers.ts";
import { batchEncodings, type BatchEncoding } from "./log-batch.ts";
import type { LogThread } from "./log-client.ts";
import type { AgentMetrics } from "./metrics.ts";
import type { AgentStore } from "./ports.ts";

type BatchHead = {
  readonly lane: LaneId;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly encoding: BatchEncoding;
};

/** What does not shrink grows by a few bytes. */
const bodyBytesMax = batchBytesMax + 4_096;
const retryAfterS = 2;
/** How often one site's delivery is noted in the store; it is asked for in steps of 3 minutes. */
const confirmIntervalMs = 10_000;
const confirmedSitesMax = 100_000;

export type IntakeDeps = {
  readonly store: AgentStore;
  readonly thread: LogThread;
  readonly metrics: AgentMetrics;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
};

export function createLogIntakeRoute(deps: IntakeDeps): Route {
  const confirmed = new Map<number, number>();
  const confirm = async (deploymentSiteId: number): Promise<void> => {
    const nowMs = deps.monotonicMs();
    if (nowMs - (confirmed.get(deploymentSiteId) ?? -Infinity) < confirmIntervalMs) return;
    if (confirmed.size >= confirmedSitesMax) confirmed.clear();
    confirmed.set(deploymentSiteId, nowMs);
    await deps.store.confirmLogs(deploymentSiteId);
  };
  return async ({ request, deploymentSiteId }) => {
    const head = parseHead(request);
    if (typeof head === "string") return refusal("invalid", head);
    if (deps.thread.isBusy) return busy(deps);
    const read = await readBody(request, bodyBytesMax);
    if (!read.ok)
      return read.reason === "aborted"
        ? refusal("invalid", "the batch was torn")
        : refusal("too_large", `a batch has at most ${batchBytesMax} bytes`);
    const outcome = await deps.thread.append({
      siteId: deploymentSiteId,
      ...head,
      body: read.body,
      nowMs: deps.now().getTime(),
    });
    deps.metrics.accel_central_log_queue_bytes.set(deps.thread.waitingBytes);
    if (outcome.kind === "busy") return busy(deps);
    deps.metrics.accel_central_log_batches_total.inc({ outcome: outcome.kind });
    switch (outcome.kind) {
      case "conflict":
        return refusal("conflict", `the lane is at ${outcome.mark}`, { mark: outcome.mark });
      case "invalid":
      case "too_large":
        return refusal(outcome.kind, outcome.message);
      case "committed":
        deps.metrics.accel_central_log_records_total.inc(outcome.records);
        deps.metrics.accel_central_log_gaps_total.inc(outcome.lost);
    }
    await confirm(deploymentSiteId);
    return answer({ committed_through: outcome.through });
  };
}

function busy({ metrics }: IntakeDeps): Answer {
  metrics.accel_central_log_batches_total.inc({ outcome: "busy" });
  return refusal("unavailable", "too many request logs wait to be stored", { retryAfterS });
}

/** What is wrong with the headers, as a text. */
function parseHead(request: IncomingMessage): BatchHead | string {
  const lane = parseLaneId(request.headers["accel-lane"]);
  const firstSeq = parseSeq(request.headers["accel-first-seq"]);
  const lastSeq = parseSeq(request.headers["accel-last-seq"]);
  const encoding = request.headers["content-encoding"] ?? "identity";
  const known = batchEncodings.find((one) => one === encoding);
  if (lane === undefined) return "Accel-Lane must be <16 hex characters>/<number>";
  if (firstSeq === undefined || lastSeq === undefined || lastSeq < firstSeq)
    return "Accel-First-Seq and Accel-Last-Seq must be numbers from 1, in order";
  if (known === undefined) return `Content-Encoding must be one of ${batchEncodings.join(", ")}`;
  return { lane, firstSeq, lastSeq, encoding: known };
}

function parseSeq(header: string | string[] | undefined): number | undefined {
  const value = typeof header === "string" && /^\d{1,16}$/.test(header) ? Number(header) : 0;
  return Number.isSafeInteger(value) && value >= 1 ? value : undefined;
}
