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

/** Why records are lost: the reasons of gaps, and values of a metric's label at both ends. docs/logs.md says what to do. */
export const lossReasons = [
  /** The spool thread was too far behind: the newest records were dropped in the worker. */
  "behind",
  /** One record was larger than any record may be. */
  "oversize",
  /** A worker ended before it had handed over records that it had counted. */
  "crash",
  /** `spool.max` was reached: the oldest segment was dropped or, as `spool_full`, the newest records. */
  "dropped_oldest",
  "spool_full",
  /** Left out on purpose while the spool was filling up (`spool.when_full: sample`). */
  "sampled",
  /** The request was answered 503 because there was no room for its record (`spool.when_full: block`). */
  "blocked",
  "disk_full",
  "io_error",
  /** The bytes on disk are damaged; they are kept in spool/corrupt/. */
  "corrupt",
  /** Central refused this one record; it is kept in spool/poison.ndjson. */
  "poison",
  /** Central lost records that it had acknowledged, and the agent no longer has them. */
  "released",
  /** Central has numbers of this lane that the agent never gave out: two agents use copies of one state. */
  "conflict",
  /**
   * The site's credentials changed; records that were to be sent under the former name are in spool/foreign/.
   */
  "foreign",
] as const;

/**
 * Numbers that stand for no record any more. `reason` is one of `lossReasons`, or one that
 * only a newer release knows.
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
