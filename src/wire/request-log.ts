// Request records on their way to central: `POST /agent-api/v1/request-logs`, NDJSON compressed with zstd or
// gzip.
//
//   Accel-Instance: <instance id>, whose delivery it is (absent: of the release before)
//   Accel-Lane: <boot epoch>/<lane no>   Accel-First-Seq: n   Accel-Last-Seq: m   Content-Encoding: zstd | gzip | identity
//   each line is a record, a gap or a canary; together they cover n to m without hole or overlap, n = mark + 1
//   200 {committed_through: m}   409 {code: "conflict", mark}   400, 413: bisect   401: new token   429, 503: Retry-After

import { Type, type Static } from "typebox";
import { closed, decoder } from "./validate.ts";
import { Count, Seq } from "./parts.ts";

export const RequestRecord = closed({
  /** The number of the connection since the agent's start. */
  connection: Count,
  response_status: Type.Integer({ minimum: 0, maximum: 999 }),
  request_method: Type.String({ maxLength: 64 }),
  /** The target as sent, with query, cut at 8 KiB. */
  uri_path: Type.String({ maxLength: 8192 }),
  /** Seconds; 0 if no origin was asked. */
  backend_time: Type.Number({ minimum: 0 }),
  /** Seconds since the epoch, with microseconds as the fraction. */
  when: Type.Number(),
  /** The Host or authority as sent; "" if there was none. */
  authority: Type.String({ maxLength: 512 }),
  /** The main domain that the request was routed to; null if the authority belongs to none. */
  domain: Type.Union([Type.String({ maxLength: 253 }), Type.Null()]),
  client_ip: Type.String({ maxLength: 64 }),
  bytes_sent: Count,
  /** Seconds from the first byte of the request to the last of the response. */
  duration: Type.Number({ minimum: 0 }),
  cache: Type.Union([
    Type.Literal("hit"),
    Type.Literal("miss"),
    Type.Literal("stale"),
    Type.Literal("pass"),
    Type.Literal("blocked"),
    Type.Literal("none"),
  ]),
  verdict: Type.String({ maxLength: 64 }),
  bot: Type.Union([Type.String({ maxLength: 255 }), Type.Null()]),
  /** Cut at 1 KiB; null if none was sent. */
  user_agent: Type.Union([Type.String({ maxLength: 1024 }), Type.Null()]),
});
export type RequestRecord = Static<typeof RequestRecord>;
export const decodeRequestRecord = decoder(RequestRecord);

/**
 * Numbers that stand for no record any more. `reason` is one of crash, dropped_oldest, corrupt, poison and others.
 * A gap of `crash` says how many of its numbers stood for a record; where it does not, an older release wrote
 * it, and none is proven. All numbers of other gaps did.
 */
export const GapLine = closed({
  gap: closed({
    from_seq: Seq,
    to_seq: Seq,
    reason: Type.String({ maxLength: 64 }),
    at_least: Type.Optional(Count),
    at_most: Type.Optional(Count),
  }),
});
export type GapLine = Static<typeof GapLine>;
export const decodeGapLine = decoder(GapLine);

/**
 * A canary takes one number of its lane, as a record does. It goes the whole way, and no customer sees it.
 */
export const CanaryLine = closed({
  canary: closed({
    /** The time of sending: seconds since the epoch, with microseconds as the fraction. */
    at: Type.Number({ minimum: 0 }),
  }),
});
export type CanaryLine = Static<typeof CanaryLine>;
export const decodeCanaryLine = decoder(CanaryLine);

export const RequestLogAnswer = closed({ committed_through: Seq });
export const decodeRequestLogAnswer = decoder(RequestLogAnswer);

export const batchRecordsMax = 2_000;
export const batchBytesMax = 4 * 2 ** 20; // Uncompressed; 2,000 records of 2 KiB.

/** Values of `Content-Encoding`, best first. */
export const batchEncodings = ["zstd", "gzip", "identity"] as const;
export type BatchEncoding = (typeof batchEncodings)[number];

/** The parts of the `Accel-Lane` header. */
export type LaneId = { readonly epoch: string; readonly no: number };

export function parseLaneId(text: unknown): LaneId | undefined {
  const match = typeof text === "string" ? /^([0-9a-f]{16})\/(\d{1,9})$/.exec(text) : null;
  return match?.[1] === undefined ? undefined : { epoch: match[1], no: Number(match[2]) };
}

export function formatLaneId({ epoch, no }: LaneId): string {
  return `${epoch}/${no}`;
}
