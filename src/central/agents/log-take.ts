// Whether a batch is the next of its lane, and what becomes of it: the same for every engine.

import type { BatchEncoding, LaneId } from "../../wire/request-log.ts";
import type { BatchGap, BatchRead } from "./log-batch.ts";
import type { DayBatch } from "./log-day.ts";
import { centralLossReason, type CentralLossReason } from "./log-losses.ts";

export type AppendRequest = {
  readonly siteId: number;
  readonly lane: LaneId;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly encoding: BatchEncoding;
  readonly body: Uint8Array;
  readonly nowMs: number;
};
export type AppendOutcome =
  | {
      readonly kind: "committed";
      readonly through: number;
      readonly records: number;
      /** How many records are known to be lost, by reason. */
      readonly lost: Readonly<Partial<Record<CentralLossReason, number>>>;
      /** At most so many more are. */
      readonly unproven: number;
    }
  /** All of the batch was committed before. */
  | { readonly kind: "repeated"; readonly through: number }
  | { readonly kind: "conflict"; readonly mark: number }
  | { readonly kind: "invalid" | "too_large"; readonly message: string };

/** Where a batch goes, within a transaction. */
export type BatchSink = {
  /** Returns the mark of a lane, 0 if the lane is not known. */
  mark(siteId: number, lane: LaneId): number;
  /** Adds the batch, and moves the mark of its lane to its end. */
  add(batch: DayBatch): void;
};

export type TakeRules = {
  /** Decodes the batch; called at most once. */
  readonly decode: () => BatchRead;
  /** Central's own word for the loss of records that it had acknowledged, where it knows why it lacks them. */
  readonly lackBecause: CentralLossReason | undefined;
};

export function takeBatch(
  sink: BatchSink,
  request: AppendRequest,
  { decode, lackBecause }: TakeRules,
): AppendOutcome {
  const { siteId, lane, firstSeq, lastSeq, nowMs } = request;
  const mark = sink.mark(siteId, lane);
  if (lastSeq <= mark) return { kind: "repeated", through: mark };
  if (firstSeq !== mark + 1) return { kind: "conflict", mark };
  const read = decode();
  if (read.kind !== "batch") return read;
  const gaps =
    lackBecause === undefined ? read.gaps : read.gaps.map((gap) => asLostHere(gap, lackBecause));
  sink.add({ siteId, lane, lastSeq, ...read, gaps, nowMs });
  const lost: Partial<Record<CentralLossReason, number>> = {};
  let unproven = 0;
  for (const { fromSeq, toSeq, reason, atLeast } of gaps) {
    const known = centralLossReason(reason);
    if (atLeast > 0) lost[known] = (lost[known] ?? 0) + atLeast;
    unproven += toSeq - fromSeq + 1 - atLeast;
  }
  return { kind: "committed", through: lastSeq, records: read.records.length, lost, unproven };
}

/** The gap of records that an agent no longer has because central had acknowledged them. */
function asLostHere(gap: BatchGap, reason: CentralLossReason): BatchGap {
  return gap.reason === "released" ? { ...gap, reason } : gap;
}
