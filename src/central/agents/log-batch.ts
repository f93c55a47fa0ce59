// Turns a batch of request records from bytes into checked lines: inflated within a limit, decoded line by
// line, numbered without hole or overlap. A record or a canary takes one number, a gap those that it covers.

import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { messageOf } from "../../core/faults.ts";
import {
  batchBytesMax,
  batchRecordsMax,
  decodeCanaryLine,
  decodeGapLine,
  decodeRequestRecord,
  type BatchEncoding,
  type RequestRecord,
} from "../../wire/request-log.ts";
import { describeErrors } from "../../wire/validate.ts";

/** `line` is the record as it arrived. */
export type BatchRecord = {
  readonly seq: number;
  readonly domain: string | null;
  readonly when: number;
  readonly line: string;
  readonly record: RequestRecord;
};
/** `at` is in seconds since the epoch, by the agent's clock. */
export type BatchCanary = { readonly seq: number; readonly at: number; readonly line: string };
export type BatchGap = {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly reason: string;
  /** How many of its numbers are known to have stood for a record. */
  readonly atLeast: number;
};
export type BatchRead =
  | {
      readonly kind: "batch";
      readonly records: readonly BatchRecord[];
      readonly canaries: readonly BatchCanary[];
      readonly gaps: readonly BatchGap[];
    }
  | { readonly kind: "invalid" | "too_large"; readonly message: string };

/**
 * The longest line that is read. A record with the largest fields, each character escaped, has some 65,000
 * characters. A longer line is not looked at, because finding out what is wrong with it may take long.
 */
const lineCharsMax = 128 * 2 ** 10;
/** The most characters of a reason, because a field may have any name. */
const reasonCharsMax = 300;

const invalid = (message: string): BatchRead => ({
  kind: "invalid",
  message: message.slice(0, reasonCharsMax),
});

export function decodeBatch(
  body: Uint8Array,
  encoding: BatchEncoding,
  firstSeq: number,
  lastSeq: number,
): BatchRead {
  const inflated = inflate(body, encoding);
  if ("kind" in inflated) return inflated;
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const lines = splitLines(utf8, inflated.bytes);
  if (typeof lines === "string") return invalid(lines);
  if (lines.length > batchRecordsMax)
    return { kind: "too_large", message: `a batch has at most ${batchRecordsMax} lines` };
  const records: BatchRecord[] = [];
  const canaries: BatchCanary[] = [];
  const gaps: BatchGap[] = [];
  let next = firstSeq;
  for (const [at, line] of lines.entries()) {
    const read = readLine(line, next);
    if (typeof read === "string") return invalid(`line ${at + 1}: ${read}`);
    if ("reason" in read) gaps.push(read);
    else if ("at" in read) canaries.push(read);
    else records.push(read);
    next = "reason" in read ? read.toSeq + 1 : next + 1;
  }
  if (next !== lastSeq + 1)
    return invalid(`the lines cover ${firstSeq} to ${next - 1}, not to ${lastSeq}`);
  return { kind: "batch", records, canaries, gaps };
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

/**
 * Splits lines. Each ends with a line feed, which the last may lack. Returns a text with the reason if a line
 * is no UTF-8.
 */
function splitLines(utf8: TextDecoder, bytes: Uint8Array): readonly string[] | string {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return `line ${firstTornLine(utf8, bytes)}: no JSON in UTF-8`;
  }
  const lines = text.split("\n", batchRecordsMax + 2);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Finds the first line that is no UTF-8. A line feed is never part of a longer character. */
function firstTornLine(utf8: TextDecoder, bytes: Uint8Array): number {
  for (let from = 0, no = 1; ; no++) {
    const feed = bytes.indexOf(0x0a, from);
    try {
      utf8.decode(bytes.subarray(from, feed < 0 ? bytes.byteLength : feed));
    } catch {
      return no;
    }
    if (feed < 0 || no > batchRecordsMax) return no;
    from = feed + 1;
  }
}

/** Reads a line. Returns the reason if it is neither a record nor a canary nor a gap that begins at `seq`. */
function readLine(line: string, seq: number): BatchRecord | BatchCanary | BatchGap | string {
  if (line.length > lineCharsMax) return `a line has at most ${lineCharsMax} characters`;
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch (error) {
    return `no JSON in UTF-8: ${messageOf(error)}`;
  }
  if (raw !== null && typeof raw === "object" && "gap" in raw) {
    const decoded = decodeGapLine(raw);
    if (!decoded.ok) return describeErrors(decoded.errors);
    const { from_seq: fromSeq, to_seq: toSeq, reason, at_least, at_most } = decoded.value.gap;
    if (fromSeq !== seq || toSeq < fromSeq)
      return `the gap ${fromSeq} to ${toSeq} stands where ${seq} is due`;
    const count = toSeq - fromSeq + 1;
    const atLeast = at_least ?? (reason === "crash" ? 0 : count);
    return atLeast <= count && (at_most ?? count) === count
      ? { fromSeq, toSeq, reason, atLeast }
      : `the gap ${fromSeq} to ${toSeq} covers ${count} numbers, not at least ${atLeast} and at most ${at_most ?? count}`;
  }
  if (raw !== null && typeof raw === "object" && "canary" in raw) {
    const decoded = decodeCanaryLine(raw);
    return decoded.ok ? { seq, at: decoded.value.canary.at, line } : describeErrors(decoded.errors);
  }
  const decoded = decodeRequestRecord(raw);
  if (!decoded.ok) return describeErrors(decoded.errors);
  const { domain, when } = decoded.value;
  return { seq, domain, when, line, record: decoded.value };
}
