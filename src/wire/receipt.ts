// What the agent proved: the outcome of a journal entry. It is repeated until central acknowledges it.

import { Type, type Static } from "typebox";
import { closed, decoder } from "./validate.ts";
import { Count, Detail, InstanceId, Seq } from "./parts.ts";
import { Position } from "./position.ts";

/**
 * `applied`: the effect is durable and in force. `gone`: for a clear, the bytes are deleted too. `failed`: it
 * was tried, and may succeed when a new entry repeats it. `refused`: it was understood and is not wanted
 * here; `detail.reason` says why.
 */
export const ReceiptPhase = Type.Union([
  Type.Literal("applied"),
  Type.Literal("gone"),
  Type.Literal("failed"),
  Type.Literal("refused"),
]);
export type ReceiptPhase = Static<typeof ReceiptPhase>;

/**
 * Detail by kind. cache.clear applied: {clear_id, clear_no, matched, widened, invisible_ms}; gone: {clear_id, removed, blocked_in_flight, gone_ms, verified, left?}.
 * viewset.activated: {manifest, viewset_id}, else {reason, code?, pinned?, serving?: {manifest, viewset_id, viewset_name}}; viewset.import: {import_id, manifest, files, bytes}. bots.changed: {domain, set, version, count, digest}.
 * A snapshot is receipted at its seq with {snapshot: true, cleared: [domains]}. failed and refused: {reason, code?}.
 * What becomes of an entry later is told by another receipt with a `correction` in its detail: of one entry the highest says how it is. Both receipts of a clear are told
 * again under one such number, each time that fetches have ended which were under way when it came (blocked_in_flight).
 */
export const Receipt = closed({ seq: Seq, phase: ReceiptPhase, detail: Detail, took_ms: Count });
export type Receipt = Static<typeof Receipt>;

/**
 * The body of `POST /agent-api/v1/receipts`, used when there is no channel; the answer names the acknowledged
 * ones.
 */
export const ReceiptBatch = closed({
  instance_id: InstanceId,
  receipts: Type.Array(Receipt, { maxItems: 1_000 }),
  position: Type.Optional(Position),
});
export const decodeReceiptBatch = decoder(ReceiptBatch);
export const ReceiptAcks = closed({ acks: Type.Array(closed({ seq: Seq, phase: ReceiptPhase })) });
export const decodeReceiptAcks = decoder(ReceiptAcks);
