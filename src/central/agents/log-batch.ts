// A batch of request records from bytes to checked lines: inflated within a limit, decoded line by line, numbered without hole or overlap.

import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { messageOf } from "../../core/faults.ts";
import {
  batchBytesMax,
  batchRecordsMax,
  decodeGapLine,
  decodeRequestRecord,
} from "../../wire/request-log.ts";
import { describeErrors } from "../../wire/validate.ts";

export const batchEncodings = ["zstd", "gzip", "identity"] as const;
export type BatchEncoding = (typeof batchEncodings)[number];

/** `line` is the record as it arrived. */
export type BatchRecord = {
  readonly seq: number;
  readonly domain: string | null;
  readonly when: number;
  readonly line: string;
};
export type BatchGap = {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly reason: string;
};
export type BatchRead =
  | {
      readonly kind: "batch";
      readonly records: readonly BatchRecord[];
      readonly gaps: readonly BatchGap[];
    }
  | { readonly kind: "invalid" | "too_large"; readonly message: string };

const invalid = (message: string): BatchRead => ({ kind: "invalid", message });

export function readBatch(
  body: Uint8Array,
  encoding: BatchEncoding,
  firstSeq: number,
  lastSeq: number,
): BatchRead {
  const inflated = inflate(body, encoding);
  if ("kind" in inflated) return inflated;
  const lines = splitLines(inflated.bytes);
  if (lines.length > batchRecordsMax)
    return { kind: "too_large", message: `a batch has at most ${batchRecordsMax} lines` };
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const records: BatchRecord[] = [];
  const gaps: BatchGap[] = [];
  let next = firstSeq;
  for (const [at, bytes] of lines.entries()) {
    const read = readLine(utf8, bytes, next);
    if (typeof read === "string") return invalid(`line ${at + 1}: ${read}`);
    if ("line" in read) records.push(read);
    else gaps.push(read);
    next = "line" in read ? next + 1 : read.toSeq + 1;
  }
  if (next !== lastSeq + 1)
    return invalid(`the lines cover ${firstSeq} to ${next - 1}, not to ${lastSeq}`);
  return { kind: "batch", records, gaps };
}

function inflate(body: Uint8Array, encoding: BatchEncoding): { bytes: Uint8Array } | BatchRead {
  const tooLarge: BatchRead = {
    kind: "too_large",
    message: `a batch has at most ${batchBytesMax} bytes before compression`,
  };
  const limit = { maxOutputLength: batchBytesMax };
  try {
    switch (encoding) {
      case "zstd":
        return { bytes: zstdDecompressSync(body, limit) };
      case "gzip":
        return { bytes: gunzipSync(body, limit) };
      case "identity":
        return body.byteLength > batchBytesMax ? tooLarge : { bytes: body };
      default:
        return encoding satisfies never;
    }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    return code === "ERR_BUFFER_TOO_LARGE"
      ? tooLarge
      : invalid(`the body is no whole ${encoding} data: ${messageOf(error)}`);
  }
}

/** Each line ends with a line feed; that of the last may be missing. */
function splitLines(bytes: Uint8Array): readonly Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let from = 0; from < bytes.byteLength;) {
    const feed = bytes.indexOf(0x0a, from);
    const to = feed < 0 ? bytes.byteLength : feed;
    lines.push(bytes.subarray(from, to));
    from = to + 1;
    if (lines.length > batchRecordsMax) break;
  }
  return lines;
}

/** The reason, where the line is neither the record nor a gap that begins at `seq`. */
function readLine(
  utf8: TextDecoder,
  bytes: Uint8Array,
  seq: number,
): BatchRecord | BatchGap | string {
  let line: string;
  let raw: unknown;
  try {
    line = utf8.decode(bytes);
    raw = JSON.parse(line);
  } catch (error) {
    return `no JSON in UTF-8: ${messageOf(error)}`;
  }
  if (raw !== null && typeof raw === "object" && "gap" in raw) {
    const decoded = decodeGapLine(raw);
    if (!decoded.ok) return describeErrors(decoded.errors);
    const { from_seq: fromSeq, to_seq: toSeq, reason } = decoded.value.gap;
    return fromSeq === seq && toSeq >= fromSeq
      ? { fromSeq, toSeq, reason }
      : `the gap ${fromSeq} to ${toSeq} stands where ${seq} is due`;
  }
  const decoded = decodeRequestRecord(raw);
  if (!decoded.ok) return describeErrors(decoded.errors);
  return { seq, domain: decoded.value.domain, when: decoded.value.when, line };
}
