// `POST /agent-api/v1/request-logs`: a batch of request records of one lane, taken in exactly once and in
// order.
//
// What cannot be stored now is answered with 503, and what one site sends too much of with 429, both with
// Retry-After: the agent keeps it, so that central's memory does not.

import type { IncomingMessage } from "node:http";
import { readBody } from "../../base/http-listener.ts";
import type { Log } from "../../base/log.ts";
import { instanceIdForm } from "../../wire/parts.ts";
import {
  batchBytesMax,
  batchEncodings,
  parseLaneId,
  type BatchEncoding,
  type LaneId,
} from "../../wire/request-log.ts";
import { agentAnswer, refusal, type AgentAnswer, type AgentRoute } from "./answers.ts";
import type { LogEngine } from "./log-engine.ts";
import { centralLossReasons } from "./log-losses.ts";
import { LogRoom } from "./log-room.ts";
import type { AppendOutcome } from "./log-take.ts";
import type { AgentMetrics } from "./metrics.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";

type BatchHead = {
  /** The instance that delivers; undefined for an agent of the previous release, which does not say. */
  readonly instanceId: string | undefined;
  readonly lane: LaneId;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly encoding: BatchEncoding;
};

/** The most bytes of a body: a batch that does not shrink grows by a few bytes. */
const bodyBytesMax = batchBytesMax + 4_096;
/** 4 MiB at 0.6 Mbit/s; a slower sender holds room that others need. */
const bodyTimeoutMs = 60_000;
const retryAfterS = 2;
/** The `Retry-After` while the disk is full or broken, which does not pass in two seconds. */
const retryAfterFailureS = 10;
/** The least time between two notes of one instance's delivery; it is asked for in steps of 3 minutes. */
const confirmIntervalMs = 10_000;
const confirmedMax = 100_000;

export type IntakeDeps = {
  readonly store: AgentStore;
  readonly thread: LogEngine;
  readonly metrics: AgentMetrics;
  readonly log: Log;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
};

export function createLogIntakeRoute(deps: IntakeDeps): AgentRoute {
  const { thread, metrics } = deps;
  const room = new LogRoom();
  const confirm = createConfirm(deps);
  // A rate sees only what is added to a series that is there.
  for (const reason of centralLossReasons) metrics.accel_central_log_gaps_total.inc({ reason }, 0);
  return async ({ request, deploymentSiteId }) => {
    const head = parseHead(request);
    if ("status" in head) return head;
    if (thread.isBusy) return refused(deps, "busy");
    const declared = Number(request.headers["content-length"] ?? bodyBytesMax);
    const taken = room.take(deploymentSiteId, Math.min(declared, bodyBytesMax));
    if (taken.kind !== "taken") return refused(deps, taken.kind === "full" ? "busy" : "crowded");
    using _ = taken;
    metrics.accel_central_log_queue_bytes.set(room.bytes);
    const read = await readBatchBody(request);
    if (!read.ok)
      return read.reason === "aborted"
        ? refusal("invalid", "the batch was torn")
        : refusal("too_large", `a batch has at most ${batchBytesMax} bytes`);
    const outcome = await append(deps, deploymentSiteId, head, read.body);
    metrics.accel_central_log_queue_bytes.set(room.bytes);
    if (typeof outcome === "string") return refused(deps, outcome);
    const answered = encode(deps, outcome);
    if (answered.status === 200) await confirm(deploymentSiteId, head.instanceId);
    return answered;
  };
}

async function readBatchBody(request: IncomingMessage): ReturnType<typeof readBody> {
  const late = setTimeout(() => request.destroy(), bodyTimeoutMs);
  try {
    return await readBody(request, bodyBytesMax);
  } finally {
    clearTimeout(late);
  }
}

async function append(
  { thread, now }: IntakeDeps,
  siteId: number,
  { lane, firstSeq, lastSeq, encoding }: BatchHead,
  body: Uint8Array,
): Promise<AppendOutcome | "busy" | "failed"> {
  try {
    const outcome = await thread.append({
      siteId,
      lane,
      firstSeq,
      lastSeq,
      encoding,
      body,
      nowMs: now().getTime(),
    });
    return outcome.kind === "busy" ? "busy" : outcome;
  } catch {
    return "failed"; // The thread's client logs and reports it, once for all batches that fail.
  }
}

function encode({ metrics }: IntakeDeps, outcome: AppendOutcome): AgentAnswer {
  metrics.accel_central_log_batches_total.inc({ outcome: outcome.kind });
  switch (outcome.kind) {
    case "conflict":
      return refusal("conflict", `the lane is at ${outcome.mark}`, { mark: outcome.mark });
    case "invalid":
    case "too_large":
      return refusal(outcome.kind, outcome.message);
    case "committed":
      metrics.accel_central_log_records_total.inc(outcome.records);
      for (const [reason, lost] of Object.entries(outcome.lost))
        metrics.accel_central_log_gaps_total.inc({ reason }, lost);
      metrics.accel_central_log_unproven_total.inc(outcome.unproven);
      return agentAnswer({ committed_through: outcome.through });
    case "repeated":
      return agentAnswer({ committed_through: outcome.through });
    default:
      return outcome satisfies never;
  }
}

function refused({ metrics }: IntakeDeps, why: "busy" | "crowded" | "failed"): AgentAnswer {
  metrics.accel_central_log_batches_total.inc({ outcome: why });
  switch (why) {
    case "busy":
      return refusal("unavailable", "too many request logs wait to be stored", { retryAfterS });
    case "crowded":
      return refusal("too_many", "too many batches of this deployment site at once", {
        retryAfterS,
      });
    case "failed":
      return refusal("unavailable", "request logs cannot be stored now; nothing was committed", {
        retryAfterS: retryAfterFailureS,
      });
    default:
      return why satisfies never;
  }
}

/**
 * Notes that an instance delivered. A committed batch is answered as such whether or not that can be noted.
 */
function createConfirm({ store, log, monotonicMs }: IntakeDeps): AgentStore["confirmLogs"] {
  const confirmed = new Map<string, number>();
  return async (siteId, instanceId) => {
    const nowMs = monotonicMs();
    const key = `${siteId} ${instanceId ?? ""}`;
    if (nowMs - (confirmed.get(key) ?? -Infinity) < confirmIntervalMs) return;
    if (confirmed.size >= confirmedMax) confirmed.clear();
    confirmed.set(key, nowMs);
    try {
      await store.confirmLogs(siteId, instanceId);
    } catch (error) {
      confirmed.delete(key);
      log.error({ err: error, site_id: siteId }, "a delivery of request logs could not be noted");
    }
  };
}

function parseHead(request: IncomingMessage): BatchHead | AgentAnswer {
  const lane = parseLaneId(request.headers["accel-lane"]);
  const firstSeq = parseSeq(request.headers["accel-first-seq"]);
  const lastSeq = parseSeq(request.headers["accel-last-seq"]);
  const encoding = request.headers["content-encoding"] ?? "identity";
  const known = batchEncodings.find((one) => one === encoding);
  const instanceId = request.headers["accel-instance"];
  if (instanceId !== undefined && !instanceIdForm.test(String(instanceId)))
    return refusal("invalid", "Accel-Instance must be the instance id of hello and reports");
  if (lane === undefined)
    return refusal("invalid", "Accel-Lane must be <16 hex characters>/<number>");
  if (firstSeq === undefined || lastSeq === undefined || lastSeq < firstSeq)
    return refusal(
      "invalid",
      "Accel-First-Seq and Accel-Last-Seq must be numbers from 1, in order",
    );
  if (known === undefined) {
    const accepted = batchEncodings.join(", ");
    const told = refusal("invalid", `Content-Encoding must be one of ${accepted}`);
    return { ...told, status: 415, headers: { "accept-encoding": accepted } };
  }
  return { instanceId: instanceId?.toString(), lane, firstSeq, lastSeq, encoding: known };
}

function parseSeq(header: string | string[] | undefined): number | undefined {
  const value = typeof header === "string" && /^\d{1,16}$/.test(header) ? Number(header) : 0;
  return Number.isSafeInteger(value) && value >= 1 ? value : undefined;
}
